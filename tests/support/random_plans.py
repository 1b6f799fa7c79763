"""Typed random plans over the whole operator set, made of nodes directly: no SQL, no binder.

A plan grows from its tables upwards, and each step keeps only what the caller accepts (the analysis, say), so that most
plans mean something; what is refused on the way is counted by the caller.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count

from dpsql.core.ir.expressions import Call, Column, Expr, Literal, LiteralValue, transform, walk
from dpsql.core.ir.nodes import (
    Aggregate,
    AggregateCall,
    Equality,
    Filter,
    Item,
    Join,
    JoinKind,
    Node,
    Project,
    Scan,
    SetColumn,
    SetKind,
    SetOperation,
    Truncate,
    Unnest,
    Values,
    output_columns,
)
from dpsql.core.ir.types import BIGINT, BOOLEAN, DOUBLE, HUGEINT, INTEGER, VARCHAR, Kind, SqlType, parse_type
from dpsql.core.values.value import Value, type_range
from dpsql.functions.expression_values import evaluate
from tests.support.operator_databases import Databases

Accepts = Callable[[Node], bool]
TRIES = 6
MOST_COLUMNS = 10
IDS = ("pid", "fid")
HOPS = (("pid",), ("fid",), ("oid",), ("shop", "oid"), ("iid",))
LITERALS: dict[Kind, tuple[LiteralValue, ...]] = {
    Kind.INTEGER: (0, 1, 2, 3, -1),
    Kind.DOUBLE: (0.2, 0.0, -1.0),
    Kind.VARCHAR: ("a", "b", ""),
    Kind.BOOLEAN: (True, False),
}


def call(name: str, *args: Expr) -> Call:
    """A call with its type."""
    env = {e.uid: Value(e.type, range=type_range(e.type)) for a in args for e in walk(a) if isinstance(e, Column)}
    plain = Call(name, args, BOOLEAN)
    return Call(name, args, evaluate(plain, env).type)


def number(value: int) -> Literal:
    return Literal(value, INTEGER)


@dataclass(slots=True)
class Plans:
    """Makes plans over one policy. Columns are numbered from 1."""

    rng: random.Random
    databases: Databases
    numbers: count[int] = field(default_factory=lambda: count(1))
    focus: tuple[str, ...] = ("people", "orders", "items", "parts", "jobs", "log", "notes")

    def look_at(self) -> None:
        """Read a few of the private tables only, so that they meet."""
        tables = ("people", "orders"), ("orders", "items"), ("items", "parts", "people"), ("log",), ("log", "notes")
        more = (
            ("orders", "log"),
            ("jobs",),
            ("orders", "jobs"),
            ("jobs", "log"),
            ("people", "orders", "items", "parts", "jobs", "log", "notes"),
        )
        self.focus = self.rng.choice((*tables, *more))

    # --- leaves ------------------------------------------------------------------------------------------------------

    def new(self, name: str, type_: SqlType) -> Column:
        return Column(next(self.numbers), name, type_)

    def scan(self, name: str) -> Scan:
        columns = []
        for c in self.databases.world.table(name).columns:
            type_ = parse_type(c.type)
            assert type_ is not None
            columns.append(self.new(c.name, type_))
        return Scan(name, tuple(columns), None)

    def values(self) -> Values:
        columns = (self.new("code", INTEGER), self.new("s", VARCHAR))[: self.rng.randint(1, 2)]
        pools = {"code": (1, 2, 3, None), "s": ("a", "b", None)}
        rows = tuple(
            tuple(self.rng.choice(pools[c.name]) for c in columns)
            for _ in range(self.rng.randint(1, 3))  # type: ignore[misc]
        )
        return Values(columns, rows)

    def leaf(self) -> Node:
        if self.rng.random() < 0.06:
            return self.values()
        public = self.rng.random() < 0.2
        return self.scan(self.rng.choice(("codes", "kinds") if public else self.focus))

    # --- expressions -------------------------------------------------------------------------------------------------

    def of(self, columns: Sequence[Column], *kinds: Kind) -> list[Column]:
        return [c for c in columns if c.type.kind in kinds]

    def plain(self, columns: Sequence[Column]) -> list[Column]:
        return [c for c in columns if c.type.kind is not Kind.LIST]

    def literal(self, type_: SqlType) -> Literal:
        return Literal(self.rng.choice(LITERALS[type_.kind]), type_ if type_ != HUGEINT else BIGINT)

    def predicate(self, columns: Sequence[Column], depth: int = 1) -> Expr:
        rng = self.rng
        if depth and rng.random() < 0.25:
            parts = self.predicate(columns, 0), self.predicate(columns, 0)
            return call("not", parts[0]) if rng.random() < 0.2 else call(rng.choice(("and", "or")), *parts)
        able = self.plain(columns)
        if not able:
            return Literal(True, BOOLEAN)
        c = rng.choice(able)
        if rng.random() < 0.25:
            return call(rng.choice(("is_null", "is_not_null")), c)
        same = [o for o in able if o.type == c.type and o is not c]
        other: Expr = rng.choice(same) if same and rng.random() < 0.4 else self.literal(c.type)
        return call(rng.choice(("eq", "ne", "lt", "ge", "le", "is_not_distinct_from")), c, other)

    def expression(self, columns: Sequence[Column]) -> Expr | None:
        """Something computed from one row."""
        rng, able = self.rng, self.plain(columns)
        if not able or rng.random() < 0.1:
            return number(rng.randint(0, 2))
        c = rng.choice(able)
        if c.type in (INTEGER, BIGINT):
            return rng.choice(
                (
                    call("add", c, number(1)),
                    call("abs", c),
                    call("coalesce", c, number(1)),
                    call("clip", c, number(0), number(2)),
                    call("case", self.predicate(columns, 0), c, number(0)),
                    call("nullif", c, number(1)),
                )
            )
        if c.type == DOUBLE:
            return call("clip", c, Literal(-1.0, DOUBLE), Literal(2.0, DOUBLE))
        if c.type == VARCHAR:
            return rng.choice((call("upper", c), call("coalesce", c, Literal("b", VARCHAR))))
        return call("is_null", c)

    # --- operators ---------------------------------------------------------------------------------------------------

    def filter(self, node: Node) -> Node:
        return Filter(node, self.predicate(output_columns(node)))

    def project(self, node: Node) -> Node:
        columns = list(output_columns(node))
        kept = [c for c in columns if c.name in IDS or self.rng.random() < 0.75] or columns[:1]
        items = [Item(self.new(c.name, c.type), c) for c in kept]
        if self.rng.random() < 0.5:
            made = self.expression(columns)
            if made is not None and not isinstance(made, Column):
                name = "x" if made.type == INTEGER else "e"
                items.append(Item(self.new(name, made.type), made))
        self.rng.shuffle(items)
        return Project(node, tuple(items[:MOST_COLUMNS]))

    def join(self, left: Node, right: Node) -> Node:
        rng = self.rng
        kind = rng.choice((*JoinKind, JoinKind.INNER, JoinKind.INNER, JoinKind.LEFT, JoinKind.LEFT))
        a, b = output_columns(left), output_columns(right)
        if kind is JoinKind.CROSS:
            return Join(kind, left, right)
        pairs = self._pairs(self.plain(a), self.plain(b))
        residual = self.predicate([*a, *b]) if rng.random() < 0.25 else None
        return Join(kind, left, right, tuple(pairs), residual)

    def _pairs(self, a: Sequence[Column], b: Sequence[Column]) -> list[Equality]:
        rng = self.rng
        found: list[Equality] = []
        hops = [
            hop
            for hop in HOPS
            if all(any(c.name == name and c.type == INTEGER for c in side) for name in hop for side in (a, b))
        ]
        if hops and rng.random() < 0.6:
            for name in rng.choice(hops):
                found.append(Equality(*(rng.choice([c for c in side if c.name == name]) for side in (a, b))))
        if not found or rng.random() < 0.2:
            able = [(x, y) for x in a for y in b if x.type == y.type and x.type.kind is not Kind.DOUBLE]
            alike = [(x, y) for x, y in able if x.name == y.name]
            if able:
                found.append(Equality(*rng.choice(alike if alike and rng.random() < 0.8 else able)))
        if found and rng.random() < 0.08:
            at = rng.randrange(len(found))
            x, y = found[at].left, found[at].right
            if x.type == INTEGER and isinstance(x, Column):
                found[at] = Equality(call("abs", x), y)
        return found

    def set_operation(self, left: Node, right: Node) -> Node | None:
        rng = self.rng
        a, b = self.plain(output_columns(left)), self.plain(output_columns(right))
        wanted = rng.randint(1, 3)
        columns: list[SetColumn] = []
        for x in sorted(rng.sample(a, len(a)), key=lambda c: c.name not in IDS):
            able = [y for y in b if y.type == x.type]
            alike = [y for y in able if y.name == x.name]
            if x.name in IDS and rng.random() < 0.15:
                alike = []
            if able and len(columns) < wanted:
                y = rng.choice(alike or able)
                columns.append(SetColumn(self.new(x.name, x.type), x, y))
        if not columns:
            return None
        rng.shuffle(columns)
        return SetOperation(rng.choice(list(SetKind)), rng.random() < 0.5, left, right, tuple(columns))

    def unnest(self, node: Node) -> Node | None:
        lists = self.of(output_columns(node), Kind.LIST)
        if not lists:
            return None
        return Unnest(node, self.rng.choice(lists), self.rng.randint(1, 2), self.new("x", INTEGER))

    def truncate(self, node: Node) -> Node | None:
        able = [c for c in output_columns(node) if c.type.kind in (Kind.INTEGER, Kind.VARCHAR)]
        if not able:
            return None
        ids = [c for c in able if c.name in IDS]
        chosen = {c.uid: c for c in self.rng.sample(able, min(len(able), self.rng.randint(1, 2)))}
        chosen |= {c.uid: c for c in ids[:1]}
        return Truncate(node, tuple(chosen.values()), self.rng.randint(1, 2), self.rng.random() < 0.4)

    def aggregate(self, node: Node) -> Node:
        rng, columns = self.rng, output_columns(node)
        able = self.plain(columns)
        ids = [c for c in able if c.name in IDS]
        chosen = {c.uid: c for c in rng.sample(able, min(len(able), rng.randint(0, 2)))}
        if ids and rng.random() < 0.85:
            one = rng.choice(ids)
            chosen[one.uid] = one
        keys = [Item(self.new(c.name, c.type), c) for c in chosen.values()]
        if keys and rng.random() < 0.2:
            made = self.expression(columns)
            if made is not None and made.type.kind is not Kind.LIST:
                keys.append(Item(self.new("e", made.type), made))
        calls = [self.aggregate_call(columns) for _ in range(rng.randint(0 if keys else 1, 3))]
        rng.shuffle(keys)
        return Aggregate(node, tuple(keys), tuple(calls))

    def aggregate_call(self, columns: Sequence[Column]) -> AggregateCall:
        rng, able = self.rng, self.plain(columns)
        where = self.predicate(columns, 0) if rng.random() < 0.15 else None
        name = rng.choice(("count", "count", "sum", "sum", "avg", "min", "max", "stddev_samp"))
        arg: Expr | None = rng.choice(able) if able and rng.random() < 0.7 else None
        if name in ("sum", "avg", "stddev_samp"):
            numbers = [c for c in able if c.type.numeric]
            if numbers:
                c = rng.choice(numbers)
                if c.type == DOUBLE:
                    ends = Literal(-1.0, DOUBLE), Literal(1.0, DOUBLE)
                else:
                    ends = Literal(-1, INTEGER), Literal(2, INTEGER)
                arg = c if c.name in "xd" and rng.random() < 0.6 else call("clip", c, *ends)
                if c.type == HUGEINT:
                    arg = call("clip", c, *ends)
            else:
                name = "count"
        if name in ("min", "max") and arg is None:
            name = "count"
        distinct = name == "count" and arg is not None and rng.random() < 0.3
        if name == "count":
            type_ = BIGINT
        elif name in ("avg", "stddev_samp"):
            type_ = DOUBLE
        elif name == "sum":
            assert arg is not None
            type_ = DOUBLE if arg.type.kind is Kind.DOUBLE else HUGEINT
        else:
            assert arg is not None
            type_ = arg.type
        return AggregateCall(name, arg, self.new("x" if type_ == HUGEINT else name, type_), distinct, where)

    # --- trees -------------------------------------------------------------------------------------------------------

    def step(self, depth: int, accepts: Accepts) -> Node | None:
        rng = self.rng
        kind = rng.choices(
            ("filter", "project", "join", "set", "unnest", "truncate", "aggregate"), (10, 12, 36, 12, 8, 6, 20)
        )[0]
        node = self.tree(depth - 1, accepts)
        match kind:
            case "filter":
                return self.filter(node)
            case "project":
                return self.project(node)
            case "unnest":
                return self.unnest(node)
            case "truncate":
                return self.truncate(node)
            case "aggregate":
                return self.aggregate(node)
        other = self.tree(rng.randint(0, depth - 1), accepts)
        if kind == "set" and rng.random() < 0.4:  # branches of one table meet more often than those of two
            other = self.again(node)
        return self.join(node, other) if kind == "join" else self.set_operation(node, other)

    def again(self, node: Node) -> Node:
        """Another read of the first table below; often of the rows that a filter on it leaves out."""
        where: Expr | None = None
        while not isinstance(node, Scan | Values):
            where = node.predicate if isinstance(node, Filter) and isinstance(node.input, Scan) else where
            node = node.left if isinstance(node, Join | SetOperation) else node.input
        if not isinstance(node, Scan):
            return self.values()
        other = self.scan(node.table)
        if where is None or self.rng.random() < 0.3:
            return self.filter(other)
        same = dict(zip((c.uid for c in node.columns), other.columns, strict=True))
        found = transform(where, lambda e: same[e.uid] if isinstance(e, Column) else e)
        return Filter(other, call("is_distinct_from", found, Literal(True, BOOLEAN)))

    def tree(self, depth: int, accepts: Accepts) -> Node:
        """A plan of at most this depth that is accepted; fewer operators where none of several tries is."""
        if depth > 0:
            for _ in range(TRIES):
                node = self.step(depth, accepts)
                if node is not None and 0 < len(output_columns(node)) <= 2 * MOST_COLUMNS and accepts(node):
                    return node
        return self.leaf()
