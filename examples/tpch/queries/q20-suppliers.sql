-- Potential part promotion, by supplier in place of each part of each supplier
SELECT s_name, s_address
FROM supplier, nation
WHERE (SELECT SUM(ps_availqty) FROM partsupp WHERE ps_suppkey = s_suppkey
         AND ps_partkey IN (SELECT p_partkey FROM part WHERE p_name LIKE 'forest%')) > (
      SELECT 0.5 * SUM(l_quantity)
      FROM lineitem
      WHERE l_suppkey = s_suppkey AND l_partkey IN (SELECT p_partkey FROM part WHERE p_name LIKE 'forest%')
        AND l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1994-01-01' + INTERVAL 1 YEAR)
  AND s_nationkey = n_nationkey AND n_name = 'CANADA'
ORDER BY s_name
