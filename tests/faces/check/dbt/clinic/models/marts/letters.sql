-- The policy declares this one: what is built on it starts from the policy.
SELECT 1 AS letter_id, patient_id, 3 AS pages FROM {{ source('hospital', 'patients') }}
