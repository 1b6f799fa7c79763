SELECT COUNT(*) FROM flights;
SELECT COUNT(DISTINCT plane) FROM flights;
SELECT origin, COUNT(*) AS n FROM flights GROUP BY origin ORDER BY origin;
SELECT carrier, COUNT(*) AS n, AVG("dep delay") AS late FROM flights GROUP BY carrier ORDER BY n DESC LIMIT 5;
SELECT a.name, COUNT(*) AS n FROM flights f JOIN airlines a ON f.carrier = a.code GROUP BY a.name ORDER BY a.name;
SELECT date_trunc('month', day) AS month, COUNT(*) AS n FROM flights GROUP BY month ORDER BY month;
SELECT EXTRACT(hour FROM "Scheduled At") AS hour, COUNT(*) FROM flights GROUP BY hour ORDER BY hour;
SELECT dayname(day) AS weekday, AVG("dep delay") FROM flights GROUP BY weekday ORDER BY weekday;
SELECT SUM(price) AS revenue, AVG(price) AS mean FROM flights WHERE NOT cancelled;
SELECT COUNT(*) FILTER (WHERE cancelled) * 100.0 / COUNT(*) AS share FROM flights;
SELECT origin, SUM(CASE WHEN "dep delay" > 15 THEN 1 ELSE 0 END) AS late FROM flights GROUP BY origin ORDER BY origin;
SELECT floor(distance / 500) * 500 AS bin, COUNT(*) FROM flights GROUP BY bin ORDER BY bin;
SELECT round(price, -2) AS bin, COUNT(*) FROM flights GROUP BY bin ORDER BY bin;
SELECT city, COUNT(*) FROM raw.planes GROUP BY city ORDER BY city;
SELECT manufacturer, AVG(seats) AS seats FROM raw.planes WHERE manufacturer IN ('AIRBUS', 'BOEING') GROUP BY manufacturer ORDER BY manufacturer;
SELECT AVG(2013 - built) AS age FROM raw.planes;
SELECT p.city, COUNT(*) AS n FROM flights f JOIN raw.planes p ON f.plane = p.id GROUP BY p.city ORDER BY p.city;
SELECT COUNT(*) FROM raw.planes WHERE id IN (SELECT plane FROM flights WHERE origin = 'JFK');
SELECT COUNT(*) FROM raw.planes WHERE id NOT IN (SELECT plane FROM flights WHERE origin = 'JFK');
SELECT COUNT(*) FROM raw.planes p WHERE EXISTS (SELECT 1 FROM flights f WHERE f.plane = p.id AND f.cancelled) OR p.seats > 300;
SELECT AVG(n) AS flights_per_plane FROM (SELECT plane, COUNT(*) AS n FROM flights GROUP BY plane) AS t;
SELECT STDDEV(price) FROM flights;
SELECT CORR("dep delay", arr_delay) FROM flights;
SELECT QUANTILE_CONT(distance, 0.9) FROM flights;
SELECT origin, QUANTILE_DISC(arr_delay, [0.25, 0.5, 0.75]) AS q FROM flights GROUP BY origin ORDER BY origin;
SELECT COUNT(*) FROM flights WHERE day BETWEEN DATE '2013-01-10' AND DATE '2013-01-20';
SELECT COUNT(*) FROM flights WHERE day >= '2013-2-1' AND carrier IN ('UA', 'B6');
SELECT COUNT(*) FROM flights WHERE dest LIKE 'S%' AND air_time > 300;
SELECT COUNT(*) FROM flights WHERE list_contains(tags, 'LAX');
-- DP105: SELECT COUNT(*) FROM (SELECT UNNEST(tags) AS tag FROM flights) AS t WHERE tag = 'LAX'
SELECT tag, COUNT(*) AS n FROM (SELECT UNNEST(tags) AS tag FROM flights) AS t WHERE tag IN ('UA', 'LAX') GROUP BY tag ORDER BY tag;
SELECT COUNT(*) FROM (SELECT plane, day, ROW_NUMBER() OVER (PARTITION BY plane ORDER BY day DESC) AS r FROM flights) AS t WHERE r = 1 AND day >= DATE '2013-02-15';
SELECT AVG(gap) FROM (SELECT date_diff('day', LAG(day) OVER (PARTITION BY plane ORDER BY day), day) AS gap FROM flights) AS t;
SELECT COUNT(DISTINCT dest) FROM flights;
SELECT COUNT(DISTINCT (origin, dest)) FROM flights;
-- DP101: SELECT COUNT(DISTINCT origin || ' ' || dest) FROM flights
SELECT origin, COUNT(*) AS n FROM flights GROUP BY ROLLUP (origin) ORDER BY origin NULLS LAST;
SELECT carrier, AVG(arr_delay) AS late FROM flights GROUP BY carrier HAVING COUNT(*) > 1000 ORDER BY late DESC;
WITH late AS (SELECT * FROM flights WHERE "dep delay" > 60) SELECT origin, COUNT(*) FROM late GROUP BY origin ORDER BY origin;
SELECT COUNT(*) AS n, AVG(date_diff('minute', "Scheduled At", departed)) AS wait FROM flights WHERE departed IS NOT NULL;
SELECT COALESCE(dest, 'none') = 'LAX' AS west, COUNT(*) FROM flights GROUP BY west ORDER BY west;
SELECT AVG(most) FROM (SELECT plane, MAX("dep delay") AS most FROM flights GROUP BY plane) AS t;
SELECT REGR_SLOPE(arr_delay, "dep delay") FROM flights;
SELECT origin, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS share FROM flights GROUP BY origin ORDER BY origin;
SELECT width_bucket(distance, 0, 5000, 10) AS b, COUNT(*) FROM flights GROUP BY b ORDER BY b;
-- DP105: SELECT CAST(floor(distance / 500) AS INTEGER) AS b, COUNT(*) FROM flights GROUP BY b ORDER BY b
SELECT time_bucket(INTERVAL '7 days', day) AS week, COUNT(*) FROM flights GROUP BY week ORDER BY week;
SELECT year(day) - built AS age, COUNT(*) FROM flights f JOIN raw.planes p ON f.plane = p.id WHERE built >= 2000 GROUP BY age ORDER BY age;
SELECT MAX(distance) FROM flights;
-- DP101: SELECT QUANTILE_DISC(distance, 0.99) FROM flights
SELECT model, COUNT(*) AS n FROM raw.planes GROUP BY model ORDER BY n DESC LIMIT 3;
SELECT COUNT(*) FROM (SELECT DISTINCT ON (plane) plane, origin FROM flights ORDER BY plane, day DESC, flight_id) AS t WHERE origin = 'JFK';
SELECT * FROM flights LIMIT 5;
-- DP112: SELECT COUNT(*) FROM flights
SELECT COUNT(*) FROM flights WHERE day < current_date;
SELECT COUNT(CASE WHEN arr_delay < 0 THEN 1 END) AS early, COUNT(arr_delay) AS known FROM flights;
