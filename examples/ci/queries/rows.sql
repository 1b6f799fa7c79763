-- Rows of single patients, which no amount of noise can hide.
SELECT * FROM patients WHERE age > 100;

SELECT patient_id, SUM(cost) AS total FROM visits GROUP BY patient_id ORDER BY total DESC LIMIT 10;

DELETE FROM visits WHERE day IS NULL;
