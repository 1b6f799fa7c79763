-- A derived table that is a release, ranked against itself: everything outside it is public.
SELECT origin, delay, delay > 15 AS bad, CASE WHEN n > 9000 THEN 'large' ELSE 'small' END AS size
FROM (SELECT origin, AVG(dep_delay) AS delay, COUNT(*) AS n FROM flights WHERE month = 6 GROUP BY origin) AS airports
ORDER BY delay DESC
