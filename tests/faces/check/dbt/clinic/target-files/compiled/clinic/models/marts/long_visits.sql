-- A model on a view on an ephemeral model.
WITH visits_of_a_ward AS (
    SELECT * FROM "clinic"."main"."int_long_visits" WHERE ward = 'surgery'
)
SELECT COUNT(*) AS n, SUM(costs) AS total
FROM visits_of_a_ward