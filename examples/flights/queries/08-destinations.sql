-- Destinations have no public list here: a destination is shown only if enough aircraft fly to it (this needs a δ).
SELECT dest, COUNT(*) AS n FROM flights WHERE month = 7 GROUP BY dest ORDER BY n DESC, dest
