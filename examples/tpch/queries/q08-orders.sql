-- A nation's share of the orders of its region, by year
SELECT o_year, SUM(CASE WHEN nation = 'BRAZIL' THEN o_totalprice ELSE 0 END) / SUM(o_totalprice) AS mkt_share
FROM (
    SELECT EXTRACT(YEAR FROM o_orderdate) AS o_year, o_totalprice, n_name AS nation
    FROM orders, customer, nation, region
    WHERE o_custkey = c_custkey AND c_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'AMERICA'
      AND o_orderdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31') AS all_nations
GROUP BY o_year
ORDER BY o_year
