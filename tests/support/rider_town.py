"""Growing tables whose unit is one rider's day, in several databases at once, and exact integers of their plans."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from dpsql.core.engine import RawTable
from dpsql.core.ir.periods import Closed
from dpsql.core.ir.public_facts import PublicFacts
from dpsql.core.printing.computed import computed_columns, with_columns
from dpsql.diagnostics.diagnostic import Source
from dpsql.frontend.bind.expressions.computed import with_computed
from dpsql.planner.compile import compile_query
from dpsql.planner.computed import understood
from dpsql.planner.plan import Plan
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.policy.load import parse_policy
from dpsql.policy.policy import Policy
from dpsql.service.planning.public_facts import FactStore
from dpsql.spelling.duckdb_functions import DUCKDB
from tests.support.neighbour_oracle import Vector, exact
from tests.support.random_databases import Store

FIRST = dt.date(2026, 1, 5)
"""A Monday."""
DAYS = [FIRST + dt.timedelta(days=n) for n in range(3)]
RIDERS = """
version: 1
name: town
budgets: {budgets}
tables:
  trips:
    unit: {{of: rider_day, column: rider{per}}}
    grows: {{by: day, every: {every}, from: 2026-01-05}}
    max_rows_per_unit: {limit}
    columns:
      rider: {{type: {type}}}
      day: {{type: date}}
      station: {{type: bigint, domain: [1, 2], nullable: false}}
  walks:
    unit: {{of: rider_day, column: rider{per}}}
    grows: {{by: on_day, every: {every}, from: 2026-01-05}}
    max_rows_per_unit: {limit}
    columns:
      rider: {{type: {type}}}
      on_day: {{type: date}}
      km: {{type: bigint, bounds: [0, 3], nullable: false}}
"""
Row = tuple[object, dt.date | None, int]
BY_PERIOD = "{each_period: {epsilon: 2, delta: 1e-3}}"


def rider_text(
    per: bool = True, *, limit: int = 1, every: str = "day", type: str = "bigint", budgets: str | None = None
) -> str:
    """per: whether the unit is one rider's day; else it is a rider."""
    total = "{total: {epsilon: 1000, delta: 1e-3}}"
    return RIDERS.format(
        per=", per: period" if per else "", every=every, limit=limit, type=type,
        budgets=budgets or (BY_PERIOD if per else total),
    )  # fmt: skip


def rider_policy(
    per: bool = True, *, limit: int = 1, every: str = "day", type: str = "bigint", budgets: str | None = None
) -> Policy:
    """The same, understood as DuckDB computes it."""
    text = rider_text(per, limit=limit, every=every, type=type, budgets=budgets)
    return understood(parse_policy(text, "town.yaml"))


class RiderTown(Store):
    """Its databases by number; every statement reads the one that is shown."""

    def __init__(self, policy: Policy | None = None, closed: dt.date = DAYS[-1]) -> None:
        super().__init__()
        self.policy = policy or rider_policy()
        self.closed: Mapping[str, Closed] = {"trips": Closed(closed), "walks": Closed(closed)}
        self.facts = FactStore(self, lambda: self.closed)  # type: ignore[arg-type]
        self.selected = computed_columns(self.policy, DUCKDB)
        rider = self.policy.tables["trips"].columns["rider"].type
        self.connection.execute(f"CREATE TABLE trips (db INT, rider {rider}, day DATE, station BIGINT)")
        self.connection.execute(f"CREATE TABLE walks (db INT, rider {rider}, on_day DATE, km BIGINT)")

    def put(self, db: int, trips: Iterable[Row], walks: Iterable[Row] = ()) -> None:
        """The rows of one database."""
        for name, rows in (("trips", trips), ("walks", walks)):
            if listed := [[db, *row] for row in rows]:
                self.connection.executemany(f"INSERT INTO {name} VALUES (?, ?, ?, ?)", listed)

    def table_sql(self, name: str) -> str:
        return with_columns(f"(SELECT * EXCLUDE (db) FROM {name} WHERE db = $db)", self.selected.get(name))

    def plan(self, sql: str) -> Plan:
        """Raises Rejected."""
        settings = QuerySettings(Fraction(1), Fraction(1, 10**6), anyway=True)
        self.facts.look_at_periods()
        return self.facts.compile(
            lambda public: compile_query(Source(sql), self.policy, public, settings, (), self.table_sql)
        )

    def integers(self, plan: Plan, db: int) -> list[Vector]:
        """What noise would be added to, release by release."""
        self.show(db)
        return [exact(planned, self) for planned in plan.releases]


QUESTIONS = (
    "SELECT COUNT(*) FROM trips",
    "SELECT COUNT(*) FROM trips WHERE day = DATE '2026-01-06'",
    "SELECT day, COUNT(*), COUNT(DISTINCT rider) FROM trips GROUP BY day",
    "SELECT station, COUNT(*) FROM trips GROUP BY station",
    "SELECT COUNT(DISTINCT rider) FROM trips",
    "SELECT COUNT(DISTINCT rider) FROM walks WHERE on_day = DATE '2026-01-07'",
    "SELECT SUM(km), COUNT(*) FROM walks WHERE on_day <= DATE '2026-01-06'",
    "SELECT AVG(CLIP(n, 0, 2)) FROM (SELECT rider, day, COUNT(*) AS n FROM trips GROUP BY rider, day) t",
    "SELECT COUNT(*), SUM(w.km) FROM trips t JOIN walks w ON t.rider = w.rider AND t.day = w.on_day",
    "SELECT COUNT(*) FROM trips t WHERE EXISTS (SELECT 1 FROM walks w WHERE w.rider = t.rider AND w.on_day = t.day)",
    "SELECT COUNT(w.km) FROM trips t LEFT JOIN walks w ON t.rider = w.rider AND t.day = w.on_day AND w.km > 0",
    "SELECT COUNT(*) FROM (SELECT rider, day FROM trips WHERE day = DATE '2026-01-05' UNION ALL "
    "SELECT rider, on_day FROM walks WHERE on_day = DATE '2026-01-07') t",
    "SELECT COUNT(*) FROM (SELECT DISTINCT rider, day, station FROM trips) t",
    "SELECT COUNT(*) FROM (SELECT ROW_NUMBER() OVER (PARTITION BY rider, on_day ORDER BY km) AS r FROM walks) t "
    "WHERE r = 2",
    "SELECT SUM(CLIP(n, 0, 3)) FROM trips t JOIN (SELECT rider, on_day, SUM(km) AS n FROM walks GROUP BY rider, on_day)"
    " w ON t.rider = w.rider AND t.day = w.on_day",
)
"""Of every kind of join and group in which a rider's day may be told."""


class RidersElsewhere(RiderTown):
    """As a town of riders, whose statements another engine answers. bare: what runs texts; made: its schema."""

    def __init__(self, bare: Any, made: str) -> None:
        super().__init__(rider_policy(limit=9))
        self.bare, self.made, self.dialect = bare, made, bare.dialect
        self.policy = with_computed(parse_policy(rider_text(limit=9), "town.yaml"), bare.dialect)
        self.selected = computed_columns(self.policy, bare.dialect)

    def fetch(self, sql: str) -> RawTable:
        return self.bare.fetch(sql.replace("$db", str(self.db)))  # type: ignore[no-any-return]

    def table_sql(self, name: str) -> str:
        columns = ", ".join(self.policy.tables[name].columns)
        relation = f"(SELECT {columns} FROM {self.made}.{name} WHERE db = $db)"
        return with_columns(relation, self.selected.get(name))

    def plan(self, sql: str) -> Plan:
        settings, public = QuerySettings(Fraction(1), Fraction(1, 10**6), anyway=True), PublicFacts(periods=self.closed)
        return compile_query(Source(sql), self.policy, public, settings, (), self.table_sql, self.dialect)


def rows_of_riders() -> list[tuple[str, int, Row]]:
    """Rows of several databases: table, number, row."""
    draw, found = random.Random(7), list[tuple[str, int, Row]]()
    for db in range(3):
        for name in ("trips", "walks"):
            for _ in range(12):
                row = draw.choice([1, 2, 11, None]), draw.choice([*DAYS, *DAYS, LATER, None]), draw.choice((1, 2, 3))
                found.append((name, db, row))
    return found


LATER = DAYS[-1] + dt.timedelta(days=1)


def as_duckdb_counts(elsewhere: RidersElsewhere) -> int:
    """How many of the questions' integers are DuckDB's over the same rows. Raises AssertionError: one is not."""
    town, seen = RiderTown(rider_policy(limit=9)), 0
    for name, db, row in rows_of_riders():
        town.put(db, [row] if name == "trips" else [], [row] if name == "walks" else [])
    for sql in QUESTIONS:
        for db in range(3):
            own, others = town.integers(town.plan(sql), db), elsewhere.integers(elsewhere.plan(sql), db)
            assert own == others, sql
            seen += any(any(numbers) for vector in own for numbers in vector.values())
    town.close()
    return seen
