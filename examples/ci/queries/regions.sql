-- Patients and their visits by region.
SELECT region, COUNT(*) AS patients
FROM patients
GROUP BY region
ORDER BY patients DESC;

SELECT p.region, COUNT(*) AS visits, AVG(v.cost) AS mean_cost
FROM visits AS v
JOIN patients AS p USING (patient_id)
GROUP BY p.region;
