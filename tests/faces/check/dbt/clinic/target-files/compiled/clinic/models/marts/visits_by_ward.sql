

with __dbt__cte__stg_visits as (
-- One row per visit of the period.
SELECT visit_id, patient_id, ward, cost, day
FROM "clinic"."raw"."visits"
WHERE day >= DATE '2024-01-01'
) SELECT ward, COUNT(*) AS visits, AVG(cost) AS mean_cost
FROM __dbt__cte__stg_visits
GROUP BY ward