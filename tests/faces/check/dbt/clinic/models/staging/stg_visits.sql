-- One row per visit of the period.
SELECT visit_id, patient_id, ward, cost, day
FROM {{ source('hospital', 'visits') }}
WHERE {{ in_period('day') }}
