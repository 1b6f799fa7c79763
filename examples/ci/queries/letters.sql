-- How many letters were written: nothing limits how many one patient gets.
SELECT COUNT(*) AS letters FROM letters;

-- The limit may also stand in the query.
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = 10) COUNT(*) AS letters FROM letters;

-- Letters of the patients of a ward, joined on the wrong column.
SELECT COUNT(*) AS letters FROM letters JOIN visits ON letters.letter_id = visits.visit_id WHERE ward = 'surgery';
