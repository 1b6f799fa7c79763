-- What people bring along from other databases.

-- wants: MySQL's quotes
SELECT `store`, COUNT(*) AS n FROM `orders` GROUP BY `store`;

-- wants: SQL Server's quotes
SELECT [status], COUNT(*) AS n FROM [orders] GROUP BY [status];

-- wants: SQL Server's TOP
SELECT TOP 5 status, COUNT(*) AS n FROM orders GROUP BY status;

-- wants: Oracle's FETCH FIRST
SELECT status, COUNT(*) AS n FROM orders GROUP BY status ORDER BY n DESC FETCH FIRST 2 ROWS ONLY;

-- wants: MySQL's LIMIT with a comma
SELECT status, COUNT(*) AS n FROM orders GROUP BY status ORDER BY n DESC LIMIT 1, 2;

-- wants: PostgreSQL's cast
SELECT AVG(quantity::DOUBLE) AS mean FROM orders;

-- wants: NVL
SELECT AVG(NVL(weight, 0)) AS mean FROM orders;

-- wants: ISNULL with two arguments
SELECT AVG(ISNULL(weight, 0)) AS mean FROM orders;

-- wants: IFNULL
SELECT AVG(IFNULL(weight, 0)) AS mean FROM orders;

-- wants: IIF
SELECT SUM(IIF(express, 1, 0)) AS express FROM orders;

-- wants: IF
SELECT SUM(IF(express, 1, 0)) AS express FROM orders;

-- wants: COUNTIF
SELECT COUNTIF(express) AS express FROM orders;

-- wants: COUNT_IF
SELECT COUNT_IF(express) AS express FROM orders;

-- wants: SAFE_DIVIDE
SELECT AVG(SAFE_DIVIDE(amount, quantity)) AS each FROM orders;

-- wants: double quotes around a text
SELECT COUNT(*) AS n FROM orders WHERE status = "paid";

-- wants: two equal signs
SELECT COUNT(*) AS n FROM orders WHERE status == 'paid';

-- wants: <>
SELECT COUNT(*) AS n FROM orders WHERE status <> 'paid';

-- wants: !=
SELECT COUNT(*) AS n FROM orders WHERE status != 'paid';

-- wants: DATEADD
SELECT COUNT(*) AS n FROM orders WHERE placed > DATEADD(day, -7, '2024-12-31');

-- wants: DATE_ADD with an INTERVAL
SELECT COUNT(*) AS n FROM orders WHERE placed > DATE '2024-12-31' - INTERVAL '7' DAY;

-- wants: GETDATE
SELECT COUNT(*) AS n FROM orders WHERE placed < GETDATE();

-- wants: YEAR and MONTH
SELECT YEAR(placed) AS y, MONTH(placed) AS m, COUNT(*) AS n FROM orders GROUP BY YEAR(placed), MONTH(placed);

-- wants: TO_CHAR
SELECT TO_CHAR(placed, 'YYYY-MM') AS month, COUNT(*) AS n FROM orders GROUP BY 1;

-- wants: DATE_FORMAT
SELECT DATE_FORMAT(placed, '%Y-%m') AS month, COUNT(*) AS n FROM orders GROUP BY 1;

-- wants: STRFTIME as DuckDB has it
SELECT STRFTIME(placed, '%Y-%m') AS month, COUNT(*) AS n FROM orders GROUP BY 1;

-- wants: DISTINCT ON
SELECT DISTINCT ON (store) store, amount FROM orders ORDER BY store, placed DESC;

-- wants: the old outer join
SELECT COUNT(*) AS n FROM orders o, stores s WHERE o.store = s.id(+);

-- wants: DECODE
SELECT SUM(DECODE(status, 'paid', 1, 0)) AS paid FROM orders;

-- wants: a variable
SELECT COUNT(*) AS n FROM orders WHERE amount > @minimum;

-- wants: a parameter
SELECT COUNT(*) AS n FROM orders WHERE amount > ?;

-- wants: a named parameter
SELECT COUNT(*) AS n FROM orders WHERE amount > $minimum;

-- wants: a template's placeholder
SELECT COUNT(*) AS n FROM orders WHERE amount > {{ minimum }};

-- wants: a comment to the end, as MySQL writes it
SELECT COUNT(*) AS n FROM orders # all of them
;

-- wants: a hint
SELECT /*+ PARALLEL(4) */ COUNT(*) AS n FROM orders;

-- wants: NOLOCK
SELECT COUNT(*) AS n FROM orders WITH (NOLOCK);

-- wants: DUAL
SELECT 1 FROM dual;

-- wants: GROUP_CONCAT
SELECT GROUP_CONCAT(status) AS all_of_them FROM orders;

-- wants: APPROX_COUNT_DISTINCT
SELECT APPROX_COUNT_DISTINCT(customer) AS customers FROM orders;

-- wants: PERCENTILE_CONT
SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY amount) AS middle FROM orders;

-- wants: MEAN
SELECT MEAN(weight) AS mean FROM orders;

-- wants: TOTAL
SELECT TOTAL(quantity) AS total FROM orders;

-- wants: EXCLUDE
SELECT * EXCLUDE (note) FROM orders;

-- wants: UNPIVOT
SELECT COUNT(*) AS n FROM (UNPIVOT orders ON amount, tip INTO NAME what VALUE v) AS u;

-- wants: two statements on a line
SELECT COUNT(*) AS n FROM orders; SELECT SUM(tip) AS t FROM orders;

-- wants: a chain of comparisons
SELECT COUNT(*) AS n FROM orders WHERE 10 < amount < 20;
