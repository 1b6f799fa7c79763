-- One row per visit since 2024.
SELECT visit_id, patient_id, ward, cost
FROM {{ source('hospital', 'visits') }}
WHERE day >= DATE '2024-01-01'
