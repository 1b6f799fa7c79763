-- What visits cost.

-- wants: the total cost
SELECT SUM(cost) AS total FROM visits;

-- wants: total and mean fees, which nobody bounded
SELECT SUM(fee) AS total, AVG(fee) AS mean FROM visits;

-- repaired: clipped in the query
SELECT SUM(CLIP(fee, 0, 500)) AS total, AVG(CLIP(fee, 0, 500)) AS mean FROM visits;

-- wants: clipped in the words of SQL
SELECT SUM(LEAST(GREATEST(fee, 0), 500)) AS total FROM visits;

-- wants: cost and fee together
SELECT ward, SUM(cost + fee) AS total FROM visits GROUP BY ward;

-- wants: cost per page: a division that may be by zero
SELECT AVG(cost / visit_id) AS odd FROM visits;

-- wants: the mean of a product
SELECT AVG(cost * 1.19) AS with_tax FROM visits;

-- wants: the logarithm of the cost, which is -infinity at zero
SELECT AVG(LN(cost)) AS mean_log FROM visits;

-- wants: the square root, which has bounds
SELECT AVG(SQRT(cost)) AS mean_root FROM visits;

-- wants: the dearest visit
SELECT MAX(cost) AS dearest FROM visits;

-- wants: the median cost
SELECT MEDIAN(cost) AS middle FROM visits;

-- wants: the ninetieth percentile
SELECT QUANTILE_CONT(cost, 0.9) AS p90 FROM visits;

-- wants: the spread of the cost
SELECT STDDEV(cost) AS spread, VAR_SAMP(cost) AS variance FROM visits;

-- wants: cost and age together
SELECT CORR(v.cost, p.age) AS r FROM visits v JOIN patients p USING (patient_id);

-- wants: missing costs as zero
SELECT AVG(COALESCE(cost, 0)) AS mean FROM visits;

-- wants: costs above 1000 only, by CASE
SELECT SUM(CASE WHEN cost > 1000 THEN cost ELSE 0 END) AS high FROM visits;

-- wants: CASE with a branch without bounds
SELECT SUM(CASE WHEN ward = 'surgery' THEN cost ELSE fee END) AS money FROM visits;

-- wants: a sum of text
SELECT SUM(note) FROM visits;

-- wants: a sum of text that should be a number
SELECT SUM(CAST(note AS INTEGER)) FROM visits;

-- wants: a mean of yes and no
SELECT AVG(smoker) AS share FROM patients;

-- repaired: yes and no as numbers
SELECT AVG(CAST(smoker AS INTEGER)) AS share FROM patients;

-- wants: the total in thousands, rounded
SELECT ROUND(SUM(cost) / 1000, 1) AS thousands FROM visits;

-- wants: the rounded mean of each ward as money
SELECT ward, '€ ' || CAST(ROUND(AVG(cost), 2) AS VARCHAR) AS mean FROM visits GROUP BY ward;

-- wants: cost buckets of a hundred
SELECT FLOOR(cost / 100) * 100 AS bucket, COUNT(*) AS n FROM visits GROUP BY 1 ORDER BY 1;

-- wants: buckets by WIDTH_BUCKET, which DuckDB does not have
SELECT WIDTH_BUCKET(cost, 0, 5000, 10) AS bucket, COUNT(*) AS n FROM visits GROUP BY 1;

-- wants: the total of clipped costs of each patient
SELECT SUM(per_patient) AS total
FROM (SELECT patient_id, SUM(cost) AS per_patient FROM visits GROUP BY patient_id) AS p;

-- wants: the mean total of a patient
SELECT AVG(CLIP(total, 0, 20000)) AS mean_of_a_patient
FROM (SELECT patient_id, SUM(cost) AS total FROM visits GROUP BY patient_id) AS p;

-- wants: a sum with the bounds of GoogleSQL
SELECT WITH DIFFERENTIAL_PRIVACY SUM(fee, contribution_bounds_per_group => (0, 500)) AS total FROM visits;

-- wants: AVG with the wrong one of them
SELECT AVG(cost, contribution_bounds_per_group => (0, 500)) AS mean FROM visits;

-- wants: decades of age, with a division as PostgreSQL has it
SELECT age / 10 * 10 AS decade, COUNT(*) AS n FROM patients GROUP BY 1;

-- repaired: with a division of whole numbers
SELECT (age // 10) * 10 AS decade, COUNT(*) AS n FROM patients GROUP BY 1;

-- wants: what a visit costs for a year of age
SELECT SUM(v.cost / p.age) AS odd FROM visits AS v JOIN patients AS p USING (patient_id);

-- repaired: with a divisor of at least 1
SELECT SUM(v.cost / CLIP(p.age, 1, 110)) AS odd FROM visits AS v JOIN patients AS p USING (patient_id);
