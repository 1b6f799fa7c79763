-- Different aircraft of each airline in a week of July: carrier is a public list, so tiny airlines appear too.
SELECT carrier, COUNT(DISTINCT tailnum) AS aircraft
FROM flights WHERE month = 7 AND day BETWEEN 1 AND 7
GROUP BY carrier ORDER BY aircraft DESC, carrier
