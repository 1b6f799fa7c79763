"""What clients asked a PostgreSQL 15 about its schema, and what it answered: `tests/fixtures/catalogue/recorded.json`.

Of each statement: who sent it, its text, its values, and the names, types and rows of the answer. `{oid:visits}` stands
for a table's number and `{oid:type visits}` for that of its rows' type: they differ between servers. Rows of the
system's own tables, types and functions are left out where there are many; `whole` says whether all rows are there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PLACE = Path(__file__).resolve().parents[1] / "fixtures" / "catalogue" / "recorded.json"

POLICY = """
version: 1
name: clinic
database: clinic.duckdb
privacy: {neighbours: add_remove, accountant: approx_dp}
units: {patient: {table: patients, key: patient_id}}
tables:
  icd10:
    public: true
    unique: [[code]]
    columns: {code: {type: varchar, nullable: false}, title: {type: varchar}}
  patients:
    unit: {column: patient_id}
    primary_key: [patient_id]
    columns:
      patient_id: {type: bigint, nullable: false}
      age: {type: integer, nullable: false}
      region: {type: varchar, nullable: false}
      town: {type: varchar}
      smoker: {type: boolean, nullable: false}
  visits:
    unit: {column: patient_id}
    unique: [[visit_id]]
    foreign_keys: [{columns: [patient_id], references: patients(patient_id)}]
    columns:
      visit_id: {type: bigint, nullable: false}
      patient_id: {type: bigint, nullable: false}
      day: {type: date, nullable: false}
      ward: {type: varchar, nullable: false}
      code: {type: varchar, nullable: false}
      cost: {type: double}
      surcharge: {type: "decimal(10,2)"}
      tags: {type: "varchar[]"}
      "Odd name": {type: timestamp}
budgets: {total: {epsilon: 10, delta: 1e-6}}
ledger: clinic.ledger.sqlite
"""

SCRIPT = """
CREATE TABLE icd10 (code varchar NOT NULL UNIQUE, title varchar);
CREATE TABLE patients (patient_id bigint NOT NULL PRIMARY KEY, age integer NOT NULL, region varchar NOT NULL,
  town varchar, smoker boolean NOT NULL);
CREATE TABLE visits (visit_id bigint NOT NULL UNIQUE, patient_id bigint NOT NULL REFERENCES patients (patient_id),
  day date NOT NULL, ward varchar NOT NULL, code varchar NOT NULL, cost double precision, surcharge numeric(10,2),
  tags varchar[], "Odd name" timestamp);
COMMENT ON TABLE icd10 IS 'public';
COMMENT ON TABLE patients IS 'private: unit patient: all rows of one patient_id, add_remove';
COMMENT ON TABLE visits IS 'private: unit patient: all rows of one patient_id, add_remove';
COMMENT ON SCHEMA public IS 'tables of the policy';
GRANT ALL ON ALL TABLES IN SCHEMA public TO ana;
"""

NAMES = ("icd10", "patients", "visits", "icd10_code_key", "patients_pkey", "visits_visit_id_key")
MANY = 60


def recorded() -> list[dict[str, Any]]:
    """The recordings, in the order in which they were made."""
    found: list[dict[str, Any]] = json.loads(PLACE.read_text(encoding="utf-8"))
    return found


def with_oids(text: str | None, oids: Mapping[str, int]) -> str | None:
    """A text with the numbers that tables have here."""
    return None if text is None else re.sub(r"\{oid:(\w+)\}", lambda m: str(oids[m.group(1)]), text)


def without_oids(text: str | None, oids: Mapping[str, int]) -> str | None:
    """A text with names in place of such numbers."""
    names = {str(oid): name for name, oid in oids.items()}
    return (
        None
        if text is None
        else re.sub(r"\b\d{5}\b", lambda m: f"{{oid:{names[m[0]]}}}" if m[0] in names else m[0], text)
    )
