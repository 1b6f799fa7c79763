-- The change from month to month: LAG over released numbers.
WITH months AS (SELECT month, COUNT(*) AS n FROM flights WHERE origin = 'JFK' GROUP BY month)
SELECT month, n, n - LAG(n) OVER (ORDER BY month) AS change FROM months ORDER BY month
