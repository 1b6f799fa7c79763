-- A report with a line for all airports: ROLLUP is one release for each set of keys.
SELECT origin, COUNT(*) AS n FROM flights WHERE month = 7 AND day = 1
GROUP BY ROLLUP (origin)
ORDER BY origin NULLS LAST
