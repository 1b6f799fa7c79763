-- GROUP BY an expression of a bounded integer, and a ratio of two released sums.
SELECT (month + 2) // 3 AS quarter, SUM(distance) / NULLIF(SUM(air_time), 0) * 60 AS miles_per_hour
FROM flights WHERE air_time IS NOT NULL AND (carrier = 'B6' OR carrier IN ('AA', 'DL'))
GROUP BY quarter HAVING COUNT(*) > 100 ORDER BY quarter
