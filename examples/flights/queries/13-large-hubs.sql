-- Two keys, one restricted by an IN-list: all twelve combinations are possible groups.
SELECT dest, origin, COUNT(*) AS n
FROM flights
WHERE dest IN ('ATL', 'ORD', 'LAX', 'BOS') AND month = 4
GROUP BY dest, origin ORDER BY dest, origin
