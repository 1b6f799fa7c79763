-- refused: DP110    These would be rows of single flights.
SELECT tailnum, dep_delay FROM flights WHERE month = 1
