"""GROUPING SETS, ROLLUP and CUBE: one aggregate for each set of keys, combined by UNION ALL in the sets' order."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations, product

from sqlglot import exp

from dpsql.core.ir.expressions import Column, Expr, Literal
from dpsql.core.ir.nodes import (
    Aggregate,
    AggregateCall,
    Item,
    Node,
    Scan,
    SetColumn,
    SetKind,
    SetOperation,
    Values,
    output_columns,
)
from dpsql.core.ir.types import BIGINT
from dpsql.core.ir.walk import renumbered, walk
from dpsql.diagnostics.diagnostic import Span
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.frontend.bind.expressions.expressions import ExprBinder
from dpsql.frontend.bind.expressions.syntax_arguments import checked
from dpsql.frontend.bind.parameters import Numbering

MOST_SETS = 64
"""Most sets of keys of one GROUP BY: each is a release of its own."""

Keys = tuple[exp.Expr, ...]


@dataclass(frozen=True, slots=True)
class Groups:
    """The group columns, and which of them each set has, by position. Without ROLLUP and the like: one set of all.

    written: False for constants alone, which group nothing into no row; `()` written out always has one row.
    """

    keys: tuple[Item, ...]
    sets: tuple[frozenset[int], ...]
    written: bool = False


def written_sets(nodes: list[exp.Expr], binder: ExprBinder) -> list[Keys]:
    """The sets of keys that the elements of a GROUP BY name together: every choice of one set of each element."""
    lists = [_sets(node, binder) for node in nodes]
    size = 1
    for found in lists:
        size *= len(found)
        if size > MOST_SETS:
            raise _too_many(nodes[0], binder)
    return [tuple(key for keys in chosen for key in keys) for chosen in product(*lists)]


def _sets(node: exp.Expr, binder: ExprBinder) -> list[Keys]:
    match node:
        case exp.GroupingSets():
            inner = checked(node, binder.source, "expressions").get("expressions", [])
            found: list[Keys] = []
            for element in inner:
                found += _sets(element, binder)
                if len(found) > MOST_SETS:
                    raise _too_many(node, binder)
            return found
        case exp.Rollup():
            parts = _parts(node, binder)
            if len(parts) >= MOST_SETS:
                raise _too_many(node, binder)
            return [_flat(parts[:n]) for n in range(len(parts), -1, -1)]
        case exp.Cube():
            parts = _parts(node, binder)
            if len(parts) > MOST_SETS or 2 ** len(parts) > MOST_SETS:
                raise _too_many(node, binder)
            return [_flat(list(c)) for n in range(len(parts), -1, -1) for c in combinations(parts, n)]
        case exp.Tuple():
            return [tuple(checked(node, binder.source, "expressions").get("expressions", []))]
        case _:
            return [(node,)]


def _parts(node: exp.Rollup | exp.Cube, binder: ExprBinder) -> list[Keys]:
    """The members of a ROLLUP or CUBE; several expressions in brackets are one."""
    found = []
    for part in checked(node, binder.source, "expressions")["expressions"]:
        if isinstance(part, (exp.Rollup, exp.Cube, exp.GroupingSets)):
            raise reject(
                "DP101", "ROLLUP, CUBE and GROUPING SETS cannot stand inside ROLLUP or CUBE", span=binder.span(part),
                help=["write them one after the other, or inside GROUPING SETS (…)"],
            )  # fmt: skip
        found += _sets(part, binder)
    return found


def _flat(parts: list[Keys]) -> Keys:
    return tuple(key for part in parts for key in part)


def _too_many(node: exp.Expr, binder: ExprBinder) -> Rejected:
    return reject(
        "DP101", f"more than {MOST_SETS} sets of group keys", span=binder.span(node), label="each is released",
        help=["list the sets that you need:  GROUPING SETS ((a, b), (a), ())"],
    )  # fmt: skip


@dataclass(slots=True)
class GroupingCalls:
    """GROUPING(x, …) in the clauses of one SELECT: a constant in each set; a column until the sets are known."""

    numbering: Numbering
    calls: list[tuple[Column, tuple[Expr, ...]]] = field(default_factory=list)

    def __call__(self, node: exp.Expr, binder: ExprBinder) -> Expr:
        """The column of the call at `node`."""
        given = checked(node, binder.source, "expressions").get("expressions", [])
        clause, binder.clause = binder.clause, "GROUPING"
        aggregate, binder.aggregate = binder.aggregate, None
        args = tuple(binder.bind(e) for e in given)
        binder.clause, binder.aggregate = clause, aggregate
        column = self.numbering.column("grouping", BIGINT, binder.span(node))
        self.calls.append((column, args))
        return column

    def values(self, groups: Groups) -> list[dict[int, Literal]]:
        """For each set, the value of each call: one bit per argument, 1 if it is not in the set; the last is lowest.

        Raises Rejected DP109 for an argument that is no group key.
        """
        places = {item.expr: at for at, item in enumerate(groups.keys)}
        found: list[dict[int, Literal]] = [{} for _ in groups.sets]
        for column, args in self.calls:
            for arg in args:
                if arg not in places:
                    raise reject(
                        "DP109", "GROUPING asks about something that is not grouped", span=arg.span or column.span,
                        help=["name an expression of GROUP BY"],
                    )  # fmt: skip
            positions = [places[a] for a in args] or list(range(len(groups.keys)))
            for values, chosen in zip(found, groups.sets, strict=True):
                bits = sum((at not in chosen) << place for place, at in enumerate(reversed(positions)))
                values[column.uid] = Literal(bits, BIGINT, column.span)
        return found


def aggregated(
    node: Node,
    groups: Groups,
    calls: tuple[AggregateCall, ...],
    groupings: GroupingCalls,
    numbering: Numbering,
    span: Span,
) -> tuple[Node, dict[int, Literal]]:
    """The grouped rows, and what GROUPING is where there is one set only.

    Several sets: the columns of the keys (NULL where a set does not have them), of the calls and of GROUPING.
    """
    values = groupings.values(groups)
    if len(groups.sets) == 1:
        if groups.written and not groups.keys and not calls:
            return Values((), ((),)), values[0]
        return Aggregate(node, groups.keys, calls, span if not calls else None), values[0]
    outputs = (*(k.column for k in groups.keys), *(c.column for c in calls), *(c for c, _ in groupings.calls))
    found: tuple[Node, dict[int, Expr]] | None = None
    for at, (chosen, constants) in enumerate(zip(groups.sets, values, strict=True)):
        keys = tuple(k for place, k in enumerate(groups.keys) if place in chosen)
        branch, columns = _one_set(node, keys, calls, numbering, span)
        named: dict[int, Expr] = {**columns, **constants}
        for key in groups.keys:
            named.setdefault(key.column.uid, Literal(None, key.column.type, key.column.span))
        if found is None:
            found = branch, named
            continue
        left, known = found
        last = at == len(groups.sets) - 1
        new = [c if last else numbering.column(c.name, c.type, c.span) for c in outputs]
        pairs = tuple(SetColumn(n, known[c.uid], named[c.uid]) for n, c in zip(new, outputs, strict=True))
        union = SetOperation(SetKind.UNION, True, left, branch, pairs, span)
        found = union, {c.uid: n for c, n in zip(outputs, new, strict=True)}
    assert found is not None
    return found[0], {}


def _one_set(
    node: Node, keys: tuple[Item, ...], calls: tuple[AggregateCall, ...], numbering: Numbering, span: Span
) -> tuple[Node, dict[int, Column]]:
    """One aggregate over its own reading of the rows, and the columns it has for the keys and calls."""
    if not keys and not calls:
        return Values((), ((),)), {}  # the set of all rows has one row, whatever there is
    for scan in walk(node):
        if isinstance(scan, Scan):
            numbering.table(scan.span)
    whole = Aggregate(node, keys, calls, span if not calls else None)
    copy, new = renumbered(whole, lambda c: numbering.column(c.name, c.type, c.span))
    return copy, {c.uid: new[c.uid] for c in output_columns(whole)}
