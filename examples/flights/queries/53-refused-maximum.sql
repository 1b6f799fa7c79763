-- refused: DP101    One flight decides the maximum.
SELECT carrier, MAX(dep_delay) FROM flights GROUP BY carrier
