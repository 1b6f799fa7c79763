-- CTEs, windows, unions, DML and everything that stands around a query.

-- wants: a CTE of visits and then regions
WITH recent AS (SELECT * FROM visits WHERE day >= DATE '2024-06-01')
SELECT p.region, COUNT(*) AS n FROM recent r JOIN patients p USING (patient_id) GROUP BY p.region;

-- wants: a CTE that releases, and arithmetic on it
WITH by_ward AS (SELECT ward, COUNT(*) AS n, SUM(cost) AS c FROM visits GROUP BY ward)
SELECT ward, c / n AS mean FROM by_ward ORDER BY mean DESC;

-- wants: a CTE that is never used
WITH unused AS (SELECT * FROM letters) SELECT COUNT(*) AS n FROM patients;

-- wants: a CTE with the name of a table
WITH visits AS (SELECT * FROM visits WHERE cost > 100) SELECT COUNT(*) AS n FROM visits;

-- repaired: with a name of its own
WITH dear AS (SELECT * FROM visits WHERE cost > 100) SELECT COUNT(*) AS n FROM dear;

-- wants: a recursive CTE
WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 10) SELECT COUNT(*) FROM t;

-- wants: the last visit of each patient
SELECT COUNT(*) AS n FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY day DESC) AS r FROM visits
) AS v WHERE r = 1;

-- wants: a running total over the months
SELECT month, SUM(n) OVER (ORDER BY month) AS total
FROM (SELECT MONTH(day) AS month, COUNT(*) AS n FROM visits GROUP BY 1) AS m;

-- wants: rank of the wards by their visits
SELECT ward, RANK() OVER (ORDER BY COUNT(*) DESC) AS place FROM visits GROUP BY ward;

-- wants: patients and letters under each other
SELECT 'visits' AS what, COUNT(*) AS n FROM visits
UNION ALL
SELECT 'patients', COUNT(*) FROM patients;

-- wants: all ids of two tables together
SELECT COUNT(*) AS n FROM (SELECT patient_id FROM visits UNION ALL SELECT patient_id FROM letters) AS both;

-- wants: all ids once
SELECT COUNT(*) AS n FROM (SELECT patient_id FROM visits UNION SELECT patient_id FROM letters) AS both;

-- wants: a union whose sides differ
SELECT region, COUNT(*) FROM patients GROUP BY region UNION ALL SELECT COUNT(*) FROM visits;

-- wants: patients with visits but no letters
SELECT COUNT(*) AS n FROM (SELECT patient_id FROM visits EXCEPT SELECT patient_id FROM letters) AS x;

-- wants: the dearest ten visits summed
SELECT SUM(cost) AS top FROM (SELECT cost FROM visits ORDER BY cost DESC LIMIT 10) AS t;

-- wants: a sample
SELECT COUNT(*) AS n FROM visits USING SAMPLE 10%;

-- wants: a random half
SELECT COUNT(*) AS n FROM visits WHERE RANDOM() < 0.5;

-- wants: visits above the mean
SELECT COUNT(*) AS n FROM visits WHERE cost > (SELECT AVG(cost) FROM visits);

-- wants: visits above the mean of their ward
SELECT COUNT(*) AS n FROM visits v WHERE cost > (SELECT AVG(cost) FROM visits w WHERE w.ward = v.ward);

-- wants: a HAVING without a group
SELECT COUNT(*) AS n FROM visits HAVING COUNT(*) > 5;

-- wants: an aggregate in WHERE
SELECT ward FROM visits WHERE COUNT(*) > 5 GROUP BY ward;

-- wants: an alias of SELECT in WHERE
SELECT ward, COUNT(*) AS n FROM visits WHERE n > 5 GROUP BY ward;

-- wants: QUALIFY
SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward QUALIFY ROW_NUMBER() OVER (ORDER BY COUNT(*) DESC) = 1;

-- wants: a pivot
PIVOT visits ON ward USING SUM(cost);

-- wants: subtotals
SELECT ward, COUNT(*) AS n FROM visits GROUP BY ROLLUP (ward);

-- wants: grouping sets
SELECT ward, MONTH(day) AS m, COUNT(*) AS n FROM visits GROUP BY GROUPING SETS ((ward), (m), ());

-- wants: to delete
DELETE FROM visits WHERE cost = 0;

-- wants: to change
UPDATE patients SET age = 0 WHERE patient_id = 7;

-- wants: to keep the answer
CREATE TABLE report AS SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward;

-- wants: to look at the schema
DESCRIBE visits;

-- wants: to set something
SET threads = 1;

-- wants: a file
COPY (SELECT COUNT(*) FROM visits) TO 'out.csv';

-- wants: a file in FROM
SELECT COUNT(*) FROM read_csv('visits.csv');

-- wants: a file's name as a table
SELECT COUNT(*) FROM 'visits.parquet';

-- wants: FROM first
FROM visits SELECT ward, COUNT(*) AS n GROUP BY ward;

-- wants: only FROM
FROM visits;

-- wants: numbers without a table
SELECT 1 + 1 AS two;

-- wants: an open bracket
SELECT COUNT(* FROM visits;

-- wants: letters collected into a list
SELECT ward, LIST(cost) AS costs FROM visits GROUP BY ward;

-- wants: notes joined into one text
SELECT STRING_AGG(note, '; ') AS notes FROM visits;

-- wants: any one note
SELECT ANY_VALUE(note) AS note FROM visits;

-- wants: patients whose note says something
SELECT COUNT(*) AS n FROM visits WHERE note ILIKE '%diabet%';

-- wants: notes that match a pattern
SELECT COUNT(*) AS n FROM visits WHERE REGEXP_MATCHES(note, 'E1[0-4]');

-- wants: notes by their first letters
SELECT LEFT(code, 1) AS chapter, COUNT(*) AS n FROM visits GROUP BY chapter;

-- wants: the length of notes
SELECT AVG(LENGTH(note)) AS mean FROM visits;

-- wants: visits of every day, without gaps
WITH RECURSIVE days AS (SELECT DATE '2024-01-01' AS d UNION ALL SELECT d + 1 FROM days WHERE d < DATE '2024-12-31')
SELECT d, COUNT(visit_id) AS n FROM days LEFT JOIN visits ON day = d GROUP BY d;

-- wants: the same with a table function
SELECT d, COUNT(visit_id) AS n
FROM generate_series(DATE '2024-01-01', DATE '2024-12-31', INTERVAL 1 DAY) AS g(d) LEFT JOIN visits ON day = d GROUP BY d;

-- repaired: the days of the column's bounds are groups already
SELECT day AS d, COUNT(*) AS n FROM visits GROUP BY day;

-- wants: a value within a text
SELECT json_extract(note, '$.kind') AS kind, COUNT(*) AS n FROM visits GROUP BY 1;
