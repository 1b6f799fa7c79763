-- Visits and their cost by month, with the change against the month before.
WITH by_month AS (
    SELECT MONTH(day) AS month, COUNT(*) AS visits, SUM(cost) AS cost
    FROM visits
    GROUP BY 1
)
SELECT month, visits, cost / visits AS mean_cost, visits - LAG(visits) OVER (ORDER BY month) AS change
FROM by_month
ORDER BY month;
