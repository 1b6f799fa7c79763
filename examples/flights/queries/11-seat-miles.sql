-- Arithmetic over columns of private and public tables, clipped to what is plausible: distance times seats.
SELECT origin, AVG(CLIP(distance * seats, 0, 500000)) AS seat_miles, SUM(distance) / 1000 AS thousand_miles
FROM flights JOIN planes USING (tailnum)
WHERE month = 9
GROUP BY ALL ORDER BY origin
