-- refused: DP201    `flight` is a number without bounds.
SELECT AVG(flight) FROM flights
