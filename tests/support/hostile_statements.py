"""Whole statements with hostile expressions in filters, keys and arguments, over databases that differ in one unit.

What is claimed of each relation and release is compared with every database's rows and integers; no database may make a
statement fail, and no optimizer of ours may change an integer.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import count
from typing import Any

from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.expressions import Column, Expr, Literal
from dpsql.core.ir.nodes import (
    Aggregate,
    AggregateCall,
    Filter,
    Item,
    Join,
    JoinKind,
    Node,
    Project,
    Scan,
    Values,
    output_columns,
)
from dpsql.core.ir.types import BIGINT, DOUBLE, HUGEINT, INTEGER, Kind, SqlType, parse_type
from dpsql.core.ir.walk import Tagged
from dpsql.core.release.planned import PlannedRelease
from dpsql.core.values.constants import literal
from dpsql.core.values.value import Value
from dpsql.diagnostics.errors import Rejected
from dpsql.engines.duckdb.locked.optimizers import ALLOWED, disable, unwanted
from tests.support import random_databases as tables
from tests.support.hostile import KINDS, Hostile, Made
from tests.support.hostile_checks import ALL, NONE, OURS, Found
from tests.support.neighbour_oracle import violations
from tests.support.operator_databases import Changed, Databases
from tests.support.operator_oracle import Bench, Broken
from tests.support.random_databases import NUMBERS, STAMPS, Row, Table, world_of

PLANS = 12
DAYS = (*tables.DAYS, "DATE '290309-12-22 (BC)'", "DATE '5881580-07-10'", "DATE '300000-01-01'", "DATE '2024-06-02'")
TEXTS = ("'a'", "''", "'nan'", "'-inf'", "'1e19'", "'2024-06-02'", "'300000-01-01'", "'9223372036854775807'", "'1.5'")
COLUMNS = (
    tables.Column("i", "BIGINT", NUMBERS["BIGINT"]),
    tables.Column("n", "INTEGER", NUMBERS["INTEGER"], {"nullable": False}),
    tables.Column("a", "INTEGER", ("0", "7", "50", "100"), {"nullable": False, "bounds": [0, 100]}),
    tables.Column("x", "DOUBLE", NUMBERS["DOUBLE"], {"nullable": False}),
    tables.Column("y", "DOUBLE", ("-5", "0", "-0.0", "1", "10", "3.3", "1e-320"), {"bounds": [-5, 10]}),
    tables.Column("c", "DECIMAL(38,10)", NUMBERS["DECIMAL(38,10)"]),
    tables.Column("d", "DATE", DAYS, {"nullable": False}),
    tables.Column("t", "TIMESTAMP", (*STAMPS, "TIMESTAMP '290309-12-22 (BC)'")),
    tables.Column("s", "VARCHAR", TEXTS),
    tables.Column("b", "BOOLEAN", ("true", "false")),
)


class Store(tables.Store):
    """Every database is read under one set of optimizers."""

    def work(self, optimizers: str) -> None:
        """Set which optimizers are at work from now on."""
        off = unwanted(self.connection)
        disable(self.connection, {OURS: off, NONE: off | ALLOWED, ALL: frozenset[str]()}[optimizers])

    def fetch(self, sql: str) -> Any:
        """With dates as texts: Python takes 'infinity' for its last day."""
        db, self.db = self.db, 0
        try:
            sql = sql.replace("$db", str(db))
            found = super().fetch(sql)
            types = [str(d[1]) for d in self.connection.description]
            if not {"DATE", "TIMESTAMP"} & set(types):
                return found
            told = zip(found.names, types, strict=True)
            each = [f"CAST({n} AS VARCHAR) AS {n}" if t in ("DATE", "TIMESTAMP") else n for n, t in told]
            return super().fetch(f"SELECT {', '.join(each)} FROM ({sql})")
        finally:
            self.db = db


def databases(rng: random.Random) -> Databases:
    """One private table: rows of ids whose limit is enforced or promised, or rows that are units themselves."""
    kind, most = rng.choice(("ids", "ids", "ids", "promised", "promised", "rows")), rng.choice((1, 1, 2))
    pid = tables.Column("pid", "BIGINT", ("0",), {"nullable": False})
    columns = (pid, *COLUMNS)

    def row(number: int) -> Row:
        return f"CAST({number} AS BIGINT)", *(c.value(rng) for c in COLUMNS)

    units = range(1, 6)
    policy: dict[str, Any] = {"unit": {"rows": 1}}
    if kind != "rows":
        limit: dict[str, Any] = {
            "max_rows_per_unit": {"rows": most, "enforce": "assume"} if kind == "promised" else most
        }
        if kind == "ids" and rng.random() < 0.3:
            limit = {"max_groups_per_unit": most, "max_rows_per_group": 1}
        policy = {"unit": {"of": "person", "column": "pid"}, **limit}
    heights = {u: 1 if kind == "rows" else rng.randint(1, most + (kind == "ids")) for u in units}
    everywhere = (1 << (len(units) + 1)) - 1
    rows = [(row(u), everywhere & ~(1 << u)) for u in units for _ in range(heights[u])]
    unit = "log" if kind == "rows" else "person"
    changes = tuple(Changed(unit, frozenset() if kind == "rows" else frozenset({u})) for u in units)
    world = world_of([Table("log", columns, policy, tuple(rows))], len(units), kind)
    return Databases(world, changes, False)


class Statements:
    """Draws plans over the one table of a policy."""

    def __init__(self, rng: random.Random, bench: Bench) -> None:
        self.rng, self.bench, self.numbers = rng, bench, count(1)

    def new(self, name: str, type_: SqlType) -> Column:
        return Column(next(self.numbers), name, type_)

    def hostile(self, node: Node) -> Hostile:
        """Over what is claimed of these rows, as the analysis itself claims it. Raises Rejected."""
        facts = self.bench.relation(node).fact
        columns = [c for c in output_columns(node) if c.type.kind in KINDS]
        return Hostile(self.rng, [(c, facts.columns[c.uid].value) for c in columns])

    def relation(self) -> Node:
        """Rows of the table, perhaps several times each, kept, computed from, and put together for each id. Raises
        Rejected."""
        rng = self.rng
        columns = []
        for c in self.bench.databases.world.tables[0].columns:
            type_ = parse_type(c.type)
            assert type_ is not None
            columns.append(self.new(c.name, type_))
        pid, node = columns[0], Scan("log", tuple(columns), None)
        put_together = rng.random() < 0.5
        if put_together or rng.random() < 0.5:
            k = self.new("k", INTEGER)
            node = Join(JoinKind.CROSS, node, Values((k,), tuple((n,) for n in range(rng.randint(2, 6)))))
        if rng.random() < 0.5 and not put_together:
            node = Filter(node, self.condition(node))
        if rng.random() < 0.3 and not put_together:
            made = [self.hostile(node).expression(rng.choice(KINDS), 2) for _ in range(2)]
            items = [Item(self.new(f"e{i}", m.value.type), m.expr) for i, m in enumerate(made)]
            kept = [Item(self.new(c.name, c.type), c) for c in output_columns(node)]
            node = Project(node, (*kept, *items))
        return self.of_each(node, pid) if put_together else node

    def of_each(self, node: Node, pid: Column) -> Node:
        """The rows of each id put together by a hostile key, of which a condition then leaves few values."""
        rng, hostile = self.rng, self.hostile(node)
        kind = rng.choice((Kind.INTEGER, Kind.INTEGER, *KINDS))
        key = hostile.cancelling(kind) if rng.random() < 0.7 else hostile.expression(kind, 2)
        if kind is Kind.INTEGER and rng.random() < 0.6:  # another one in each of an id's rows
            k = next(c for c in output_columns(node) if c.name == "k")
            varied = Made(k, hostile.facts(k))
            key = hostile.called(rng.choice(("coalesce", "add", "sub", "greatest")), key, varied) or varied
        g, once = self.new("g", key.value.type), self.new("pid", pid.type)
        calls = (AggregateCall("count", None, self.new("n", BIGINT)),)
        found = Aggregate(node, (Item(once, pid), Item(g, key.expr)), calls)
        least = key.value.interval.lo
        if g.type.kind is not Kind.INTEGER or rng.random() < 0.2:
            return found
        end = int(least) if least is not None and abs(least) < 2**60 else rng.randint(-3, 3)
        name, more = rng.choice(("le", "le", "lt", "eq")), rng.choice((0, 0, 1, 1, 10**6))
        term = hostile.called(name, Made(g, key.value), _number(end + more))
        return found if term is None else Filter(found, term.expr)

    def condition(self, node: Node) -> Expr:
        hostile = self.hostile(node)
        return (hostile.condition() if self.rng.random() < 0.6 else hostile.expression(Kind.BOOLEAN, 2)).expr

    def root(self, node: Node) -> Aggregate:
        """Numbers of these rows: counts, sums and slices that are hostile, by no key or by one. Raises Rejected."""
        rng, hostile = self.rng, self.hostile(node)
        keys: tuple[Item, ...] = ()
        if rng.random() < 0.3:
            key = hostile.expression(rng.choice((Kind.INTEGER, Kind.BOOLEAN, Kind.VARCHAR)), 2)
            keys = (Item(self.new("key", key.value.type), key.expr),)
        calls = [self.call(hostile) for _ in range(rng.choice((1, 2)))]
        if rng.random() < 0.3:  # slices that an analysis likes to call disjoint
            one = hostile.condition()
            other = hostile.called("not", one) or one
            calls = [replace(self.call(hostile), filter=m.expr) for m in (one, other)]
        return Aggregate(node, keys, tuple(calls))

    def call(self, hostile: Hostile) -> AggregateCall:
        rng = self.rng
        where = hostile.condition().expr if rng.random() < 0.5 else None
        chance = rng.random()
        if chance < 0.25:
            return AggregateCall("count", None, self.new("n", BIGINT), False, where)
        if chance < 0.5:
            arg = hostile.expression(rng.choice(KINDS), 2)
            return AggregateCall("count", arg.expr, self.new("n", BIGINT), rng.random() < 0.7, where)
        for _ in range(8):
            arg = hostile.expression(rng.choice((Kind.INTEGER, Kind.DOUBLE, Kind.DECIMAL)), 2)
            if not arg.value.interval.bounded or rng.random() < 0.5:
                clipped = hostile.called(
                    "clip", arg, _number(rng.choice((-5, 0, 1))), _number(rng.choice((2, 9, 10**6)))
                )
                arg = clipped or arg
            if arg.value.interval.bounded:
                type_ = DOUBLE if arg.value.type.kind is Kind.DOUBLE else HUGEINT
                return AggregateCall("sum", arg.expr, self.new("x", type_), False, where)
        return AggregateCall("count", None, self.new("n", BIGINT), False, where)


def _number(n: int) -> Made:
    value: Value = literal(n, INTEGER)
    return Made(Literal(n, INTEGER), value)


def statements(
    seeds: Iterable[int], optimizers: str = OURS, until: str | None = None, refused: Counter[str] | None = None
) -> Found:
    """Statements over one policy per seed. until: what a problem says that is enough. refused: code → how often."""
    store, found = Store(), Found()
    for seed in seeds:
        rng = random.Random(seed)
        bench = Bench(store, databases(rng))
        made = Statements(rng, bench)
        for _ in range(PLANS):
            try:
                node = made.relation()
                root, tagged = made.root(node), bench.relation(node)
                released = bench.release(root)
            except Rejected as refusal:
                if refused is not None:
                    refused[refusal.diagnostics[0].code] += 1
                continue
            except (OverflowError, AssertionError) as crash:  # planning itself, which reads no private row
                if refused is not None:
                    refused[repr(crash)] += 1
                continue
            if released is None:
                continue
            found.tried += 1
            store.work(optimizers)
            planned, whose = released[0], f"seed {seed}, {bench.databases.world.description}"
            found.problems += [
                f"{whose}: {told}" for told in (*_of_rows(bench, tagged), *_of_release(bench, planned, optimizers))
            ]
            found.compared += bench.databases.world.neighbours
            if found.told(until):
                break
        if found.told(until):
            break
    store.close()
    return found


def _of_rows(bench: Bench, tagged: Tagged[Facts]) -> Iterator[str]:
    """The first of the facts about a relation that its rows contradict."""
    try:
        bench.check_relation(tagged)
    except Broken as error:
        yield str(error)


def _of_release(bench: Bench, planned: PlannedRelease, optimizers: str) -> Iterator[str]:
    """What its integers say against the price, how it fails, and whether an optimizer moves them."""
    assert isinstance(bench.store, Store)
    try:
        vectors = bench.vectors(planned)
        told = [p for other in vectors[1:] for p in violations(planned, vectors[0], other)]
        bench.store.work(NONE)
        plain = bench.vectors(planned)
    except Broken as error:
        yield str(error)
        return
    if vectors != plain:
        told.append(f"{vectors} by {optimizers}, {plain} by none")
    yield from ("\n".join([p, *(s.salted(1) for s in planned.statements)]) for p in told[:1])
