-- Flights to airports above 4000 feet: a semi join with a public table changes no sensitivity.
SELECT origin, COUNT(*) AS n FROM flights
WHERE month = 2 AND dest IN (SELECT faa FROM airports WHERE alt > 4000)
GROUP BY origin ORDER BY origin
