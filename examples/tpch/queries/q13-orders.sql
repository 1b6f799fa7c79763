-- Customers with and without special requests
SELECT o_comment LIKE '%special%requests%' AS special, COUNT(*) AS orders, COUNT(DISTINCT o_custkey) AS customers
FROM orders
GROUP BY special
ORDER BY special
