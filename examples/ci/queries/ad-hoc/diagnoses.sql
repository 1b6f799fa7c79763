-- dpsql: ignore[DP301] shown in a training as what not to do; never run
SELECT patient_id, COUNT(*) AS visits FROM visits GROUP BY patient_id;

-- dpsql: ignore[DP303] left over from an older query
SELECT i.title, COUNT(*) AS visits FROM visits AS v JOIN icd10 AS i ON i.code = v.code GROUP BY i.title;
