-- Patients, their visits, diagnoses and orders, joined as people join them.

-- wants: visits by the patient's region
SELECT p.region, COUNT(*) AS n FROM visits v JOIN patients p ON v.patient_id = p.patient_id GROUP BY p.region;

-- wants: the same with USING and a mean
SELECT region, AVG(cost) AS mean FROM visits JOIN patients USING (patient_id) GROUP BY region;

-- wants: the same with a comma and WHERE
SELECT p.region, COUNT(*) AS n FROM visits v, patients p WHERE v.patient_id = p.patient_id GROUP BY p.region;

-- wants: the same, with the condition forgotten
SELECT p.region, COUNT(*) AS n FROM visits v, patients p GROUP BY p.region;

-- wants: the same, joined on the wrong column
SELECT p.region, COUNT(*) AS n FROM visits v JOIN patients p ON v.visit_id = p.patient_id GROUP BY p.region;

-- wants: the name of the diagnosis
SELECT i.title, COUNT(*) AS n FROM visits v JOIN icd10 i ON i.code = v.code GROUP BY i.title;

-- wants: a public list as the groups, whether anybody has them or not
SELECT i.code, COUNT(v.visit_id) AS n FROM icd10 i LEFT JOIN visits v ON v.code = i.code GROUP BY i.code;

-- wants: prices of the items that were ordered: one item may have many prices
SELECT SUM(p.price) AS total FROM orders o JOIN prices p ON p.item = o.item;

-- repaired: with the table that has one row for each item
SELECT SUM(i.price) AS total FROM orders o JOIN items i ON i.item = o.item;

-- wants: an ambiguous column
SELECT COUNT(*) FROM visits v JOIN letters l USING (patient_id) WHERE patient_id > 100 AND visit_id = letter_id;

-- wants: really ambiguous
SELECT item, COUNT(*) AS n FROM orders JOIN items ON orders.item = items.item GROUP BY item;

-- wants: pairs of visits of the same day
SELECT COUNT(*) AS pairs FROM visits a JOIN visits b ON a.day = b.day AND a.visit_id < b.visit_id;

-- wants: pairs of visits of one patient
SELECT COUNT(*) AS pairs FROM visits a JOIN visits b ON a.patient_id = b.patient_id AND a.visit_id < b.visit_id;

-- wants: patients without a visit, the old way
SELECT COUNT(*) AS n FROM patients p LEFT JOIN visits v ON v.patient_id = p.patient_id WHERE v.visit_id IS NULL;

-- wants: patients without a visit, with NOT EXISTS
SELECT COUNT(*) AS n FROM patients p WHERE NOT EXISTS (SELECT 1 FROM visits v WHERE v.patient_id = p.patient_id);

-- wants: patients with a dear visit
SELECT COUNT(*) AS n FROM patients WHERE patient_id IN (SELECT patient_id FROM visits WHERE cost > 1000);

-- wants: patients without one, with NOT IN
SELECT COUNT(*) AS n FROM patients WHERE patient_id NOT IN (SELECT patient_id FROM visits WHERE cost > 1000);

-- wants: visits and letters of one patient multiplied
SELECT COUNT(*) AS n FROM visits JOIN letters USING (patient_id);

-- wants: orders of customers who are patients: two different people's ids
SELECT COUNT(*) AS n FROM orders o JOIN patients p ON o.customer_id = p.patient_id;

-- wants: a join over a range of ages
SELECT COUNT(*) AS n FROM patients a JOIN patients b ON a.age < b.age;

-- wants: a join on text and number
SELECT COUNT(*) AS n FROM visits v JOIN icd10 i ON v.visit_id = i.code;

-- wants: NATURAL JOIN
SELECT region, COUNT(*) AS n FROM visits NATURAL JOIN patients GROUP BY region;

-- wants: FULL JOIN with a public table
SELECT COUNT(*) AS n FROM visits FULL JOIN icd10 USING (code);

-- wants: a semi join in DuckDB's words
SELECT COUNT(*) AS n FROM patients SEMI JOIN visits USING (patient_id);

-- wants: the nearest visit before each letter
SELECT COUNT(*) AS n FROM letters ASOF JOIN visits ON letters.patient_id = visits.patient_id AND letters.letter_id >= visits.visit_id;

-- wants: each visit with a row of a lateral subquery
SELECT COUNT(*) AS n FROM patients p, LATERAL (SELECT * FROM visits v WHERE v.patient_id = p.patient_id LIMIT 1) AS last;

-- wants: an alias that is not there
SELECT q.region, COUNT(*) AS n FROM patients p GROUP BY q.region;

-- wants: a table that is not declared
SELECT COUNT(*) AS n FROM visits JOIN doctors USING (doctor_id);

-- wants: a table with a schema
SELECT COUNT(*) AS n FROM main.patients;
