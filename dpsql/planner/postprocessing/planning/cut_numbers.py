"""Which noisy numbers a limit cuts: what is above a limit is not in them, and without more nobody knows how much it is.

*Claim.* A number whose interval keeps an end here lies beyond that end without limits, too, as often as with them.
*Why.* A limit keeps of each unit a part of what it has: of what is never negative it only takes away, and so it does in
every number that never falls where that rises. What the plan proves to be above no limit, or the policy promises, is
whole. Rows that are missing below a release make its counts smaller, unless something above them asks for their
absence, or counts them for each unit; then both ends are lost, as they are of values that a search found bounds for.
*When it would be false.* If a promise is
(`nobody_has_more`, which `policy verify` tests); no privacy rests on any of this. *Tested by*
tests/planner/postprocessing/test_cut_numbers.py
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from enum import Enum
from types import MappingProxyType
from typing import Final

from dpsql.core.analysis.facts import Contribution, Facts
from dpsql.core.ir.components import Component, OnGrid
from dpsql.core.ir.expressions import Call, Column, walk
from dpsql.core.ir.nodes import (
    Aggregate,
    BoundContributions,
    GroupKeys,
    Join,
    JoinKind,
    Release,
    Scan,
    SetKind,
    SetOperation,
    Truncate,
    Window,
)
from dpsql.core.ir.recipes import Output
from dpsql.core.ir.walk import Tagged
from dpsql.core.measures.all_measures import rule
from dpsql.core.policy.tables import Table
from dpsql.core.release.planned import PlannedRelease
from dpsql.frontend.aggregates.formula import formula
from dpsql.frontend.aggregates.interval_end import End
from dpsql.planner.postprocessing.planning.decided_by_noise import decided_by_noise
from dpsql.planner.postprocessing.planning.forms import WHOLE, Lost
from dpsql.planner.postprocessing.planning.steps import CutEnd
from dpsql.planner.promised_rows import promised_rows

TableOf = Callable[[str], Table]


class Shortfall(Enum):
    """What limits take from a component, or noise decides on."""

    NOTHING = 0
    TOLD = 1  # each unit counts with a part of what it has, and a search tells how much that leaves out
    SOME = 2  # the same, and nothing tells
    ANYTHING = 3  # it may also have become larger
    OTHERS = 4  # another noisy number decides what it is made of

    def __or__(self, other: Shortfall) -> Shortfall:
        return self if self.value >= other.value else other


Cuts = Mapping[int, tuple[Shortfall, ...]]
"""Release → its components; what is not there is whole."""
NO_CUTS: Final[Cuts] = MappingProxyType({})


def missing_of(
    release: Tagged[Facts],
    limits: Contribution,
    table: TableOf,
    clips: Collection[Call] = (),
    counted: Collection[GroupKeys] = (),
    alone: bool = False,
) -> tuple[Shortfall, ...]:
    """Of each component of a release. limits: as they were derived for it. clips: to bounds that a search finds.
    counted: rows with their group columns, of which a search finds how many of a unit count. alone: no other release is
    there, whose noise could decide on any.
    """
    node = release.node
    assert isinstance(node, Release)
    below = _missing_rows(release.inputs[0], table)
    decided = (False,) * len(node.components) if alone else decided_by_noise(release)
    is_counted = isinstance(node.input, BoundContributions) and node.input.input in counted
    return tuple(
        Shortfall.OTHERS
        if others
        else _by_limits(c, node.input, limits, is_counted)
        | below
        | _by_inner_limits(c, release.inputs[0], table)
        | _by_found_bounds(c, clips)
        for c, others in zip(node.components, decided, strict=True)
    )


def lost_of(output: Output, components: Sequence[Component], missing: Sequence[Shortfall]) -> Lost:
    """Which ends of an output's interval say nothing of the number without limits."""
    found = max((missing[i] for i in output.recipe.components), key=lambda m: m.value, default=Shortfall.NOTHING)
    if found is Shortfall.NOTHING:
        return WHOLE
    if found is Shortfall.OTHERS:
        return Lost(low=True, high=True, others=True)
    made_by = formula(output)
    made_by = made_by.of if isinstance(made_by, End) else made_by
    terms = made_by.terms(components)
    told = found is Shortfall.TOLD
    if found is Shortfall.ANYTHING or terms is None:
        return Lost(low=True, high=True, told=told and made_by.rows is not None)
    told = told and all(components[i].of_unit is not None for i, _ in terms)
    if made_by.nonnegative(components):
        return Lost(high=True, told=told)
    signed = not _never_positive(components, [i for i, _ in terms])
    return Lost(low=True, high=signed, told=told)


def ends_of_cut(releases: Sequence[PlannedRelease], cuts: Cuts) -> Mapping[tuple[int, int], CutEnd]:
    """(release, output) of the ends of intervals that a limit changes."""
    found = dict[tuple[int, int], CutEnd]()
    for place, missing in cuts.items():
        node = releases[place].measured.node
        for at, output in enumerate(node.outputs):
            if isinstance(output.recipe, End):
                lost = lost_of(output, node.components, missing)
                is_lost = lost.high if output.recipe.high else lost.low
                if is_lost or (lost.high and output.recipe.of.nonnegative(node.components)):
                    found[place, at] = CutEnd(is_lost, lost.told)
    return found


def _never_positive(components: Sequence[Component], places: Sequence[int]) -> bool:
    """Whether it is a sum of values that are never positive."""
    own = components[places[0]]
    return len(places) == 1 and isinstance(own, OnGrid) and own.ends[1] + own.center <= 0


def _by_limits(c: Component, bounding: object, limits: Contribution, is_counted: bool) -> Shortfall:
    """What the limits of the release take away, or its own. is_counted: whether a search found the first."""
    if c.per_group is not None:
        low, high = c.per_group
        return Shortfall.SOME if low <= 0 <= high else Shortfall.ANYTHING
    if c.of_unit is not None:
        b = bounding
        cut = isinstance(b, BoundContributions) and bool(b.keys) and b.groups is not None and not b.few_groups
        return Shortfall.SOME if cut or not c.of_unit.label else Shortfall.TOLD
    if not isinstance(bounding, BoundContributions):
        return Shortfall.NOTHING
    b, counts = bounding, rule(c).counts
    in_groups = bool(b.keys) and not b.few_groups and not b.spare_groups
    cut = in_groups and b.groups is not None
    if counts == "ids":  # each once in a group: of so many rows there are no more groups
        return Shortfall.SOME if cut or (in_groups and b.rows is not None and not b.spare_rows) else Shortfall.NOTHING
    if counts == "values" and b.few_groups and c.values is not None:
        cut = rule(c).kept(c, limits) < limits.most_groups * c.values
    elif b.rows is not None or b.per_group is not None:
        if is_counted and counts == "rows" and not cut and not b.spare_rows:
            return Shortfall.TOLD
        cut = cut or not b.spare_rows
    return Shortfall.SOME if cut else Shortfall.NOTHING


def _by_found_bounds(c: Component, clips: Collection[Call]) -> Shortfall:
    """Whether its values are clipped to bounds that a search found: nothing tells how far they lie beyond them."""
    cut = bool(clips) and isinstance(c, OnGrid) and any(e in clips for arg in c.arguments for e in walk(arg))
    return Shortfall.ANYTHING if cut else Shortfall.NOTHING


# --- rows that are missing below -------------------------------------------------------------------------------------


def _missing_rows(rows: Tagged[Facts], table: TableOf) -> Shortfall:
    """What enforced limits below have taken from these rows: of keys that are truncated, of prepared copies."""
    node = rows.node
    if isinstance(node, Release):
        return Shortfall.NOTHING
    found = Shortfall.NOTHING
    for at, below in enumerate(rows.inputs):
        own = _missing_rows(below, table)
        if own is Shortfall.SOME and _may_raise(node, at):
            own = Shortfall.ANYTHING
        found |= own
    if isinstance(node, Truncate) or (isinstance(node, Scan) and _is_short(node.table, table)):
        found |= Shortfall.SOME
    return found


def _may_raise(node: object, at: int) -> bool:
    """Whether more rows of an input may make fewer rows, or other values."""
    match node:
        case Aggregate():
            return True
        case Join(kind=kind):
            return kind is JoinKind.FULL or (at == 1 and kind in (JoinKind.LEFT, JoinKind.ANTI))
        case SetOperation(kind=kind, all=keeps_all):
            return not (kind is SetKind.UNION and keeps_all) and (kind is not SetKind.UNION and at == 1)
    return False


def _is_short(name: str, table: TableOf) -> bool:
    """Whether a copy lacks rows of those who had more than it holds, or an owner's copy does."""
    at: str | None = name
    while at is not None and (copy := table(at).copied) is not None:
        limit = table(at).max_rows_per_unit
        if copy.cut and not (limit is not None and limit.nobody_has_more):
            return True
        at = None if copy.hop is None else copy.hop.table
    return False


# --- totals of units that are values --------------------------------------------------------------------------------


def _by_inner_limits(c: Component, rows: Tagged[Facts], table: TableOf) -> Shortfall:
    """Whether a value that was made of a unit's rows is clipped where a limit on rows ends: a mean of their counts."""
    if c.arg is None:
        return Shortfall.NOTHING
    clips = (e for arg in c.arguments for e in walk(arg) if isinstance(e, Call) and e.function == "clip")
    cut = any(_limited(e.args[0].uid, rows, table) for e in clips if isinstance(e.args[0], Column))
    return Shortfall.SOME if cut else Shortfall.NOTHING


def _limited(uid: int, rows: Tagged[Facts], table: TableOf) -> bool:
    """Whether this column is a count or total of rows whose number no promise bounds; of a union, or a window, whether
    what it shows is."""
    fact = rows.fact.columns.get(uid)
    if fact is None or fact.hint is None or fact.hint.table or fact.hint.bounds is None:
        return False
    made = fact.hint.scan
    for at in rows.walk():
        match at.node:
            case Aggregate(calls=calls):
                for call in (c for c in calls if c.column.uid == made):
                    return call.function in ("count", "sum") and promised_rows(at.inputs[0], table) is None
            case SetOperation(columns=columns):
                for c in (c for c in columns if c.column.uid == made):
                    sides = zip((c.left, c.right), at.inputs, strict=True)
                    return any(isinstance(e, Column) and _limited(e.uid, side, table) for e, side in sides)
            case Window(calls=windows):
                for window in (w for w in windows if w.column.uid == made):
                    below = at.inputs[0]
                    return any(isinstance(e, Column) and _limited(e.uid, below, table) for e in window.args)
    return True
