-- A truncated time is a public key where its column has bounds.
SELECT date_trunc('month', time_hour) AS month, COUNT(*) AS n, SUM(distance) AS miles
FROM flights
WHERE origin = 'LGA' AND time_hour >= TIMESTAMP '2013-04-01 00:00:00' AND time_hour < TIMESTAMP '2013-07-01 00:00:00'
GROUP BY 1 ORDER BY 1
