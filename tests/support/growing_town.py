"""A growing table of trips in several databases at once, the real planner over it, and exact integers of its plans."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import cycle
from typing import Any

from dpsql.core.engine import RawTable
from dpsql.core.ir.nodes import Scan
from dpsql.core.ir.periods import Closed, Span, canonical, covers
from dpsql.core.ir.public_facts import PublicFacts
from dpsql.core.ir.walk import walk
from dpsql.diagnostics.diagnostic import Source
from dpsql.planner.compile import compile_query
from dpsql.planner.plan import Plan
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.policy.load import parse_policy
from dpsql.policy.policy import Policy
from dpsql.service.planning.public_facts import FactStore
from tests.support.neighbour_oracle import Vector, exact
from tests.support.random_databases import Store

FIRST = dt.date(2026, 1, 1)
DAYS = [FIRST + dt.timedelta(days=n) for n in range(-2, 14)]
"""Two days before the table begins, twelve periods, and two that are not closed."""
LAST = DAYS[13]
BUDGETS = "budgets: {total: {epsilon: 1000, delta: 1e-3}}"
TOWN = """
version: 1
name: town
{budgets}
tables:
  trips:
    unit: {{rows: 1}}
    grows: {{by: day, every: {every}, from: {first}{keep}}}
    columns:
      day: {{type: date}}
      station: {{type: bigint, domain: [1, 2, 3], nullable: false}}
      minutes: {{type: bigint, bounds: [0, 20], nullable: false}}
  stations:
    public: true
    unique: [[station]]
    columns: {{station: {{type: bigint, nullable: false}}, name: {{type: varchar, domain: [a, b], nullable: false}}}}
"""
Trip = tuple[dt.date | None, int, int]


def town_policy(budgets: str = BUDGETS, every: str = "day", first: dt.date = FIRST, keep: int | None = None) -> Policy:
    kept = "" if keep is None else f", keep: {keep}"
    return parse_policy(TOWN.format(budgets=budgets, every=every, first=first, keep=kept), "town.yaml")


class Town(Store):
    """Its databases by number; every statement reads the one that is shown."""

    def __init__(self, policy: Policy | None = None, closed: Closed = Closed(LAST)) -> None:  # noqa: B008
        super().__init__()
        self.policy = policy or town_policy()
        self.closed = closed
        self.facts = FactStore(self, lambda: {"trips": self.closed})  # type: ignore[arg-type]
        self.connection.execute("CREATE TABLE trips (db INT, day DATE, station BIGINT, minutes BIGINT)")
        self.connection.execute("CREATE TABLE stations (station BIGINT, name VARCHAR)")
        self.connection.execute("INSERT INTO stations VALUES (1, 'a'), (2, 'b'), (3, 'a')")

    def put(self, db: int, rows: Iterable[Trip]) -> None:
        """The rows of one database."""
        self.connection.executemany("INSERT INTO trips VALUES (?, ?, ?, ?)", [(db, *row) for row in rows])

    def table_sql(self, name: str) -> str:
        if name == "stations":
            return name
        return "(SELECT day, station, minutes FROM trips WHERE db = $db)"

    def plan(self, sql: str) -> Plan:
        """Raises Rejected."""
        settings = QuerySettings(Fraction(1), Fraction(1, 10**6))
        self.facts.look_at_periods()
        return self.facts.compile(
            lambda public: compile_query(Source(sql), self.policy, public, settings, (), self.table_sql)
        )

    def integers(self, plan: Plan, db: int) -> list[Vector]:
        """What noise would be added to, release by release."""
        self.show(db)
        return [exact(planned, self) for planned in plan.releases]


def region(plan: Plan) -> tuple[Span, ...]:
    """The days that any of a plan's scans reads."""
    scans = [n for n in walk(plan.tree.node) if isinstance(n, Scan) and n.table == "trips"]
    assert all(s.periods is not None for s in scans)
    return canonical(span for s in scans if s.periods is not None for span in s.periods.days)


def reads(spans: Sequence[Span], day: dt.date) -> bool:
    return covers(spans, ((day, day),))


def some_trips(draw: random.Random, most: int = 30) -> list[Trip]:
    return [trip(draw, draw.choice([*DAYS, None])) for _ in range(most)]


def trip(draw: random.Random, day: dt.date | None) -> Trip:
    return day, draw.randint(1, 4), draw.randint(-3, 25)


def condition(draw: random.Random, depth: int = 2, name: str = "day") -> str:
    """A random condition, mostly on the day."""
    day = f"DATE '{draw.choice(DAYS)}'"
    if depth and draw.random() < 0.55:
        a, b = condition(draw, depth - 1, name), condition(draw, depth - 1, name)
        return draw.choice([f"({a} AND {b})", f"({a} OR {b})", f"({a} OR {b})", f"NOT {a}"])
    op = draw.choice(["=", "<", "<=", ">", ">="])
    return draw.choice(
        [
            f"({name} {op} {day})",
            f"({name} {op} {day})",
            f"({day} {op} {name})",
            f"({name} IN ({day}, DATE '{draw.choice(DAYS)}'))",
            f"({name} BETWEEN {day} AND DATE '{draw.choice(DAYS)}')",
            f"(date_trunc('month', {name}) = DATE '2026-01-01')",
            f"({name} > last_closed('trips') - {draw.randint(0, 5)})",
            f"({name} <> {day})",
            f"({name} + 1 > {day})",
            f"(minutes {op} 7)",
            f"(dayofweek({name}) = {draw.randint(0, 6)})",
        ]
    )


def query(draw: random.Random) -> str:
    """A random query that reads trips, once or several times."""
    c, d = condition(draw), condition(draw)
    return draw.choice(
        [
            f"SELECT COUNT(*) FROM trips WHERE {c}",
            f"SELECT station, COUNT(*), SUM(minutes) FROM trips WHERE {c} GROUP BY station",
            f"SELECT day, COUNT(*) FROM trips WHERE {c} GROUP BY day",
            f"SELECT COUNT(*), COUNT(*) FILTER (WHERE {d}) FROM trips WHERE {c}",
            f"SELECT COUNT(DISTINCT station) FROM trips WHERE {c}",
            f"SELECT COUNT(*) FROM trips JOIN stations USING (station) WHERE {c}",
            f"SELECT name, COUNT(*) FROM trips t JOIN stations s ON t.station = s.station AND {c} WHERE {d} "
            "GROUP BY name",
            f"SELECT COUNT(t.day) FROM stations s LEFT JOIN trips t ON t.station = s.station AND {c} WHERE {d}",
            f"SELECT COUNT(*) FROM (SELECT day, station FROM trips WHERE {c} UNION ALL SELECT day, station FROM trips "
            f"WHERE {d}) u WHERE {condition(draw, 1).replace('minutes', 'station')}",
            f"SELECT COUNT(*) FROM (SELECT DISTINCT day, minutes FROM trips WHERE {c}) u WHERE {d}",
            f"SELECT COUNT(*) FROM (SELECT day AS tag, minutes FROM trips WHERE {c}) u WHERE "
            f"{condition(draw, 1, 'tag')}",
            f"SELECT COUNT(*) + (SELECT COUNT(*) FROM trips WHERE {d}) AS n FROM trips WHERE {c}",
            f"SELECT COUNT(*) FROM stations s WHERE EXISTS (SELECT 1 FROM trips t WHERE t.station = s.station AND {c})",
        ]
    )


class TownElsewhere(Town):
    """As a town, whose statements another engine answers. bare: what runs texts; made: how its table is called.

    The rows of database −1 are in each; of many databases one statement asks, for a statement costs more than a row.
    """

    def __init__(self, bare: Any, made: str) -> None:
        super().__init__()
        self.bare, self.made, self.dialect = bare, made, bare.dialect
        self._known: dict[tuple[str, int], RawTable] = {}

    def fetch(self, sql: str) -> RawTable:
        if (sql, self.db) not in self._known:
            together = range(self.db, min(self.db + AT_ONCE, NEIGHBOURS + 1))
            each = (f"SELECT {db} AS which, t.* FROM ({sql.replace('$db', str(db))}) AS t" for db in together)
            found = self.bare.fetch(" UNION ALL ".join(each))
            for db in together:
                rows = [row[1:] for row in found.rows() if row[0] == db]
                columns = zip(*rows, strict=True) if rows else [()] * (len(found.names) - 1)
                self._known[sql, db] = RawTable(found.names[1:], tuple(map(list, columns)))
        return self._known[sql, self.db]

    def table_sql(self, name: str) -> str:
        return f"(SELECT day, station, minutes FROM {self.made} WHERE db IN (-1, $db))"

    def plan(self, sql: str) -> Plan:
        settings, public = QuerySettings(Fraction(1), Fraction(1, 10**6)), PublicFacts(periods={"trips": self.closed})
        return compile_query(Source(sql), self.policy, public, settings, (), self.table_sql, self.dialect)


AT_ONCE = 17
"""Databases of one statement."""
ELSEWHERE = (
    "SELECT COUNT(*), SUM(minutes) FROM trips WHERE day BETWEEN DATE '2026-01-03' AND '2026-01-05'",
    "SELECT day, COUNT(*) FROM trips WHERE day > last_closed('trips') - 3 GROUP BY day",
    "SELECT station, COUNT(*) FROM trips WHERE day = DATE '2026-01-02' OR day = DATE '2026-01-07' GROUP BY station",
    "SELECT COUNT(minutes) FROM trips WHERE NOT (day < DATE '2026-01-06')",
    "SELECT COUNT(*) FROM (SELECT DISTINCT day, minutes FROM trips WHERE day >= DATE '2026-01-08') t",
)


NEIGHBOURS = 306
"""Databases with one row more than the first."""


def town_rows() -> tuple[list[tuple[int, Trip]], list[dt.date | None]]:
    """Rows of the same databases everywhere: −1 are in all; from 1 on each has one more, of a day that is told."""
    draw = random.Random(5)
    days = [day for _, day in zip(range(NEIGHBOURS), cycle([*DAYS, None]), strict=False)]
    more = [(db, trip(draw, day)) for db, day in enumerate(days, 1)]
    return [*((-1, row) for row in some_trips(draw, 40)), *more], days


def moved_outside(town: Town, neighbours: int = NEIGHBOURS) -> tuple[int, int]:
    """Of how many of the first neighbours, those outside of what is read, an integer moves, and how many there are."""
    moved = outside = 0
    for sql in ELSEWHERE:
        plan = town.plan(sql)
        first, read = town.integers(plan, 0), region(plan)
        inside = 0
        for db, day in enumerate(town_rows()[1][:neighbours], 1):
            differs = town.integers(plan, db) != first
            if day is not None and reads(read, day):
                inside += differs
            else:
                outside, moved = outside + 1, moved + differs
        assert inside, sql
    return moved, outside
