-- Large volume customers, their orders counted in place of listed
SELECT COUNT(*) AS orders, SUM(quantity) AS quantity
FROM (
    SELECT o_custkey, o_orderkey, SUM(l_quantity) AS quantity
    FROM orders, lineitem
    WHERE o_orderkey = l_orderkey
    GROUP BY o_custkey, o_orderkey
    HAVING SUM(l_quantity) > 300) AS large
