"""What a plan reads: which tables, which of their columns and for what, and what it compares them with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dpsql.core.ir.components import ListChoice, QuantileChoice
from dpsql.core.ir.expressions import Call, Column, Expr, Literal, LiteralValue, columns_of, walk
from dpsql.core.ir.nodes import (
    Aggregate,
    BoundContributions,
    GroupKeys,
    Join,
    Project,
    Release,
    Scan,
    SetOperation,
    Truncate,
    Unnest,
)
from dpsql.core.ir.walk import arguments, expressions
from dpsql.core.measures.all_measures import rule
from dpsql.core.policy.policy import Policy
from dpsql.engines.synthetic import DIALECT
from dpsql.planner.plan import Plan

Place = tuple[str, str]
"""A table and a column of it."""
MOST_SPANS = 8
"""Of the days that are read of a growing table, ends of so many spans are tried."""


@dataclass(frozen=True, slots=True)
class PlanReading:
    """What a plan reads.

    private, public: tables. used: columns that an expression reads. keys: those that group keys are made of. varied:
    those of which different values count. ordered: those of quantiles. compared: column → literals of the query beside
    it. partners: column → the columns it is joined to. listed: column → values of the list of keys, or of a MODE, that
    it is looked up in. numbers: every limit of the plan that counts rows or groups.
    """

    private: tuple[str, ...]
    public: tuple[str, ...]
    used: frozenset[Place]
    keys: frozenset[Place]
    varied: frozenset[Place]
    ordered: frozenset[Place]
    compared: Mapping[Place, tuple[LiteralValue, ...]]
    partners: Mapping[Place, frozenset[Place]]
    listed: Mapping[Place, tuple[str, ...]]
    numbers: tuple[int, ...]


def reading(plan: Plan, policy: Policy) -> PlanReading:
    """Read a plan."""
    return _Reader(plan, policy).read()


class _Reader:
    def __init__(self, plan: Plan, policy: Policy) -> None:
        self.nodes = [t.node for t in plan.tree.walk()]
        self.policy = policy
        self.places: dict[int, Place] = {}
        self.definitions: dict[int, list[Expr]] = {}
        for node in self.nodes:
            match node:
                case Scan(table=table, columns=columns):
                    self.places |= {c.uid: (table, c.name) for c in columns}
                case Project(items=items) | GroupKeys(items=items):
                    for item in items:
                        self.definitions.setdefault(item.column.uid, []).append(item.expr)
                case Aggregate(keys=keys, calls=calls):
                    for item in keys:
                        self.definitions.setdefault(item.column.uid, []).append(item.expr)
                    for call in calls:
                        self.definitions.setdefault(call.column.uid, []).extend(arguments(call))
                case SetOperation(columns=set_columns):
                    for c in set_columns:
                        self.definitions.setdefault(c.column.uid, []).extend((c.left, c.right))
                case Unnest(list=listed, column=column):
                    self.definitions.setdefault(column.uid, []).append(listed)
                case _:
                    pass

    def origins(self, expr: Expr) -> frozenset[Place]:
        """The table columns that an expression is made of."""
        found: set[Place] = set()
        pending, seen = list(columns_of(expr)), set[int]()
        while pending:
            uid = pending.pop()
            if uid in seen:
                continue
            seen.add(uid)
            if uid in self.places:
                found.add(self.places[uid])
            pending += [u for e in self.definitions.get(uid, ()) for u in columns_of(e)]
        return frozenset(found)

    def read(self) -> PlanReading:
        tables = list(dict.fromkeys(n.table for n in self.nodes if isinstance(n, Scan)))
        used: set[Place] = set()
        keys: set[Place] = set()
        varied: set[Place] = set()
        ordered: set[Place] = set()
        compared: dict[Place, list[LiteralValue]] = {}
        partners: dict[Place, set[Place]] = {}
        listed: dict[Place, list[str]] = {}
        for node in self.nodes:
            if isinstance(node, Scan) and node.periods is not None:
                read = node.periods
                ends = [day for span in read.days[:MOST_SPANS] for day in span if day is not None]
                compared.setdefault((node.table, read.by), []).extend(ends)
            for expr in expressions(node):
                if not isinstance(node, Project):  # a projection alone reads everything
                    used |= self.origins(expr)
                for place, values in self._compared(expr):
                    compared.setdefault(place, []).extend(values)
                for one, other in self._equal(expr):
                    self._pair(partners, one, other)
            match node:
                case Join(equalities=pairs):
                    for pair in pairs:
                        self._pair(partners, pair.left, pair.right)
                case GroupKeys(items=items, sources=sources):
                    keys |= {p for item in items for p in self.origins(item.expr)}
                    for source in sources or ():
                        for at, position in enumerate(source.positions):
                            item = items[position]
                            if isinstance(item.expr, Column):
                                for place in self.origins(item.expr):
                                    values_ = [DIALECT.constant(k[at], item.expr.type) for k in list(source.keys)[:8]]
                                    listed.setdefault(place, []).extend(values_)
                case Release(components=components):
                    for c in components:
                        if rule(c).counts == "values" and c.arg is not None:
                            varied |= self.origins(c.arg)
                        if isinstance(c, QuantileChoice):
                            ordered |= self.origins(c.arg)
                        if isinstance(c, ListChoice) and c.choices is not None and isinstance(c.arg, Column):
                            values_ = [DIALECT.constant(k[0], c.arg.type) for k in list(c.choices.keys)[:8]]
                            for place in self.origins(c.arg):
                                listed.setdefault(place, []).extend(values_)
                case Aggregate(keys=grouped, inner=True):
                    varied |= {p for item in grouped for p in self.origins(item.expr)}
                case _:
                    pass
        return PlanReading(
            tuple(t for t in tables if not self.policy.tables[t].public),
            tuple(t for t in tables if self.policy.tables[t].public),
            frozenset(used), frozenset(keys), frozenset(varied), frozenset(ordered),
            {p: tuple(v) for p, v in compared.items()},
            {p: frozenset(v) for p, v in partners.items()},
            {p: tuple(dict.fromkeys(v)) for p, v in listed.items()},
            tuple(sorted(set(self._numbers(tables)))),
        )  # fmt: skip

    def _compared(self, expr: Expr) -> Iterator[tuple[Place, list[LiteralValue]]]:
        for e in walk(expr):
            if isinstance(e, Call):
                literals = [a.value for a in e.args if isinstance(a, Literal)]
                if literals:
                    for place in self.origins(e):
                        yield place, literals

    def _equal(self, expr: Expr) -> Iterator[tuple[Expr, Expr]]:
        for e in walk(expr):
            if isinstance(e, Call) and len(e.args) == 2 and all(isinstance(a, Column) for a in e.args):
                yield e.args[0], e.args[1]

    def _pair(self, partners: dict[Place, set[Place]], one: Expr, other: Expr) -> None:
        for a in self.origins(one):
            for b in self.origins(other):
                if a != b:
                    partners.setdefault(a, set()).add(b)
                    partners.setdefault(b, set()).add(a)

    def _numbers(self, tables: list[str]) -> Iterator[int]:
        for node in self.nodes:
            match node:
                case BoundContributions(rows=rows, per_group=per_group, groups=groups):
                    yield from (n for n in (rows, per_group, groups) if n is not None)
                case Truncate(rows=rows):
                    yield rows
                case Release(components=components):
                    # Of a total as many rows as may reach it.
                    totals = ((c.of_unit.most, c) for c in components if c.of_unit is not None)
                    yield from (-(-most // max(1, c.magnitude)) for most, c in totals)
                case _:
                    pass
        for name in tables:
            table = self.policy.tables[name]
            limits = (table.max_rows_per_unit.rows if table.max_rows_per_unit else None, table.max_groups_per_unit)
            yield from (n for n in (*limits, table.max_rows_per_group) if n is not None)
            yield from (f.rows for f in table.max_frequency)
