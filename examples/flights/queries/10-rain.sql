-- The public weather, joined on airport and hour.
SELECT precip > 0 AS rain, COUNT(*) AS n, AVG(dep_delay) AS delay
FROM flights JOIN weather USING (origin, time_hour)
WHERE month = 6 AND precip IS NOT NULL
GROUP BY rain ORDER BY rain
