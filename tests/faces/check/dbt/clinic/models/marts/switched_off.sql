{{ config(enabled=false) }}
SELECT patient_id FROM {{ source('hospital', 'patients') }}
