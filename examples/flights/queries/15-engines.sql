-- Grouped by what an aircraft is: each has one group, so the limit on all its flights holds instead of those per group.
SELECT engine, COUNT(*) AS n, COUNT(DISTINCT tailnum) AS aircraft
FROM flights JOIN planes USING (tailnum)
WHERE month <= 2
GROUP BY engine ORDER BY engine
