-- refused: DP110    Single flights would be shown.
SELECT tailnum, dep_delay FROM flights ORDER BY dep_delay DESC LIMIT 10
