-- refused: DP202    A division by an interval that holds 0 has no bounds.
SELECT AVG(distance / air_time) FROM flights
