-- refused: DP112    Which rows come first depends on everybody's rows.
SELECT tailnum, dep_delay FROM flights ORDER BY dep_delay DESC LIMIT 10
