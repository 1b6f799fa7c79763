-- Fees by ward. Two findings: nobody bounds a fee, and a wärd is no column.
SELECT
	ward,
	SUM(fee) AS fees  -- «fee» has no bounds in clinic.yaml
FROM visits
GROUP BY ward;

SELECT wärd, COUNT(*) AS n FROM visits GROUP BY wärd;
