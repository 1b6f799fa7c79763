-- Orders of a shop; an order is the privacy unit.

-- wants: orders and turnover by status
SELECT status, COUNT(*) AS n, SUM(amount) AS turnover FROM orders GROUP BY status ORDER BY turnover DESC;

-- wants: turnover by city; a store has had up to three managers, and each is a row
SELECT s.city, SUM(o.amount) AS turnover FROM orders o JOIN stores s ON s.id = o.store GROUP BY s.city;

-- wants: by country, over two public tables
SELECT c.country, COUNT(*) AS n
FROM orders o
JOIN stores s ON s.id = o.store
JOIN cities c ON c.name = s.city
GROUP BY c.country;

-- wants: tips, without bounds
SELECT AVG(tip) AS tip FROM orders;

-- wants: the tip as a share of the amount
SELECT AVG(tip / amount) AS share FROM orders;

-- repaired: bounded after the division
SELECT AVG(CLIP(tip / amount, 0, 1)) AS share FROM orders;

-- wants: the share of all tips in all amounts
SELECT SUM(tip) / SUM(amount) AS share FROM orders;

-- wants: price of a piece
SELECT AVG(amount / quantity) AS each FROM orders;

-- wants: ratings as they are
SELECT rating, COUNT(*) AS n FROM orders GROUP BY rating ORDER BY rating;

-- wants: the mean rating by express
SELECT express, AVG(rating) AS mean FROM orders GROUP BY express;

-- wants: all customers
SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer ORDER BY total DESC LIMIT 10;

-- wants: customers with more than ten orders
SELECT COUNT(*) AS loyal FROM (SELECT customer FROM orders GROUP BY customer HAVING COUNT(*) > 10) AS c;

-- wants: the number of different customers
SELECT COUNT(DISTINCT customer) AS customers FROM orders;

-- wants: orders by day
SELECT placed, COUNT(*) AS n FROM orders GROUP BY placed ORDER BY placed;

-- wants: by week
SELECT DATE_TRUNC('week', placed) AS week, SUM(amount) AS turnover FROM orders GROUP BY 1;

-- wants: growth against the month before
WITH m AS (SELECT MONTH(placed) AS month, SUM(amount) AS turnover FROM orders GROUP BY 1)
SELECT month, turnover, turnover / LAG(turnover) OVER (ORDER BY month) - 1 AS growth FROM m;

-- wants: months as columns, by hand
SELECT status,
       SUM(CASE WHEN MONTH(placed) = 1 THEN amount END) AS jan,
       SUM(CASE WHEN MONTH(placed) = 2 THEN amount END) AS feb
FROM orders GROUP BY status;

-- wants: sizes as words
SELECT CASE WHEN amount < 20 THEN 'small' WHEN amount < 100 THEN 'medium' ELSE 'large' END AS size, COUNT(*) AS n
FROM orders GROUP BY 1;

-- wants: sizes as words, ordered by the amount
SELECT CASE WHEN amount < 20 THEN 'small' ELSE 'large' END AS size, COUNT(*) AS n
FROM orders GROUP BY 1 ORDER BY amount;

-- wants: buckets of amounts
SELECT ROUND(amount, -1) AS bucket, COUNT(*) AS n FROM orders GROUP BY bucket;

-- wants: groups of amounts themselves
SELECT amount, COUNT(*) AS n FROM orders GROUP BY amount;

-- wants: groups of weights, which are DOUBLE
SELECT weight, COUNT(*) AS n FROM orders GROUP BY weight;

-- repaired: whole kilograms
SELECT CAST(FLOOR(weight) AS INTEGER) AS kg, COUNT(*) AS n FROM orders GROUP BY 1;

-- wants: notes as groups
SELECT note, COUNT(*) AS n FROM orders GROUP BY note HAVING COUNT(*) > 20;

-- wants: the same in small letters
SELECT LOWER(TRIM(note)) AS note, COUNT(*) AS n FROM orders GROUP BY LOWER(TRIM(note));

-- wants: the number of words
SELECT AVG(ARRAY_LENGTH(STRING_SPLIT(note, ' '))) AS words FROM orders;

-- wants: what is missing
SELECT COUNT(*) - COUNT(weight) AS missing, COUNT(*) FILTER (WHERE rating IS NULL) AS unrated FROM orders;

-- wants: the heaviest of each status
SELECT status, MAX(weight) AS heaviest FROM orders GROUP BY status;

-- wants: the heaviest orders
SELECT order_id, weight FROM orders WHERE weight > 25;

-- wants: shares of returns by store
SELECT store, AVG(CASE WHEN status = 'returned' THEN 1 ELSE 0 END) AS share FROM orders GROUP BY store;

-- wants: shares of a comparison
SELECT AVG(status = 'returned') AS share FROM orders;

-- wants: everything at once
SELECT COUNT(*), SUM(amount), AVG(amount), STDDEV(amount), AVG(weight), SUM(quantity) FROM orders WHERE placed >= '2024-07-01';

-- wants: turnover of stores in a list
SELECT SUM(amount) AS turnover FROM orders WHERE store IN (1, 2, 3);

-- wants: turnover of stores in a city
SELECT SUM(amount) AS turnover FROM orders WHERE store IN (SELECT id FROM stores WHERE city = 'Bern');

-- wants: stores that sold something
SELECT COUNT(*) AS n FROM stores WHERE id IN (SELECT store FROM orders);

-- wants: stores without an order
SELECT s.id FROM stores s LEFT JOIN orders o ON o.store = s.id WHERE o.order_id IS NULL;

-- wants: public facts only
SELECT city, COUNT(*) AS stores FROM stores GROUP BY city ORDER BY stores DESC LIMIT 3;

-- wants: a public table joined to the public
SELECT s.city, c.area FROM stores s JOIN cities c ON c.name = s.city WHERE c.country = 'CH';

-- wants: orders above the mean
SELECT COUNT(*) AS n FROM orders WHERE amount > (SELECT AVG(amount) FROM orders);

-- wants: a share of the total
SELECT status, SUM(amount) / (SELECT SUM(amount) FROM orders) AS share FROM orders GROUP BY status;

-- wants: the square of amounts
SELECT SUM(amount * amount) AS squares FROM orders;

-- wants: powers
SELECT SUM(POWER(quantity, 3)) AS cubes FROM orders;

-- wants: volume of what has no bounds on one side
SELECT SUM(quantity * tip) AS t FROM orders;

-- wants: a HAVING with a column that is not grouped
SELECT status, COUNT(*) AS n FROM orders GROUP BY status HAVING amount > 10;

-- wants: a nested aggregate
SELECT AVG(SUM(amount)) AS mean FROM orders GROUP BY status;

-- wants: a window and an aggregate of the rows
SELECT status, SUM(SUM(amount)) OVER () AS all_of_them FROM orders GROUP BY status;

-- wants: a window over rows
SELECT SUM(amount) OVER (PARTITION BY status) AS s FROM orders;

-- wants: LIMIT in a subquery
SELECT COUNT(*) AS n FROM (SELECT * FROM orders LIMIT 100) AS t;

-- wants: wrong numbers of arguments
SELECT ROUND() AS r, COUNT(*) AS n FROM orders;

-- wants: a text compared with a number
SELECT COUNT(*) AS n FROM orders WHERE status > 5;

-- wants: a value that is not in the domain
SELECT COUNT(*) AS n FROM orders WHERE status = 'shipped';

-- wants: a clip the wrong way round
SELECT SUM(CLIP(tip, 100, 0)) AS tips FROM orders;

-- wants: a clip by a column
SELECT SUM(CLIP(tip, 0, amount)) AS tips FROM orders;

-- wants: an epsilon in the query
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.1) COUNT(*) AS n FROM orders;

-- wants: an option with a typo
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilom = 0.1) COUNT(*) AS n FROM orders;

-- wants: an epsilon below zero
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = -1) COUNT(*) AS n FROM orders;

-- wants: intervals beside the answer
SELECT status, n, DP_INTERVAL_LOW(n) AS low, DP_INTERVAL_HIGH(n) AS high
FROM (SELECT status, COUNT(*) AS n FROM orders GROUP BY status) AS t;
