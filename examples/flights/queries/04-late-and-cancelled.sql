-- Counts under conditions, and shares of them: arithmetic above the release is free.
SELECT COUNT(*) AS flights,
       COUNT(dep_time) AS departed,
       COUNT(*) FILTER (WHERE dep_delay > 60) AS late,
       100.0 * COUNT(*) FILTER (WHERE dep_delay > 60) / COUNT(dep_time) AS late_percent
FROM flights
WHERE month = 12
