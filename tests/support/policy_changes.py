"""A policy, questions that are asked under it, and changes of it, each with the questions whose answers it loses."""

from __future__ import annotations

from pathlib import Path

import duckdb

POLICY = """
version: 1
name: bikes
data_version: "1"
database: bikes.duckdb
ledger: bikes.sqlite
ledger_head: bikes.head
privacy: {accountant: approx_dp}
units: {rider: {}}
tables:
  riders:
    unit: {column: id, of: rider}
    source: read_parquet('riders.parquet')
    primary_key: [id]
    max_rows_per_unit: 1
    columns:
      id: {type: bigint, nullable: false}
      age: {type: integer, bounds: [0, 100], nullable: false}
      home: {type: varchar, domain: [North, South], nullable: false}
  trips:
    unit: {path: [{column: rider, references: riders(id)}], of: rider}
    source: read_parquet('trips.parquet')
    max_rows_per_unit: 5
    columns:
      rider: {type: bigint, nullable: false}
      station: {type: integer, domain: [1, 2, 3], nullable: false}
      minutes: {type: integer, bounds: [0, 60], nullable: false}
      fee: {type: integer, bounds: [0, 60], nullable: false}
      long: {from: minutes > 20, type: boolean}
      pay: {from: fee, type: integer, bounds: [0, 60]}
      note: {type: varchar, nullable: false}
  stations:
    public: true
    source: read_parquet('stations.parquet')
    unique: [[code]]
    columns:
      code: {type: integer, nullable: false}
      city: {type: varchar, nullable: false}
  repairs:
    unit: {rows: 1}
    max_frequency: [{columns: [station], rows: 2, enforce: truncate}]
    columns:
      station: {type: integer, nullable: false}
      hours: {type: integer, bounds: [0, 9], nullable: false}
defaults: {delta: 1e-6, min_units: 1}
budgets:
  total: {epsilon: 1000, delta: 0.01}
"""

ROWS = {
    "riders": "SELECT i AS id, CAST(20 + i AS INTEGER) AS age, "
    "CASE WHEN i % 2 = 0 THEN 'North' ELSE 'South' END AS home FROM range(40) AS r(i)",
    "trips": "SELECT i % 40 AS rider, CAST(1 + i % 3 AS INTEGER) AS station, CAST(i % 60 AS INTEGER) AS minutes, "
    "CAST(7 * i % 60 AS INTEGER) AS fee, 'n' || (i % 2) AS note FROM range(120) AS r(i)",
    "stations": "SELECT * FROM (VALUES (1, 'Bonn'), (2, 'Bonn'), (3, 'Ulm')) AS v(code, city)",
    "repairs": "SELECT CAST(1 + i % 3 AS INTEGER) AS station, CAST(i % 9 AS INTEGER) AS hours FROM range(12) AS r(i)",
}

QUESTIONS = {
    "count": "SELECT COUNT(*) AS n FROM trips",
    "station": "SELECT station, COUNT(*) AS n FROM trips GROUP BY station",
    "minutes": "SELECT SUM(minutes) AS m FROM trips",
    "pay": "SELECT SUM(pay) AS p FROM trips",
    "long": "SELECT COUNT(*) AS n FROM trips WHERE long",
    "city": "SELECT city, COUNT(*) AS n FROM trips JOIN stations ON station = code GROUP BY city",
    "note": "SELECT note, COUNT(*) AS n FROM trips GROUP BY note",
    "riders": "SELECT COUNT(*) AS n FROM riders WHERE age > 30",
    "first": "SELECT COUNT(*) AS n FROM "
    "(SELECT home, ROW_NUMBER() OVER (PARTITION BY id ORDER BY age) AS r FROM riders) WHERE r = 1 AND home = 'North'",
    "repairs": "SELECT COUNT(*) AS n FROM repairs",
    "twice": "SELECT COUNT(*) AS n FROM repairs AS a JOIN repairs AS b ON a.station = b.station",
}
EVERY = set(QUESTIONS)
ON_TRIPS = {"count", "station", "minutes", "pay", "long", "city", "note"}

PARKS = "  parks: {public: true, source: read_parquet('stations.parquet'), columns: {code: {type: integer}}}\n"
MINUTES = "      minutes: {type: integer, bounds: [0, 60], nullable: false}\n"

CHANGES: dict[str, tuple[dict[str, str], set[str]]] = {
    # --- of what nothing is lost, but for questions whose own keys or clips are others now ---
    "a comment": ({"name: bikes\n": "name: bikes  # of the town\n"}, set()),
    "a budget line": ({"epsilon: 1000": "epsilon: 999"}, set()),
    "an analyst": (
        {"budgets:\n": "budgets:\n  analysts: {ana: {epsilon: 900, delta: 0.01}, '*': {epsilon: 1}}\n"},
        set(),
    ),
    "a default": ({"defaults: {": "defaults: {epsilon: 0.5, allow_dearer: true, "}, set()),
    "max_keys that is not reached": ({"defaults: {": "defaults: {max_keys: 1000, "}, set()),
    "search": ({"units: {rider": "search: refuse\nunits: {rider"}, set()),
    "a value in a domain": ({"domain: [1, 2, 3]": "domain: [1, 2, 3, 4]"}, {"station"}),
    "a value in a domain that no question has": ({"[North, South]": "[North, South, West]"}, set()),
    "no domain": ({", domain: [North, South]": ""}, set()),
    "wider bounds": (
        {"minutes: {type: integer, bounds: [0, 60]": "minutes: {type: integer, bounds: [0, 90]"},
        {"minutes"},
    ),
    "bounds of a column that is not summed": (
        {"fee: {type: integer, bounds: [0, 60]": "fee: {type: integer, bounds: [0, 7]"},
        set(),
    ),
    "a public station": ({"stations": "(4, 'Ulm')"}, set()),
    "a public station in another city": ({"stations": "(4, 'Trier')"}, {"city"}),
    "another table": ({"  repairs:\n": f"{PARKS}  repairs:\n"}, set()),
    "a column that is not read": (
        {"      fee: {type: i": "      mood: {type: varchar, from: note}\n      fee: {type: i"},
        set(),
    ),
    "a column fewer": ({"      fee: {type: integer, bounds: [0, 60], nullable: false}\n": ""}, set()),
    "columns in another order": ({MINUTES: "", "      note: {": f"{MINUTES}      note: {{"}, set()),
    "a foreign key": (
        {
            "    unique: [[code]]\n": "    foreign_keys: [{columns: [code], references: stations(code)}]\n"
            "    unique: [[code]]\n"
        },
        set(),
    ),
    "a type written otherwise": ({"minutes: {type: integer": "minutes: {type: INT"}, set()),
    # --- of what all that reads it is lost ---
    "a data version": ({'data_version: "1"': 'data_version: "2"'}, EVERY),
    "a source": ({"read_parquet('trips.parquet')": "read_parquet('trips2.parquet')"}, ON_TRIPS),
    "an option of a source": (
        {"read_parquet('trips.parquet')": "read_parquet('trips.parquet', filename = false)"},
        ON_TRIPS,
    ),
    "a source of a path's table": (
        {"read_parquet('riders.parquet')": "read_parquet('riders2.parquet')"},
        ON_TRIPS | {"riders", "first"},
    ),
    "a source of a public table": ({"read_parquet('stations.parquet')": "read_parquet('stations2.parquet')"}, {"city"}),
    "a limit": ({"max_rows_per_unit: 5": "max_rows_per_unit: 6"}, ON_TRIPS),
    "a limit of a path's table": (
        {"max_rows_per_unit: 1\n": "max_rows_per_unit: 2\n"},
        ON_TRIPS | {"riders", "first"},
    ),
    "a limit of groups": (
        {"    max_rows_per_unit: 5\n": "    max_rows_per_unit: 5\n    max_groups_per_unit: 2\n"},
        ON_TRIPS,
    ),
    "a frequency": ({"rows: 2, enforce": "rows: 3, enforce"}, {"repairs", "twice"}),
    "a unit's name": (
        {"units: {rider: {}}": "units: {person: {}}\nformer_units: {rider: person}", "of: rider": "of: person"},
        ON_TRIPS | {"riders", "first"},
    ),
    "a unit of more rows": ({"unit: {rows: 1}": "unit: {rows: 2}"}, {"repairs", "twice"}),
    "a unit of another column": (
        {"unit: {path: [{column: rider, references: riders(id)}], of: rider}": "unit: {column: rider, of: rider}"},
        ON_TRIPS,
    ),
    "neighbours": ({"privacy: {": "privacy: {neighbours: replace_one, "}, EVERY),
    "a promised key": ({"    unique: [[code]]\n": ""}, {"city"}),
    "a promised key of a path's table": (
        {"    primary_key: [id]\n": "    unique: [[id]]\n"},
        ON_TRIPS | {"riders", "first"},
    ),
    "a type": ({"from: fee, type: integer": "from: fee, type: bigint"}, {"pay"}),
    "NULL": (
        {"minutes: {type: integer, bounds: [0, 60], nullable: false}": "minutes: {type: integer, bounds: [0, 60]}"},
        {"minutes", "long"},
    ),
    "a computed column": ({"from: minutes > 20": "from: minutes > 21"}, {"long"}),
    "a column made of another": (
        {"minutes: {type: integer": "minutes: {from: fee, type: integer"},
        {"minutes", "long"},
    ),
    "a column that rows are ordered by": ({"bounds: [0, 9], nullable: false": "bounds: [0, 9]"}, {"twice"}),
    "a column more where rows are ordered by all": (
        {"      hours: {": "      days: {from: hours, type: integer}\n      hours: {"},
        {"twice"},
    ),
    "a column more where rows are numbered": (
        {"      age: {type: i": "      mood: {type: varchar, from: home}\n      age: {type: i"},
        {"first"},
    ),
    "fewest units": ({"min_units: 1": "min_units: 3"}, {"note"}),
    "a database": ({"bikes.duckdb": "other.duckdb"}, EVERY),
}


def changed(changes: dict[str, str]) -> str:
    """The policy with other words in it."""
    text = POLICY
    for old, new in changes.items():
        if old not in ROWS:
            assert old in text, old
            text = text.replace(old, new)
    return text


def made(folder: Path) -> None:
    """The policy with its data, twice, in a folder."""
    for place in ("bikes.duckdb", "other.duckdb"):
        with duckdb.connect(folder / place) as data:
            for name, sql in ROWS.items():
                data.execute(f"CREATE TABLE {name} AS {sql}")
                for file in (name, f"{name}2"):
                    data.execute(f"COPY {name} TO '{folder / file}.parquet'")
    (folder / "bikes.yaml").write_text(POLICY, encoding="utf-8")
