"""Whether a plan is one at all: every column that is read is there, under its own type, and under one number.

*Claim.* Of a plan that passes, every expression of a node reads columns of the node's own inputs, of the type that
they have there; no two columns of one row have the same number; the columns of a set operation, a list of keys, a
release and its components fit each other. *Why.* Each of these is looked at, for every node. *When it would be
false.* If a kind of node reads columns that `read_by` does not name. *Tested by*
tests/core/analysis/test_well_formed.py, which looks at every rewrite of every fixture.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NoReturn

from dpsql.core.ir.components import Comoment, Component, DistinctCount, LargestChoice, SharedUnits, UnitCount
from dpsql.core.ir.contributions import SATURATED
from dpsql.core.ir.expressions import Column, Expr, walk
from dpsql.core.ir.nodes import (
    Aggregate,
    BoundContributions,
    Filter,
    GroupKeys,
    Join,
    Limit,
    Node,
    Project,
    Release,
    SetOperation,
    Sort,
    Truncate,
    Unnest,
    Values,
    Window,
    inputs,
    made_columns,
)
from dpsql.core.ir.types import SqlType
from dpsql.core.ir.walk import children_first, expressions
from dpsql.diagnostics.errors import reject

Row = Mapping[int, SqlType]
"""Number → type of the columns that a node's rows have."""


def require_well_formed(plan: Node) -> None:
    """Raises Rejected DP904 for a plan that no text stands for: whoever made it is wrong, and nothing is priced."""
    known: dict[Node, Row] = {}
    for node in children_first(plan, known):
        below = [known[child] for child in inputs(node)]
        _reads(node, below)
        _fits(node, below)
        known[node] = _columns(node, below)


def _columns(node: Node, below: list[Row]) -> Row:
    """As `output_columns`, of what is known of the inputs."""
    match node:
        case Join(kind=kind):
            rows = below[:1] if kind.filters else below
        case Unnest() | Window() | GroupKeys() | Filter() | Truncate() | Sort() | Limit() | BoundContributions():
            rows = below
        case _:
            rows = []
    made = made_columns(node)
    if not made and len(rows) == 1:
        return rows[0]
    found = {c.uid: c.type for c in made}
    for row in rows:
        found.update(row)
    if len(found) < len(made) + sum(map(len, rows)):
        _wrong(node, "two of its columns have one number")
    return found


def _reads(node: Node, below: list[Row]) -> None:
    """Every column that the node reads is one of the input that it reads it from."""
    for rows, exprs in read_by(node, below):
        for expr in exprs:
            for part in (expr,) if type(expr) is Column else walk(expr):
                if type(part) is Column:
                    there = rows.get(part.uid)
                    if there is not part.type and there != part.type:
                        _wrong(node, f"{part.name or 'a column'} is not one of its input")


def read_by(node: Node, below: list[Row]) -> Iterator[tuple[Row, Iterable[Expr]]]:
    """The expressions that a node evaluates, each with the columns that it may read."""
    match node:
        case Join(equalities=pairs, residual=residual):
            left, right = below
            yield left, [p.left for p in pairs]
            yield right, [p.right for p in pairs]
            if residual is not None:
                yield {**left, **right}, [residual]
        case SetOperation(columns=columns):
            left, right = below
            yield left, [c.left for c in columns]
            yield right, [c.right for c in columns]
        case BoundContributions(id=id_, keys=keys):
            yield below[0], [id_, *keys]
        case Release(keys=keys):
            yield below[0], [*keys, *expressions(node)]
        case _ if below:
            yield below[0], expressions(node)
        case _:
            pass


def _fits(node: Node, below: list[Row]) -> None:
    """The parts of one node fit each other."""
    match node:
        case Values(columns=columns, rows=rows):
            if any(len(row) != len(columns) for row in rows):
                _wrong(node, "a row is longer or shorter than its columns")
        case Aggregate(calls=calls) if any(c.summed is not None and c.summed.arg != c.arg for c in calls):
            _wrong(node, "it sums the integers of another argument")
        case Project(items=items) | Aggregate(keys=items):
            if any(i.column.type != i.expr.type for i in items):
                _wrong(node, "a column has another type than what it is computed from")
        case Limit(count=count, offset=offset):
            if offset < 0 or (count is not None and count < 0):
                _wrong(node, "it keeps fewer than no rows")
        case Truncate(rows=most) | Unnest(most=most):
            if most < 1:
                _wrong(node, "it keeps no row")
        case GroupKeys(items=items, sources=sources, within=within):
            for lists in (sources, within):
                places = sorted(at for source in lists or () for at in source.positions)
                if lists and places != list(range(len(items))):
                    _wrong(node, "its lists are not of its columns, each once")
            if any(i.column.type != i.expr.type for i in items):
                _wrong(node, "a key has another type than what it is computed from")
        case BoundContributions(rows=rows, per_group=per_group, groups=groups, truncate_groups=truncate):
            if any(limit is not None and limit < 1 for limit in (rows, per_group, groups)):
                _wrong(node, "a limit is below 1")
            if rows is not None and per_group is not None:
                _wrong(node, "it has a number of rows, and one for each group")
            if groups is None and (per_group is not None or (truncate and rows is None)):
                _wrong(node, "it needs a number of groups")
        case Release(input=child, keys=keys, components=components, outputs=outputs, threshold=threshold):
            keyed = child.input if isinstance(child, BoundContributions) else child
            if not isinstance(keyed, GroupKeys) or [k.uid for k in keys] != [i.column.uid for i in keyed.items]:
                _wrong(node, "its keys are not those of its rows")
            for component in components:
                _limited(node, component, child)
                _counted(node, component, child)
                if isinstance(component, SharedUnits):
                    _shared(node, component, child)
                _picked(node, component)
            asked = [at for output in outputs for at in output.recipe.components]
            asked += [] if threshold is None else [threshold]
            if any(not 0 <= at < len(components) for at in asked):
                _wrong(node, "a number is made of a component that is not there")
            _sliced(node)
        case _:
            pass


def _counted(node: Release, c: Component, below: Node) -> None:
    """A comoment is of all rows there are."""
    if isinstance(c, Comoment) and (c.filter is not None or node.keys or isinstance(below, BoundContributions)):
        _wrong(node, "a comoment is not of all rows")


def _shared(node: Release, c: SharedUnits, below: Node) -> None:
    """Ids with weights by their groups decide on private keys, and all groups of an id that are kept count."""
    kept = isinstance(below, BoundContributions) and below.truncate_groups and node.keys
    if not kept or c.filter is not None or node.threshold is None or node.components[node.threshold] is not c:
        _wrong(node, "weights of ids by their groups do not decide on keys, or of other groups")


def _picked(node: Release, c: Component) -> None:
    """What is picked by its units is one of several picks, all of them of no groups, in their order."""
    if not isinstance(c, LargestChoice):
        return
    if node.keys:
        _wrong(node, "a choice by units is one of groups")
    others = (other for other in node.components if isinstance(other, LargestChoice))
    if [other.pick.place for other in others if replace(other, pick=c.pick) == c] != list(range(c.pick.of)):
        _wrong(node, "picks from one list are missing, or in another order")


def _sliced(node: Release) -> None:
    """Each component is in one slice at most, and those of a slice share its condition, which no other slice has."""
    placed = [i for each in node.slices for own in each.slices for i in own]
    if len(set(placed)) < len(placed) or any(not 0 <= i < len(node.components) for i in placed):
        _wrong(node, "a component is in two slices, or one of them is not there")
    for each in node.slices:
        filters = [{node.components[i].filter for i in own} for own in each.slices]
        if any(len(own) != 1 or None in own for own in filters) or len(set().union(*filters)) < len(filters):
            _wrong(node, "the components of a slice have other conditions, or two slices one")


def _limited(node: Release, c: Component, below: Node) -> None:
    """A limit of a component's own fits it, and one without is limited by the bounding node, if there is one."""
    if c.of_unit is not None:
        if c.center or not isinstance(below, BoundContributions) or not 1 <= c.of_unit.most <= SATURATED:
            _wrong(node, "a limit on what an id adds is of another component")
        if isinstance(c, DistinctCount) and c.of_unit.norm != "l1":
            _wrong(node, "a number of different values has a limit of another norm")
    elif isinstance(below, BoundContributions):
        in_groups = isinstance(c, (UnitCount, SharedUnits, LargestChoice)) and below.groups is not None
        if below.rows is None and below.per_group is None and not in_groups:
            _wrong(node, "nothing limits what an id adds to a component")


def _wrong(node: Node, what: str) -> NoReturn:
    raise reject(
        "DP904", f"the plan is malformed: {type(node).__name__}: {what}; nothing was run",
        span=getattr(node, "span", None),
        help=["please report this query: the planner contradicts itself"],
    )  # fmt: skip
