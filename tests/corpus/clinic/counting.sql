-- How many patients, visits and letters: the first questions of a ward manager.

-- wants: how many patients there are
SELECT COUNT(*) AS patients FROM patients;

-- wants: patients by region, the largest first
SELECT region, COUNT(*) AS n FROM patients GROUP BY region ORDER BY n DESC;

-- wants: smokers by region
SELECT region, COUNT(*) FILTER (WHERE smoker) AS smokers, COUNT(*) AS n FROM patients GROUP BY 1 ORDER BY 1;

-- wants: patients seen, not visits
SELECT COUNT(DISTINCT patient_id) AS seen FROM visits;

-- wants: patients seen by ward, in two ways
SELECT ward, COUNT(DISTINCT patient_id) AS seen, COUNT(*) AS visits FROM visits GROUP BY ALL;

-- wants: how many letters there are, although nobody said how many one patient may get
SELECT COUNT(*) AS letters FROM letters;

-- repaired: with the limit in the query
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = 10) COUNT(*) AS letters FROM letters;

-- wants: the same with the limit at the function
SELECT COUNT(*, contribution_bounds_per_group => (0, 10)) AS letters FROM letters;

-- wants: all patients, one by one
SELECT * FROM patients;

-- wants: the ids of smokers
SELECT patient_id, age FROM patients WHERE smoker ORDER BY age DESC LIMIT 20;

-- wants: distinct diagnoses, as a list
SELECT DISTINCT code FROM visits;

-- wants: distinct regions, which are public
SELECT DISTINCT region FROM patients;

-- wants: visits by diagnosis; the codes are private keys
SELECT code, COUNT(*) AS n FROM visits GROUP BY code HAVING COUNT(*) > 10 ORDER BY n DESC LIMIT 10;

-- wants: one number for each patient
SELECT patient_id, COUNT(*) AS visits FROM visits GROUP BY patient_id;

-- wants: how many patients came how often
SELECT visits, COUNT(*) AS patients
FROM (SELECT patient_id, COUNT(*) AS visits FROM visits GROUP BY patient_id) AS per_patient
GROUP BY visits;

-- repaired: the number of visits has a list of values to come in
SELECT LEAST(visits, 20) AS visits, COUNT(*) AS patients
FROM (SELECT patient_id, COUNT(*) AS visits FROM visits GROUP BY patient_id) AS per_patient
GROUP BY LEAST(visits, 20);

-- wants: a count with a typo in the table's name
SELECT COUNT(*) FROM patiens;

-- wants: a count with a typo in a column's name
SELECT regoin, COUNT(*) FROM patients GROUP BY regoin;

-- wants: a count with a typo in a keyword
SELECT COUNT(*) AS n FORM patients;

-- wants: a count with a comma too many
SELECT region, COUNT(*) AS n, FROM patients GROUP BY region;

-- wants: a comma too few
SELECT region COUNT(*) AS n FROM patients GROUP BY region;

-- wants: a group that was forgotten
SELECT region, smoker, COUNT(*) AS n FROM patients GROUP BY region;

-- wants: no group at all
SELECT region, COUNT(*) AS n FROM patients;

-- wants: COUNT of nothing
SELECT COUNT() AS n FROM patients;

-- wants: a count over everything, as a share
SELECT region, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS share FROM patients GROUP BY region;
