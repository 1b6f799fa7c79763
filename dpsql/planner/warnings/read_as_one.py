"""DP305: private groups that another aggregate reads, such as the average over `GROUP BY basket`.

Each of them would have to be shown by itself, with many units in it, before it is averaged: a basket is one
household's, so that all are paid for and none is in the average. Grouped by the id as well they stay private, and are
answered. Columns of integers and UUIDs without a list are taken for ids of something, and what is computed, such as
`year(day)`, is not; texts where, besides, groups are shown from a number of units on that nobody has declared. Nothing
rests on it, and `anyway` asks all the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.expressions import Column
from dpsql.core.ir.nodes import Aggregate, Release, key_sources, keyed_by
from dpsql.core.ir.short_text import identifier
from dpsql.core.ir.types import Kind
from dpsql.core.ir.walk import Tagged
from dpsql.core.noise.measurement import MeasuredRelease
from dpsql.diagnostics.diagnostic import Diagnostic, Source
from dpsql.planner.warnings.warnings import LARGE_GROUP

_IDS: Final = (Kind.INTEGER, Kind.UUID)
_EXTREMES: Final = ("min", "max")
"""Of what is shown they are what they say."""


def read_as_one(tree: Tagged[Facts], measured: Sequence[MeasuredRelease], source: Source) -> Iterator[Diagnostic]:
    """What refuses the query."""
    rare = [m.node for m in measured if m.threshold and m.shown_from > LARGE_GROUP + m.node.min_units]
    for found in _read(tree, False):
        node, facts = found.node, found.inputs[0].fact
        assert isinstance(node, Release)
        items = keyed_by(node).items
        kinds = {facts.value(i.expr).type.kind for i in items}
        ids = [i for i in items if isinstance(i.expr, Column) and i.expr.type.kind in _IDS]
        if not ids and not (node in rare and kinds == {Kind.VARCHAR}):
            continue
        own = min((c.hint.column for uid in facts.ids if (c := facts.columns.get(uid)) and c.hint), default="the id")
        names, unit = ", ".join(identifier(i.column.name) for i in items), facts.units[0]
        column = (ids or items)[0]
        key = identifier(column.column.name)
        yield Diagnostic(
            "DP305",
            f"each group of {names} would have to be shown, with many {unit} ids in it, before it is aggregated",
            source, column.expr.span or column.column.span or node.span, f"a group of one {unit} is never shown",
            (
                f"if each is one {unit}'s own, group by the id as well:  GROUP BY {identifier(own)}, {names}",
                f"custodian: say so, and the query is answered as it stands:  belongs_to_unit: [{key}]",
                "or a public list of them:  domain: […],  of numbers also  bounds: [lower, upper]",
            ),
            severity="error",
        )  # fmt: skip


def _read(tree: Tagged[Facts], below: bool) -> Iterator[Tagged[Facts]]:
    """Releases of private groups of ids that stand below another aggregate."""
    match tree.node:
        case Release(keys=keys) as node:
            if below and keys and key_sources(node) is None and tree.inputs[0].fact.ids:
                yield tree
            return  # what its rows are made of is released before, if at all
        case Aggregate(calls=calls) if any(c.function not in _EXTREMES for c in calls):
            below = True
        case _:
            pass
    for child in tree.inputs:
        yield from _read(child, below)
