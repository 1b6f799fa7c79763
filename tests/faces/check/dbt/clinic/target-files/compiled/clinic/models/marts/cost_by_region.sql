SELECT p.region,
       SUM(v.fee) AS fees
FROM "clinic"."raw"."visits" AS v
JOIN "clinic"."raw"."patients" AS p USING (patient_id)
GROUP BY p.region