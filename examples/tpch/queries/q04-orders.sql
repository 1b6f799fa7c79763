-- Order priority checking without the condition on lineitems
SELECT o_orderpriority, COUNT(*) AS order_count
FROM orders
WHERE o_orderdate >= DATE '1993-07-01' AND o_orderdate < DATE '1993-07-01' + INTERVAL 3 MONTH
GROUP BY o_orderpriority
ORDER BY o_orderpriority
