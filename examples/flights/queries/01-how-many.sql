-- Flights of the year.
SELECT COUNT(*) AS flights FROM flights
