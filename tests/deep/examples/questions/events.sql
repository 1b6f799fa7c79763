SELECT event, COUNT(*) AS n FROM events GROUP BY event ORDER BY n DESC;
SELECT platform, COUNT(DISTINCT user_id) AS users, COUNT(*) AS events FROM events GROUP BY platform;
SELECT timestamp::DATE AS day, COUNT(DISTINCT user_id) AS dau FROM events GROUP BY day ORDER BY day;
SELECT hour(timestamp) AS hour, COUNT(*) FROM events GROUP BY hour ORDER BY hour;
SELECT acquisition_channel, COUNT(DISTINCT user_id) FILTER (WHERE event = 'purchase') * 1.0 / COUNT(DISTINCT user_id) AS conversion FROM events GROUP BY acquisition_channel;
SELECT AVG(n) FROM (SELECT user_id, COUNT(DISTINCT session_id) AS n FROM events GROUP BY user_id);
SELECT date_trunc('week', timestamp) AS week, user_lifecycle, COUNT(*) FROM events GROUP BY 1, 2 ORDER BY 1, 2;
SELECT COUNT(DISTINCT user_id) FROM events e WHERE event = 'cart' AND NOT EXISTS (SELECT 1 FROM events p WHERE p.user_id = e.user_id AND p.event = 'purchase');
