{{ config(materialized='view') }}
SELECT patient_id, ward, cost FROM {{ ref('stg_visits') }} WHERE cost > 100
