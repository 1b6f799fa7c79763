-- Mistakes with one clear repair each: `dpsql check --fix --unsafe-fixes` makes them.
SELECT regoin, COUNT(*) AS n FROM patients GROUP BY region;

SELECT AVG(age) AS age FROM patiens;

SELECT ward, COUNT_STAR() AS n FROM visits GROUP BY ward ORDER BY n DESC LIMIT 2;

SELECT COUNT(*) AS n FORM visits;
