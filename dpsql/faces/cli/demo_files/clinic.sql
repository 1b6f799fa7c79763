-- Invented data: every value is computed from a row number, so the database is the same on each machine.
CREATE MACRO chance(i, what) AS (hash(i, what) % 1000000) / 1000000.0;
CREATE MACRO pick(items, share) AS items[1 + CAST(floor(len(items) * share) AS INTEGER)];

CREATE TABLE icd10 (code VARCHAR PRIMARY KEY, title VARCHAR NOT NULL, chapter VARCHAR NOT NULL);
INSERT INTO icd10 VALUES
    ('E11', 'Type 2 diabetes', 'metabolic'), ('E78', 'High cholesterol', 'metabolic'),
    ('F32', 'Depression', 'mental'), ('F41', 'Anxiety', 'mental'),
    ('I10', 'High blood pressure', 'heart'), ('I25', 'Heart disease', 'heart'),
    ('J06', 'Common cold', 'lungs'), ('J20', 'Bronchitis', 'lungs'), ('J45', 'Asthma', 'lungs'),
    ('M54', 'Back pain', 'bones'), ('M17', 'Worn knee', 'bones'), ('S93', 'Sprained ankle', 'bones');

CREATE TABLE patients (
    patient_id BIGINT PRIMARY KEY, age INTEGER NOT NULL, region VARCHAR NOT NULL, town VARCHAR, smoker BOOLEAN NOT NULL
);
INSERT INTO patients
SELECT
    i,
    CAST(floor(100 * (0.55 * chance(i, 'age') + 0.40 * chance(i, 'older'))) AS INTEGER),
    pick(['north', 'north', 'south', 'south', 'south', 'east', 'west', 'west'], chance(i, 'region')),
    CASE
        WHEN i % 6007 = 0 THEN 'Lonely Farm'
        ELSE pick(
            ['Millbridge', 'Eastport', 'Oakfield', 'Stonebury', 'Redhill', 'Harbour', 'Newmarsh', 'Clearwater',
             'Pinewood', 'Weststead', 'Longlea', 'Highmoor'],
            pow(chance(i, 'town'), 2)
        )
    END,
    chance(i, 'smoker') < 0.19
FROM range(1, 20001) AS numbers(i);

CREATE TABLE visits (
    visit_id BIGINT PRIMARY KEY, patient_id BIGINT NOT NULL REFERENCES patients (patient_id), day DATE NOT NULL,
    ward VARCHAR NOT NULL, code VARCHAR NOT NULL, cost DOUBLE, surcharge DOUBLE
);
INSERT INTO visits
SELECT
    row_number() OVER (ORDER BY p.patient_id, n),
    p.patient_id,
    DATE '2025-01-01' + CAST(floor(365 * chance(p.patient_id * 100 + n, 'day')) AS INTEGER),
    pick(['surgery', 'medicine', 'medicine', 'children', 'outpatient'], chance(p.patient_id * 100 + n, 'ward')),
    pick(
        ['E11', 'E78', 'F32', 'F41', 'I10', 'I25', 'J06', 'J20', 'J45', 'M54', 'M17', 'S93'],
        chance(p.patient_id * 100 + n, 'code')
    ),
    round(35 + 900 * pow(chance(p.patient_id * 100 + n, 'cost'), 3), 2),
    CASE WHEN chance(p.patient_id * 100 + n, 'extra') < 0.05
         THEN round(100 / (0.001 + chance(p.patient_id * 100 + n, 'surcharge')), 2) END
FROM patients AS p, range(1, 16) AS visits_of_one(n)
WHERE n <= least(12, floor(16 * pow(chance(p.patient_id, 'visits'), 2)));
DROP MACRO pick;
DROP MACRO chance;
