-- Shipping priority, by month of the order in place of single orders
SELECT CAST(date_trunc('month', o_orderdate) AS DATE) AS month, SUM(l_extendedprice * (1 - l_discount)) AS revenue
FROM customer, orders, lineitem
WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey
  AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'
GROUP BY month
ORDER BY revenue DESC
LIMIT 10
