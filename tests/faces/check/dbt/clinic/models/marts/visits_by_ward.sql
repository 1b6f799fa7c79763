{{ config(materialized='table') }}

SELECT ward, COUNT(*) AS visits, AVG(cost) AS mean_cost
FROM {{ ref('stg_visits') }}
GROUP BY ward
