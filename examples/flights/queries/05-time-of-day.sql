-- CASE makes its own public groups.
SELECT CASE WHEN hour < 12 THEN 'morning' WHEN hour < 18 THEN 'afternoon' ELSE 'evening' END AS part_of_day,
       COUNT(*) AS n, AVG(dep_delay) AS delay
FROM flights
WHERE month = 3
GROUP BY part_of_day
ORDER BY part_of_day
