"""A file of trips, day by day, behind a policy with a budget for each day: for counters over real services."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from pathlib import Path

import duckdb

from dpsql.core.ledger import closings
from dpsql.policy.load import load_policy
from dpsql.service.accounts.ledgers import open_ledger, place_of

FIRST = dt.date(2026, 1, 1)
POLICY = """\
version: 1
name: trips
database: trips.duckdb
ledger: {ledger}
privacy: {{accountant: {accountant}}}
budgets:
  each_period: {each}
  analysts: {{ana: {each}, ben: {each}}}
tables:
  trips:
    unit: {{rows: 1}}
    grows: {{by: day, every: day, from: 2026-01-01{keep}}}
    columns:
      day: {{type: date}}
      station: {{type: bigint, domain: [1, 2], nullable: false}}
      minutes: {{type: bigint, bounds: [0, {most}], nullable: false}}
  stations:
    public: true
    unique: [[station]]
    columns: {{station: {{type: bigint, nullable: false}}, name: {{type: varchar, domain: [a, b], nullable: false}}}}
"""
RIDES = (
    "CREATE DP COUNTER rides AS SELECT station, COUNT(*) AS n, SUM(minutes) AS minutes FROM trips GROUP BY station "
    "FROM DATE '2026-01-02' WITH (rho = {rho})"
)
EXACT = "'100000000000000'"
"""At this price no noise is ever seen."""
PER_DAY = 5


def day(n: int) -> dt.date:
    """The n-th day, from 1."""
    return FIRST + dt.timedelta(days=n - 1)


@dataclass(frozen=True)
class Trips:
    """Station 1 has five trips a day of one minute each, station 2 twice as many of ten."""

    folder: Path

    @property
    def policy(self) -> str:
        return str(self.folder / "policy.yaml")

    def write(
        self, accountant: str = "zcdp", each: str = "{rho: 1}", keep: str = "", most: int = 20, ledger: str = "l.sqlite"
    ) -> None:
        text = POLICY.format(accountant=accountant, each=each, keep=keep, most=most, ledger=ledger)
        (self.folder / "policy.yaml").write_text(text)

    def close(self, n: int) -> None:
        """All days up to the n-th."""
        policy = load_policy(self.policy)
        with open_ledger(policy, place_of(policy, None)) as ledger:  # type: ignore[arg-type,attr-defined]
            closings.close(ledger, policy, policy.tables["trips"], day(n))


def make_trips(folder: Path, days: int = 12, **said: str) -> Trips:
    """In a folder that is there."""
    with duckdb.connect(str(folder / "trips.duckdb")) as connection:
        connection.execute("CREATE TABLE trips (day DATE, station BIGINT, minutes BIGINT)")
        connection.execute("CREATE TABLE stations AS FROM (VALUES (1::BIGINT, 'a'), (2, 'b')) AS v(station, name)")
        rows = [
            (day(n), station, minutes)
            for n in range(1, days + 1)
            for station, minutes, times in ((1, 1, PER_DAY), (2, 10, 2 * PER_DAY))
            for _ in range(times)
        ]
        connection.executemany("INSERT INTO trips VALUES (?, ?, ?)", rows)
    found = Trips(folder)
    found.write(**said)  # type: ignore[arg-type]
    return found
