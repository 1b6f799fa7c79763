"""Random rows for the tables of a policy, and what the plans of all fixtures ask of an engine about them."""

from __future__ import annotations

import datetime as dt
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

import duckdb

from dpsql.core.engine import RawTable
from dpsql.core.ir.nodes import Release
from dpsql.core.ir.public_facts import PublicFacts
from dpsql.core.ir.types import VARCHAR, Kind, SqlType
from dpsql.core.policy.policy import Policy
from dpsql.core.policy.tables import Column, ValuesDomain
from dpsql.core.printing.dialect import Dialect
from dpsql.core.release.planned import PlannedRelease
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Rejected
from dpsql.planner.compile import compile_query
from dpsql.planner.plan import Plan
from dpsql.planner.rewrites.rewrite_context import ContributionLimits
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.service.checks.check import NOMINAL_DELTA, NOMINAL_EPSILON
from tests.fixtures.cases import POLICIES, Case, files, policy

HEIGHT = 120
SALT = 4_611_686_018_427_387_903
CASES = [case for file in files() for case in file.cases]
NOT_TOTAL = {"plan/windows: NULLs passed over"}
"""Cases whose windows are ordered by a key that has several rows here: which of them is the last is up to an engine."""
NAMES = sorted(path.stem for path in POLICIES.glob("*.yaml"))


def planned(case: Case, d: Dialect) -> Plan:
    """The plan of a case, printed for an engine. Raises Rejected."""
    given, loaded = case.settings, policy(case.settings["policy"])
    limits = ContributionLimits(
        *(int(given[name]) if name in given else None for name in ("rows", "per_group", "groups"))
    )
    epsilon, delta = (Fraction(given[name]) if name in given else None for name in ("epsilon", "delta"))
    settings = QuerySettings(
        epsilon or loaded.defaults.epsilon or NOMINAL_EPSILON, delta or loaded.defaults.delta or NOMINAL_DELTA, limits,
        given.get("dialect", "duckdb"), search={"search": True, "auto": None}.get(given.get("limits_are", ""), False),
    )  # fmt: skip
    parameters = json.loads(given.get("parameters", "[]"))
    return compile_query(Source(case.sql), loaded, PublicFacts(), settings, parameters, dialect=d)


_DAYS = [dt.date(2024, 1, 1) + dt.timedelta(days=9 * n) for n in range(40)]
ODD: dict[Kind, list[Any]] = {
    Kind.BOOLEAN: [True, False],
    Kind.INTEGER: [-7, -1, 0, 1, 2, 3, 7, 41, 100],
    Kind.DECIMAL: [Decimal(n) / 100 for n in (-1050, -1, 0, 1, 50, 250, 9999)],
    Kind.DOUBLE: [float("nan"), float("inf"), -float("inf"), -0.0, 0.0, 0.5, -2.25, 1.5, 3.25, 100.125, 5e-324, 1e300],
    Kind.VARCHAR: ["", "a", "A", "a ", "é", "z", "north", "it's", "\\", "%", "日本語", "b2", "10"],
    Kind.DATE: [*_DAYS, dt.date(1, 1, 1), dt.date(9999, 12, 31)],
    Kind.TIMESTAMP: [dt.datetime(d.year, d.month, d.day, 7 * d.day % 24, d.day) for d in _DAYS],
    Kind.TIME: [dt.time(0), dt.time(12, 30), dt.time(23, 59, 59, 999999)],
    Kind.BLOB: [b"", b"\0\xff"],
    Kind.UUID: ["00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"],
}


@dataclass(frozen=True)
class Table:
    """A table of a policy with rows."""

    name: str
    columns: tuple[tuple[str, SqlType], ...]
    rows: tuple[tuple[Any, ...], ...]


def tables_of(policy: Policy, rng: random.Random) -> Iterator[Table]:
    """Every table, with rows that join often, and hold odd values."""
    for table in policy.tables.values():
        columns = [(c.name, c.sql_type or VARCHAR, _pool(c, rng)) for c in table.columns.values()]
        unique = [key for key in (table.primary_key, *table.unique) if key is not None]
        keys = {name for key in unique for name in key.columns}
        rows = []
        for i in range(HEIGHT):
            row = []
            for name, type_, pool in columns:
                numbered = name in keys and type_.kind is Kind.INTEGER
                row.append(i % 40 if numbered else rng.choice(pool))
            rows.append(tuple(row))
        yield Table(table.name, tuple((name, t) for name, t, _ in columns), tuple(rows))


def _pool(c: Column, rng: random.Random) -> list[Any]:
    t = c.sql_type or VARCHAR
    pool = list(ODD.get(t.kind, [None]))
    if t.kind is Kind.LIST:
        items = ODD[t.item.kind] if t.item is not None else []
        pool = [[], *([rng.choice([*items, None]) for _ in range(n)] for n in (1, 2, 3, 8))]
    if t.kind is Kind.INTEGER and not c.bounds:
        pool = list(range(12)) * 2
    if t.kind is Kind.DECIMAL:
        top = Decimal(10 ** (t.precision - t.scale)) - Decimal(1).scaleb(-t.scale)
        pool = [x.quantize(Decimal(1).scaleb(-t.scale)) for x in pool if abs(x) < top] + [top, -top]
    if c.bounds is not None and t.numeric:
        ends = [end for end in c.bounds if isinstance(end, int | float | Decimal) and not isinstance(end, bool)]
        pool += [_as(end + step, t) for end in ends for step in (0, 1, -1)] * 3
    if isinstance(c.domain, ValuesDomain):
        pool = [v for v in list(c.domain.values)[:30] if v is not None] * 3 + pool
    return pool if c.nullable is False else [*pool, None]


def _as(value: Any, t: SqlType) -> Any:
    match t.kind:
        case Kind.INTEGER:
            return int(value)
        case Kind.DECIMAL:
            return Decimal(value).quantize(Decimal(1).scaleb(-t.scale))
        case _:
            return float(value)


def releases_asked(plan: Plan) -> list[PlannedRelease]:
    """The releases of a plan, those that show its keys first in front."""
    return [*(() if plan.keys_first is None else plan.keys_first.releases), *plan.releases]


def texts(plan: Plan, d: Dialect, again: bool = False) -> list[str]:
    """All that a plan asks of an engine; noisy rows and numbers of earlier releases are made up.

    again: what is asked where a statement fails, in its place.
    """
    released = {r.label: _made_up(r.measured.node, d) for r in releases_asked(plan)}
    found = []
    for release in releases_asked(plan):
        for statement in ((again and s.again) or s for s in release.statements):
            names = set(re.findall("\0number (\\w+)\0", statement.sql))
            found.append(statement.salted(SALT, released, dict.fromkeys(names, 3)))
    return [*found, *([plan.post.sql] if not plan.post.steps and plan.post.sql else [])]


def _made_up(node: Release, d: Dialect) -> str:
    columns = [*node.keys, *(o.column for o in node.outputs)]
    if not columns:
        return "(SELECT 1 AS c0)"
    rows = []
    for i in range(4):
        cells = []
        for c in columns:
            pool = ODD.get(c.type.kind, [None])
            cells.append(d.constant(_fitting(pool[i % len(pool)], c.type), c.type))
        rows.append(", ".join(cells))
    names = [f"c{c.uid}" for c in columns]
    listed = ", ".join(f"{d.cast(n, c.type)} AS {n}" for n, c in zip(names, columns, strict=True))
    return f"(SELECT {listed} FROM {d.values(rows, names, 'v')})"


def _fitting(value: Any, t: SqlType) -> Any:
    return Decimal(value).quantize(Decimal(1).scaleb(-t.scale)) if isinstance(value, Decimal) else value


def bag(rows: Sequence[Sequence[Any]]) -> Counter[tuple[str, ...]]:
    """Rows in any order; DOUBLEs by their bits, but for the sign of zero, and numbers by their value."""
    return Counter(tuple(_shown(v) for v in row) for row in rows)


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return repr(value + 0.0)
    if isinstance(value, Decimal):
        return str(int(value)) if value == value.to_integral_value() else str(value.normalize())
    return str(value)


def duckdb_connection() -> Any:
    """An empty database that sorts as ours do."""
    con = duckdb.connect()
    con.execute("SET default_collation = ''; SET TimeZone = 'UTC'")
    return con


@dataclass
class Compared:
    """Statements whose rows were compared, those with a row that is not all 0 or NULL; what was refused, or differs."""

    compared: int = 0
    full: int = 0
    refused: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


def compared(name: str, ours: Dialect, theirs: Dialect, con: Any, fetch: Callable[[str], RawTable]) -> Compared:
    """The plans of all fixtures of one policy, by DuckDB in its dialect and by another engine in another one."""
    found = Compared()
    for case in CASES:
        if case.settings["policy"] != name or case.id in NOT_TOTAL:
            continue
        try:
            wanted = texts(planned(case, ours), ours)
        except Rejected:
            continue
        try:
            printed = texts(planned(case, theirs), theirs)
        except Rejected as refusal:
            found.refused.append(f"{case.id}: {refusal.diagnostics[0].message}")
            continue
        for sql, other in zip(wanted, printed, strict=True):
            here = bag(con.execute(sql).fetchall())
            try:
                there = bag(list(fetch(other).rows()))
            except Exception as error:
                found.wrong.append(f"{case.id}: {str(error).splitlines()[0]}\n{other}")
                continue
            found.compared += 1
            found.full += any(cell not in ("0", "None") for row in there for cell in row)
            if there != here:
                found.wrong.append(f"{case.id}:\n{other}\n{list(there - here)[:3]}\n{list(here - there)[:3]}")
    return found
