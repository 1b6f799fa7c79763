-- A CTE with computed columns: minutes won in the air, by length of the flight.
WITH f AS (
    SELECT dep_delay - arr_delay AS won, distance > 1000 AS far, day FROM flights WHERE month = 5
)
SELECT far, AVG(won) AS minutes_won, COUNT(won) AS n FROM f WHERE day <= 15 GROUP BY far ORDER BY far
