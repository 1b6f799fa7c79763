-- One row per visit of the period.
SELECT visit_id, patient_id, ward, cost, day
FROM "clinic"."raw"."visits"
WHERE day >= DATE '2024-01-01'