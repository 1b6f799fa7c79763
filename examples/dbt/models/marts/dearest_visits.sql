-- Refused: it would show single visits.
WITH visits AS (
    SELECT * FROM {{ ref('stg_visits') }}
)
SELECT ward, cost
FROM visits
ORDER BY cost DESC
LIMIT 10
