-- Days, months and years of visits.

-- wants: visits by month
SELECT DATE_TRUNC('month', day) AS month, COUNT(*) AS n FROM visits GROUP BY month ORDER BY month;

-- wants: visits by the number of the month
SELECT EXTRACT(MONTH FROM day) AS month, COUNT(*) AS n FROM visits GROUP BY 1;

-- wants: the same with DuckDB's function
SELECT MONTH(day) AS month, COUNT(*) AS n FROM visits GROUP BY 1;

-- wants: visits of the summer
SELECT COUNT(*) AS n FROM visits WHERE day BETWEEN DATE '2024-06-01' AND DATE '2024-08-31';

-- wants: with a date as a text
SELECT COUNT(*) AS n FROM visits WHERE day >= '2024-06-01';

-- wants: of the last thirty days
SELECT COUNT(*) AS n FROM visits WHERE day >= CURRENT_DATE - INTERVAL 30 DAY;

-- wants: of the last thirty days, by NOW()
SELECT COUNT(*) AS n FROM visits WHERE day >= NOW() - INTERVAL '30 days';

-- repaired: with the day as it is today
SELECT COUNT(*) AS n FROM visits WHERE day >= DATE '2024-11-01';

-- wants: the first day
SELECT MIN(day) AS first FROM visits;

-- wants: days since New Year, on average
SELECT AVG(DATE_DIFF('day', DATE '2024-01-01', day)) AS mean FROM visits;

-- wants: days since New Year by subtraction
SELECT AVG(day - DATE '2024-01-01') AS mean FROM visits;

-- wants: weekdays by name
SELECT STRFTIME(day, '%A') AS weekday, COUNT(*) AS n FROM visits GROUP BY 1;

-- wants: weekdays by number
SELECT DAYOFWEEK(day) AS weekday, COUNT(*) AS n FROM visits GROUP BY 1;

-- wants: an impossible day
SELECT COUNT(*) AS n FROM visits WHERE day > DATE '2024-02-30';

-- wants: quarters, with BigQuery's order of arguments
SELECT DATE_TRUNC(day, QUARTER) AS quarter, COUNT(*) AS n FROM visits GROUP BY 1;

-- wants: the year before the visit
SELECT COUNT(*) AS n FROM visits WHERE day - INTERVAL 1 YEAR > DATE '2023-06-01';

-- wants: a mean of days
SELECT AVG(day) AS middle FROM visits;

-- wants: days from one visit to every later one of a patient
SELECT AVG(DATE_DIFF('day', v.day, w.day)) AS apart
FROM visits AS v JOIN visits AS w ON v.patient_id = w.patient_id AND w.day > v.day;

-- repaired: with the bounds that the policy gives
SELECT AVG(CLIP(DATE_DIFF('day', v.day, w.day), -365, 365)) AS apart
FROM visits AS v JOIN visits AS w ON v.patient_id = w.patient_id AND w.day > v.day;

-- wants: months since a year before the visit, whatever for
SELECT AVG(DATE_DIFF('month', day - INTERVAL 1 YEAR, DATE '2024-12-31')) AS months FROM visits;

-- wants: the day as a number
SELECT AVG(CAST(STRFTIME(day, '%Y%m%d') AS INTEGER)) AS number FROM visits;
