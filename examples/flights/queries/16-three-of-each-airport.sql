-- The three busiest airlines of each airport: a window ranks noisy numbers, which costs nothing.
SELECT origin, carrier, n, RANK() OVER (PARTITION BY origin ORDER BY n DESC) AS place
FROM (SELECT origin, carrier, COUNT(*) AS n FROM flights WHERE month = 10 GROUP BY origin, carrier) AS counts
QUALIFY place <= 3
ORDER BY origin, place
