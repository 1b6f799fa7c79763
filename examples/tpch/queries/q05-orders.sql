-- Volume by nation in a region and year, from what orders say: two private tables on their customer, two public ones
SELECT n_name, SUM(o_totalprice) AS revenue
FROM customer, orders, nation, region
WHERE c_custkey = o_custkey AND c_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'ASIA'
  AND o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1994-01-01' + INTERVAL 1 YEAR
GROUP BY n_name
ORDER BY revenue DESC
