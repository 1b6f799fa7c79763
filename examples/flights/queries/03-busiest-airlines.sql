-- Airlines with more than 500 flights in January, by the names of a public table. HAVING, ORDER BY and LIMIT see
-- noisy numbers only.
SELECT airlines.name, COUNT(*) AS n, AVG(arr_delay) AS late
FROM flights JOIN airlines ON flights.carrier = airlines.carrier
WHERE month = 1
GROUP BY airlines.name
HAVING COUNT(*) > 500
ORDER BY n DESC, airlines.name
LIMIT 5
