-- Departures from New York; an aircraft is the privacy unit.

-- wants: flights by airport
SELECT origin, COUNT(*) AS n FROM flights GROUP BY origin;

-- wants: mean delays by airline, with its name
SELECT a.name, AVG(f.dep_delay) AS delay FROM flights f JOIN airlines a USING (carrier) GROUP BY a.name ORDER BY delay DESC;

-- wants: the share of late flights by hour
SELECT hour, AVG(CASE WHEN arr_delay > 15 THEN 1.0 ELSE 0.0 END) AS late FROM flights GROUP BY hour ORDER BY hour;

-- wants: cancelled flights
SELECT COUNT(*) FILTER (WHERE dep_time IS NULL) AS cancelled, COUNT(*) AS n FROM flights;

-- wants: speed of the aircraft
SELECT AVG(distance / (air_time / 60)) AS mph FROM flights;

-- repaired: of flights that last, and bounded
SELECT AVG(CLIP(distance / (air_time / 60), 0, 600)) AS mph FROM flights WHERE air_time > 0;

-- wants: delays made up in the air
SELECT AVG(dep_delay - arr_delay) AS made_up FROM flights;

-- wants: flights of each aircraft
SELECT tailnum, COUNT(*) AS n FROM flights GROUP BY tailnum ORDER BY n DESC;

-- wants: flights of one aircraft
SELECT COUNT(*) AS n FROM flights WHERE tailnum = 'N14228';

-- wants: the busiest destinations
SELECT dest, COUNT(*) AS n FROM flights GROUP BY dest ORDER BY n DESC LIMIT 10;

-- wants: every route
SELECT origin, dest, COUNT(*) AS n, AVG(air_time) AS minutes FROM flights GROUP BY origin, dest;

-- wants: destinations by name
SELECT ap.name, COUNT(*) AS n FROM flights f JOIN airports ap ON ap.faa = f.dest GROUP BY ap.name;

-- wants: flights to airports above 5000 feet
SELECT COUNT(*) AS n FROM flights f JOIN airports ap ON ap.faa = f.dest WHERE ap.alt > 5000;

-- wants: the mean of the flight numbers
SELECT AVG(flight) AS senseless FROM flights;

-- wants: flights by the aircraft's maker
SELECT p.manufacturer, COUNT(*) AS n FROM flights f JOIN planes p USING (tailnum) GROUP BY p.manufacturer;

-- wants: seat miles
SELECT SUM(p.seats * f.distance) AS seat_miles FROM flights f JOIN planes p ON p.tailnum = f.tailnum;

-- wants: the age of the aircraft
SELECT AVG(2013 - p.year) AS age FROM flights f JOIN planes p USING (tailnum);

-- repaired: at most fifty years
SELECT AVG(CLIP(2013 - p.year, 0, 50)) AS age FROM flights f JOIN planes p USING (tailnum);

-- wants: a column that two tables have
SELECT year, COUNT(*) AS n FROM flights JOIN planes USING (tailnum) GROUP BY year;

-- wants: delays when it rains
SELECT w.precip > 0 AS rain, AVG(f.dep_delay) AS delay
FROM flights f JOIN weather w ON w.origin = f.origin AND w.time_hour = f.time_hour
GROUP BY 1;

-- wants: the weather of the hour, half of the condition forgotten
SELECT AVG(f.dep_delay) AS delay FROM flights f JOIN weather w ON w.time_hour = f.time_hour WHERE w.precip > 0;

-- wants: mean wind, which nobody bounded
SELECT AVG(w.wind_speed) AS wind FROM flights f JOIN weather w USING (origin, time_hour);

-- wants: the weather alone
SELECT origin, MAX(temp) AS hottest FROM weather GROUP BY origin;

-- wants: flights by month and airport, with totals
SELECT origin, month, COUNT(*) AS n FROM flights GROUP BY CUBE (origin, month);

-- wants: flights by day of the year
SELECT MAKE_DATE(year, month, day) AS day, COUNT(*) AS n FROM flights GROUP BY 1;

-- wants: flights by day, from the hour
SELECT CAST(time_hour AS DATE) AS day, COUNT(*) AS n FROM flights GROUP BY 1;

-- wants: a week in July
SELECT DATE_TRUNC('day', time_hour) AS day, COUNT(*) AS n
FROM flights WHERE time_hour >= '2013-07-01' AND time_hour < '2013-07-08' GROUP BY 1;

-- wants: nobody's flights
SELECT COUNT(*) AS n FROM flights WHERE tailnum IS NULL;

-- wants: the pairs of airports an aircraft connects
SELECT COUNT(*) AS n FROM flights a JOIN flights b ON a.tailnum = b.tailnum AND a.dest = b.origin;

-- wants: aircraft that flew for two airlines
SELECT COUNT(*) AS n FROM (SELECT tailnum FROM flights GROUP BY tailnum HAVING COUNT(DISTINCT carrier) > 1) AS t;

-- wants: how many flights an aircraft makes, on average
SELECT AVG(n) AS mean FROM (SELECT tailnum, COUNT(*) AS n FROM flights GROUP BY tailnum) AS t;

-- wants: the same over the tail numbers in the register
SELECT COUNT(*) * 1.0 / COUNT(DISTINCT tailnum) AS mean FROM flights;

-- wants: the five airlines with the most delay, and the rest
WITH d AS (SELECT carrier, SUM(dep_delay) AS minutes FROM flights GROUP BY carrier)
SELECT CASE WHEN RANK() OVER (ORDER BY minutes DESC) <= 5 THEN carrier ELSE 'other' END AS who, minutes FROM d;

-- wants: airlines above the mean delay
WITH d AS (SELECT carrier, AVG(dep_delay) AS delay FROM flights GROUP BY carrier)
SELECT carrier FROM d WHERE delay > (SELECT AVG(delay) FROM d);

-- wants: a condition on text that looks like a number
SELECT COUNT(*) AS n FROM flights WHERE carrier = 9;

-- wants: parts of a text
SELECT SUBSTR(tailnum, 1, 1) AS country, COUNT(*) AS n FROM flights GROUP BY 1;

-- wants: an integer division
SELECT sched_dep_time // 100 AS hour, COUNT(*) AS n FROM flights GROUP BY 1;

-- wants: a remainder
SELECT AVG(sched_dep_time % 100) AS minute FROM flights;

-- wants: the hypotenuse of delays
SELECT AVG(SQRT(dep_delay * dep_delay + arr_delay * arr_delay)) AS both FROM flights;

-- wants: the absolute delay
SELECT AVG(ABS(arr_delay)) AS off_by FROM flights;

-- wants: greatest of two
SELECT AVG(GREATEST(dep_delay, arr_delay)) AS worst FROM flights;

-- wants: a delay that counts late flights only
SELECT AVG(NULLIF(GREATEST(dep_delay, 0), 0)) AS late FROM flights;

-- wants: BETWEEN the wrong way round
SELECT COUNT(*) AS n FROM flights WHERE distance BETWEEN 2000 AND 1000;

-- wants: a group that is constant
SELECT 'all' AS what, COUNT(*) AS n FROM flights GROUP BY what;

-- wants: the second group by its number, which is not there
SELECT origin, COUNT(*) AS n FROM flights GROUP BY 3;

-- wants: an order by a column that is not shown
SELECT origin, COUNT(*) AS n FROM flights GROUP BY origin ORDER BY AVG(dep_delay);

-- wants: an order by nothing that is there
SELECT origin, COUNT(*) AS n FROM flights GROUP BY origin ORDER BY total;

-- wants: first and last flights
SELECT carrier, FIRST(dest ORDER BY time_hour) AS first FROM flights GROUP BY carrier;

-- wants: a histogram
SELECT HISTOGRAM(dep_delay) AS h FROM flights;

-- wants: a regression
SELECT REGR_SLOPE(arr_delay, dep_delay) AS slope FROM flights;

-- wants: quartiles
SELECT APPROX_QUANTILE(dep_delay, [0.25, 0.5, 0.75]) AS q FROM flights;

-- wants: the mode
SELECT MODE(carrier) AS most FROM flights;

-- wants: bits of a flag
SELECT BOOL_OR(dep_delay > 120) AS any_late FROM flights;
