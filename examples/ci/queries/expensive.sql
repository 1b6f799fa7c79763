-- More ε than this repository lets one query ask for.
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1.5) region, AVG(age) AS age FROM patients GROUP BY region;
