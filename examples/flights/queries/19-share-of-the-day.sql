-- Shares of a total that is measured by itself: a scalar subquery is a second release, and ε is split over both.
SELECT origin, COUNT(*) AS n, 100.0 * COUNT(*) / (SELECT COUNT(*) FROM flights WHERE month = 7 AND day = 1) AS percent
FROM flights WHERE month = 7 AND day = 1
GROUP BY origin ORDER BY origin
