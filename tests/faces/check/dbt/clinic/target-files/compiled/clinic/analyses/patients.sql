SELECT COUNT(*) FILTER (region = 'north') AS north,
       COUNT(*) FILTER (region = 'south') AS south,
       COUNT(*) AS n
FROM "clinic"."raw"."patients"