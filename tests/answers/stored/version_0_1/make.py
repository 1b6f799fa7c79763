"""The ledgers of dpsql 0.1 and the answers beside them, as tests/answers/stored/test_version_0_1.py opens them.

    PYTHONPATH=<the tree of commit 37ace27> python make.py     (its environment, DuckDB 2.0.0)

Noise and salts are the operating system's, so a second run writes other files.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb

HERE = Path(__file__).parent

DATA = """\
CREATE TABLE visits AS
SELECT i // 20 AS person, CAST(i % 20 AS INTEGER) AS month, 'town ' || (i % 20) AS town, ['n', 's'][1 + i % 2] AS side,
  CAST(i % 50 AS INTEGER) AS paid
FROM range(8000) t(i);
CREATE TABLE tills AS SELECT CAST(i % 40 AS INTEGER) AS paid FROM range(500) t(i);
"""
"""400 people with one visit in each of 20 months, each in another town."""

POLICY = """\
version: 1
name: visits
database: visits.duckdb
privacy: {{accountant: {accountant}}}
units: {{person: {{}}, till: {{}}}}
tables:
  visits:
    unit: {{of: person, column: person}}
    max_rows_per_unit: 5
    columns:
      person: {{type: bigint, nullable: false}}
      month:  {{type: integer, bounds: [0, 19], nullable: false}}
      town:   {{type: varchar, nullable: false}}
      side:   {{type: varchar, domain: [n, s], nullable: false}}
      paid:   {{type: integer, bounds: [0, 50], nullable: false}}
  tills:
    unit: {{of: till, rows: 1}}
    columns:
      paid: {{type: integer, bounds: [0, 50], nullable: false}}
budgets:
  total: {total}
  analysts:
    ana: {total}
    ben: {total}
    '*': {total}
"""

COUNT = "SELECT COUNT(*) AS n FROM visits"
BY_SIDE = "SELECT side, COUNT(*) AS n, AVG(paid) AS mean FROM visits GROUP BY side"
MONTHS = "SELECT COUNT(DISTINCT month) AS n FROM visits"
BY_TOWN = "SELECT town, COUNT(*) AS n FROM visits GROUP BY town"
TILLS = "SELECT SUM(paid) AS s FROM tills"


@dataclass(frozen=True)
class Account:
    """A ledger's accountant, what its policy allows, and what one query asks for. private: it has δ for keys."""

    total: str
    asked: dict[str, str]
    private: bool


ACCOUNTS = {
    "pure_dp": Account("{epsilon: 20}", {"epsilon": "0.7"}, False),
    "approx_dp": Account("{epsilon: 20, delta: 1e-3}", {"epsilon": "0.7", "delta": "1e-6"}, True),
    "zcdp": Account("{rho: 20, delta: 1e-3}", {"rho": "0.3", "delta": "1e-6"}, True),
}


def asked_by(account: Account) -> list[tuple[str, str]]:
    """Who asked what, in order. ben gets one of ana's answers; the rest is new noise."""
    towns = [("ben", BY_TOWN), ("ana", BY_TOWN)] if account.private else []
    return [("ana", COUNT), ("ana", MONTHS), ("ben", COUNT), ("*", BY_SIDE), ("*", TILLS), *towns]


def policy(folder: Path, accountant: str) -> Path:
    """The policy's file in a folder that has the data."""
    path = folder / f"{accountant}.yaml"
    path.write_text(POLICY.format(accountant=accountant, total=ACCOUNTS[accountant].total), encoding="utf-8")
    return path


def fill(folder: Path) -> None:
    """Make the data."""
    with duckdb.connect(str(folder / "visits.duckdb")) as database:
        database.execute(DATA)


def make() -> None:
    """Write all files."""
    import dpsql
    from dpsql.core.ledger.sqlite import SqliteLedger

    made = {}
    for accountant, account in ACCOUNTS.items():
        with TemporaryDirectory() as name:
            folder = Path(name)
            fill(folder)
            ledger = SqliteLedger.open(folder / "ledger", folder / "head", "visits", accountant)
            for analyst, sql in asked_by(account):
                with dpsql.connect(policy(folder, accountant), ledger=folder / "ledger", analyst=analyst) as con:
                    con.execute(sql, **account.asked)
            made[accountant] = {
                "entries": ledger.verify(),
                "salt": str(ledger.salt),
                "hash": ledger.history()[-1].hash,
                "spent": [
                    [a.unit, a.analyst, str(a.spent.epsilon), str(a.spent.delta), str(a.spent.rho)]
                    for a in ledger.accounts()
                ],
            }
            ledger.close()
            (HERE / f"{accountant}.head").write_bytes((folder / "head").read_bytes())
            for end in ("", ".answers"):
                packed = gzip.compress((folder / f"ledger{end}").read_bytes(), mtime=0)
                (HERE / f"{accountant}.ledger{end}.gz").write_bytes(packed)
    (HERE / "made.json").write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    make()
