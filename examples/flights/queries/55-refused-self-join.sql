-- refused: DP230    Pairs of flights that are not joined on the aircraft.
SELECT COUNT(*) FROM flights AS a JOIN flights AS b ON a.dest = b.origin
