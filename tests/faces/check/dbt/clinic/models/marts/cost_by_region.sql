SELECT p.region,
       SUM(v.fee) AS fees
FROM {{ source('hospital', 'visits') }} AS v
JOIN {{ source('hospital', 'patients') }} AS p USING (patient_id)
GROUP BY p.region
