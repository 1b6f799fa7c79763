"""What is claimed of expressions, conditions and chains, against the engine's values over a table of extreme rows."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import duckdb

from dpsql.core.analysis.facts import ColumnFact, Facts
from dpsql.core.ir.expressions import Call, Column, Expr, columns_of, walk
from dpsql.core.ir.nodes import Scan
from dpsql.core.ir.short_text import expression as shown
from dpsql.core.ir.types import BIGINT, INTEGER, Kind, SqlType
from dpsql.core.ir.walk import Tagged
from dpsql.core.printing.expressions import Names, spell
from dpsql.core.values.value import Value
from dpsql.diagnostics.errors import Rejected
from dpsql.engines.duckdb import DIALECT
from dpsql.engines.duckdb.locked.optimizers import ALLOWED, disable, unwanted
from dpsql.planner.distinct_values import most_values, strict
from dpsql.planner.exclusive_conditions import are_disjoint, cases_of
from tests.support.function_checker import _same
from tests.support.function_rows import COLUMNS, as_python, build
from tests.support.hostile import TARGETS, Chains, Hostile, Made, signatures

ROWS = 96
BATCH = 32
FAR = 2**63 - 1
OURS, NONE, ALL = "ours", "none", "all"
"""Which of DuckDB's optimizers are at work: those that dpsql leaves on, none, or all that there are."""


class Values(NamedTuple):
    """What an expression gives: its type in the engine and its value in each row, or how it fails."""

    type: str
    rows: tuple[Any, ...]
    failure: str = ""


@dataclass(slots=True)
class Table:
    """The rows, in one database that runs statements under any set of optimizers."""

    seed: int = 20
    con: Any = field(init=False)
    columns: list[tuple[Column, Value]] = field(init=False)
    names: Names = field(init=False)
    facts: Facts = field(init=False)

    def __post_init__(self) -> None:
        self.con = duckdb.connect(config={"threads": 1})
        build(self.con, random.Random(self.seed))
        self.con.execute(
            f"CREATE OR REPLACE TABLE t AS SELECT CAST(rowid AS INTEGER) AS n, * FROM t WHERE rowid < {ROWS}"
        )
        self.columns = [(Column(i, c.name, c.value.type), c.value) for i, c in enumerate(COLUMNS, 1)]
        env = {c.uid: v for c, v in self.columns}
        self.names = Names({c.uid: c.name for c, _ in self.columns}, env, DIALECT)
        self.facts = Facts({uid: ColumnFact(v) for uid, v in env.items()})

    def run(self, sql: str, optimizers: str = OURS) -> list[tuple[Any, ...]]:
        off = unwanted(self.con)
        disable(self.con, {OURS: off, NONE: off | ALLOWED, ALL: frozenset[str]()}[optimizers])
        return self.con.execute(sql).fetchall()  # type: ignore[no-any-return]

    def values(self, printed: Sequence[tuple[str, SqlType]], optimizers: str = OURS, where: str = "") -> list[Values]:
        """The values of each text in every row, or in those of a WHERE; of one that fails, what the engine says."""
        inner = ", ".join(f"{sql} AS r{i}" for i, (sql, _) in enumerate(printed))
        outer = ", ".join(_plain(f"r{i}", type_) for i, (_, type_) in enumerate(printed))
        try:
            found = self.run(f"SELECT {outer} FROM (SELECT n, {inner} FROM t {where}) ORDER BY n", optimizers)
        except duckdb.Error as error:
            if len(printed) == 1:
                return [Values("", (), str(error).splitlines()[0])]
            half = len(printed) // 2
            return self.values(printed[:half], optimizers, where) + self.values(printed[half:], optimizers, where)
        types = [str(d[1]) for d in self.con.description]
        types = [t.name if t.temporal else told for told, (_, t) in zip(types, printed, strict=True)]
        return [Values(t, held) for t, held in zip(types, zip(*found, strict=True), strict=True)]

    def printed(self, expr: Expr) -> tuple[str, SqlType] | None:
        """An expression as dpsql prints it; None if it refuses to."""
        try:
            sql, known = spell(expr, self.names)
        except Rejected:
            return None
        return (sql, known.type) if len(sql) < 20_000 else None

    def sql(self, expr: Expr) -> str:
        return spell(expr, self.names)[0]


def _plain(sql: str, t: SqlType) -> str:
    """DATE as days and TIMESTAMP as microseconds since 1970, ±infinity as the ends of their integers."""
    if t.kind is Kind.DATE:
        return f"CAST({sql} - DATE '1970-01-01' AS BIGINT)"
    if t.kind is Kind.TIMESTAMP:
        return (
            f"CASE WHEN {sql} = 'infinity'::TIMESTAMP THEN {FAR} WHEN {sql} = '-infinity'::TIMESTAMP THEN {-FAR} "
            f"ELSE epoch_us({sql}) END"
        )
    return sql


# --- claims -----------------------------------------------------------------------------------------------------------


def broken(table: Table, made: Made, values: Values) -> str:
    """The first claim about an expression that its values break; empty if all hold."""
    claim = made.value
    if values.failure:
        return f"fails: {values.failure}"
    if values.type != claim.type.name:
        return f"has type {values.type}, not {claim.type}"
    for row, value in enumerate(values.rows):
        wrong = _wrong(value, claim)
        if wrong:
            return f"row {row}: {wrong}"
    most = most_values(made.expr, Tagged(Scan("t", tuple(c for c, _ in table.columns), None), table.facts, ()))
    held = {repr(v) if isinstance(v, list) or v != v else v for v in values.rows if v is not None}
    if most is not None and len(held) > most:
        return f"has {len(held)} different values, at most {most} are claimed"
    listed = claim.domain
    if listed is not None and all(table.facts.columns[u].value.domain is not None for u in columns_of(made.expr)):
        keys = set(listed.values) if listed.size < 10_000 else listed.values
        for row, value in enumerate(values.rows):
            if value is not None and as_python(value, claim.type) not in keys:
                return f"row {row}: {value!r} is outside of its domain"
    return ""


def _wrong(value: Any, claim: Value) -> str:
    if value is None:
        return "" if claim.nullable else "is NULL"
    if isinstance(value, float) and not math.isfinite(value):
        if claim.finite:
            return f"is {value}, claimed finite"
        beyond = claim.interval.hi if value > 0 else claim.interval.lo
        return "" if math.isnan(value) or beyond is None else f"is {value}, outside of {claim.interval}"
    if isinstance(value, bool | int | float | Decimal):
        at = Fraction(value) if not isinstance(value, int) else value
        for what, held in (("interval", claim.interval), ("range", claim.range)):
            if (held.lo is not None and at < held.lo) or (held.hi is not None and at > held.hi):
                return f"is {value!r}, outside of its {what} {held}"
    if claim.is_constant and not _same(value, claim.constant, claim.type):
        return f"is {value!r}, claimed {claim.constant!r}"
    return ""


@dataclass(slots=True)
class Found:
    """What a run tried, and what it found: each in words that suffice to repeat it."""

    tried: int = 0
    compared: int = 0
    problems: list[str] = field(default_factory=list)

    def told(self, words: str | None) -> bool:
        """Whether a problem says so."""
        return words is not None and any(words in p for p in self.problems)


def expressions(table: Table, seed: int, number: int, until: str | None = None) -> Found:
    """Random expressions: every claim holds on every row, and no optimizer of ours changes a value.

    until: what a problem says that is enough.
    """
    hostile, found = Hostile(random.Random(seed), table.columns), Found()
    while found.tried < number and not found.told(until):
        batch = [(m, p) for m in (hostile.any() for _ in range(BATCH)) if (p := table.printed(m.expr)) is not None]
        printed = [p for _, p in batch]
        for (m, _), ours, none in zip(batch, table.values(printed), table.values(printed, NONE), strict=True):
            found.tried += 1
            wrong = broken(table, m, ours)
            if wrong:
                found.problems.append(_least(table, m, wrong))
            elif repr(ours) != repr(none):
                found.problems.append(f"{_differ(ours, none)} by our optimizers and by none: {_told(table, m)}")
    return found


def nulls(table: Table, seed: int) -> Found:
    """Calls of all functions that the analysis takes for strict, with one argument that is NULL: NULL in every row."""
    hostile, found = Hostile(random.Random(seed), table.columns), Found()
    calls = [
        hostile.applied(signature, 0, null=at)
        for named in signatures().values()
        for name, each in named.items()
        for signature in (each if strict(name) else ())
        for at, kind in enumerate(signature.kinds)
        if at not in signature.fixed and kind in TARGETS
    ]
    batch = [(m, p) for m in calls if m is not None and (p := table.printed(m.expr)) is not None]
    for (m, _), values in zip(batch, table.values([p for _, p in batch]), strict=True):
        found.tried += 1
        if values.failure or any(v is not None for v in values.rows):
            found.problems.append(f"is not NULL: {_told(table, m)}")
    return found


def _least(table: Table, made: Made, wrong: str) -> str:
    """The smallest part that breaks a claim of its own, with the claim."""
    parts = sorted({repr(e): e for e in walk(made.expr)}.values(), key=lambda e: len(walk(e)))
    for part in parts[:-1]:
        own, printed = Made(part, table.facts.value(part)), table.printed(part)
        said = "" if printed is None else broken(table, own, table.values([printed])[0])
        if said:
            return f"{said}: {_told(table, own)}"
    return f"{wrong}: {_told(table, made)}"


def _told(table: Table, made: Made) -> str:
    v = made.value
    claim = f"{v.type} in {v.interval}, range {v.range}{', NULL' * v.nullable}{', NaN' * (not v.finite)}"
    return f"{shown(made.expr)}\n      claimed {claim}\n      {table.sql(made.expr)}"


def _differ(a: Values, b: Values) -> str:
    if a.failure or b.failure:
        return f"{a.failure or 'no failure'} and {b.failure or 'no failure'}"
    pairs = zip(a.rows, b.rows, strict=True)
    return next((f"row {i}: {x!r} and {y!r}" for i, (x, y) in enumerate(pairs) if repr(x) != repr(y)), "types")


# --- conditions -------------------------------------------------------------------------------------------------------


def conditions(table: Table, seed: int, number: int, optimizers: str = OURS, until: str | None = None) -> Found:
    """Pairs of conditions: the same rows under these optimizers and under none; disjoint ones never hold together."""
    rng, found = random.Random(seed), Found()
    hostile = Hostile(rng, table.columns)
    while found.tried < number and not found.told(until):
        pairs = [_pair(hostile, rng) for _ in range(BATCH // 2)]
        made = [m for pair in pairs for m in pair if all(table.printed(x.expr) for x in pair)]
        texts = [table.sql(m.expr) for m in made]
        kept, plain = _kept(table, texts, optimizers), _kept(table, texts, NONE)
        for at in range(0, len(made), 2):
            found.tried += 1
            one, other = made[at : at + 2]
            for m, a, b in zip((one, other), kept[at : at + 2], plain[at : at + 2], strict=True):
                if a != b:
                    found.problems.append(f"{_moved(a, b)} by {optimizers} and by none: {_told(table, m)}")
            if are_disjoint(*(cases_of(m.expr) for m in (one, other))):
                found.compared += 1
                both = [x & y for x, y in zip(kept[at].rows, kept[at + 1].rows, strict=True)]
                if any(both):
                    rows = sorted(frozenset.union(*both))
                    found.problems.append(f"rows {rows} satisfy both: {_told(table, one)}\n  and {_told(table, other)}")
    return found


OPPOSITE = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}


def _pair(hostile: Hostile, rng: random.Random) -> tuple[Made, Made]:
    """Two conditions that an analysis likes to call disjoint."""
    one, choice = hostile.condition(), rng.random()
    if isinstance(one.expr, Call) and one.expr.function in OPPOSITE and choice < 0.6:
        args = [Made(a, hostile.facts(a)) for a in one.expr.args]
        other = (
            hostile.called(OPPOSITE[one.expr.function], *args) if choice < 0.3 else hostile.called("is_null", args[0])
        )
    else:
        other = hostile.called("not" if choice < 0.8 else "is_null", one)
    return one, other or one


class Kept(NamedTuple):
    """The rows that a condition keeps, in a FILTER and in a WHERE; or how it fails."""

    rows: tuple[frozenset[int], ...]
    failure: str = ""


def _kept(table: Table, texts: Sequence[str], optimizers: str) -> list[Kept]:
    if not texts:
        return []
    filters = ", ".join(f"COUNT(*) FILTER (WHERE {c})" for c in texts)
    wheres = " UNION ALL ".join(f"SELECT {i}, n FROM t WHERE {c}" for i, c in enumerate(texts))
    try:
        counted = table.run(f"SELECT n, {filters} FROM t GROUP BY n", optimizers)
        held = table.run(wheres, optimizers)
    except duckdb.Error as error:
        if len(texts) == 1:
            return [Kept((frozenset(), frozenset()), str(error).splitlines()[0])]
        half = len(texts) // 2
        return _kept(table, texts[:half], optimizers) + _kept(table, texts[half:], optimizers)
    filtered = [frozenset(row[0] for row in counted if row[i + 1]) for i in range(len(texts))]
    return [Kept((filtered[i], frozenset(n for at, n in held if at == i))) for i in range(len(texts))]


def _moved(a: Kept, b: Kept) -> str:
    if a.failure or b.failure:
        return f"{a.failure or 'no failure'} and {b.failure or 'no failure'}"
    moved = [sorted(x ^ y) for x, y in zip(a.rows, b.rows, strict=True)]
    return f"rows {moved[0]} of a FILTER and {moved[1]} of a WHERE are kept otherwise"


# --- chains -----------------------------------------------------------------------------------------------------------


def chains(table: Table, seed: int, number: int, optimizers: str = OURS, until: str | None = None) -> Found:
    """Chains of integer sums have the values of exact arithmetic, whatever the order that the engine adds in."""
    columns = [(c, v) for c, v in table.columns if v.type in (INTEGER, BIGINT)]
    made, found = Chains(random.Random(seed), columns), Found()
    rows = table.run(f"SELECT {', '.join(c.name for c, _ in columns)} FROM t ORDER BY n")
    while found.tried < number and not found.told(until):
        batch = [made.chain() for _ in range(BATCH)]
        values = table.values([(table.sql(e), e.type) for e, _ in batch], optimizers)
        for (expr, exactly), got in zip(batch, values, strict=True):
            found.tried += 1
            expected = Values("", tuple(exactly(row) for row in rows))
            if got.rows != expected.rows:
                told = _told(table, Made(expr, table.facts.value(expr)))
                found.problems.append(f"{_differ(got, expected)} exactly: {told}")
    return found
