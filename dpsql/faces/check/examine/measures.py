"""What the analysis says about one statement, in numbers that two versions of it can be compared by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from dpsql.core.ir.components import OnGrid
from dpsql.core.ir.contributions import SATURATED
from dpsql.core.ir.expressions import Column
from dpsql.core.ir.nodes import Limit, Project, Sort
from dpsql.core.measures.all_measures import rule
from dpsql.core.noise.measurement import MeasuredRelease
from dpsql.core.policy.policy import Policy
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.diagnostics.diagnostic import Source
from dpsql.faces.check.documents.parameter_values import Values
from dpsql.planner.costs.expected_error import output_error
from dpsql.planner.notes.enforced_limits import distinct_values, enforced
from dpsql.planner.notes.notes import clips_of, unclipped
from dpsql.planner.plan import Plan
from dpsql.service.checks.check import examine


@dataclass(frozen=True, slots=True)
class ColumnMeasure:
    """A released column. sensitivity: how far one privacy unit moves it, over all groups, in its own unit (of an
    average: its sum); None where a limit is found first. error: half the width of the 95 % interval; None where it
    depends on the data, or on such a limit."""

    sensitivity: Fraction | None
    error: float | None


@dataclass(frozen=True, slots=True)
class Measures:
    """refusals: (code, message) of a refused statement; then there is nothing else.

    rows: privacy unit → most rows of one unit that count in a release (the stability, after limits). columns: name →
    its measure. cost: privacy unit → what one run is charged, at the ε that the statement or the policy states, else 1.
    limits: what is limited → the most that counts. clips: what is added up → its ends. What lies beyond these is
    missing from the answer: a bias that no expected error holds. searched: whose limits are found when the query runs.
    """

    refusals: tuple[tuple[str, str], ...] = ()
    rows: Mapping[str, int] = field(default_factory=dict)
    columns: Mapping[str, ColumnMeasure] = field(default_factory=dict)
    cost: Mapping[str, PrivacyLoss] = field(default_factory=dict)
    limits: Mapping[str, int] = field(default_factory=dict)
    clips: Mapping[str, tuple[Fraction, Fraction]] = field(default_factory=dict)
    searched: tuple[str, ...] = ()

    @property
    def refused(self) -> bool:
        """Whether the statement cannot be run."""
        return bool(self.refusals)


def measures_of(text: str, policy: Policy, dialect: str, values: Values, search: bool | None = None) -> Measures:
    """The measures of one statement, from its text, the values of its parameters and the policy alone.

    Raises Rejected DP903: unknown dialect.
    """
    found = examine(Source(text), policy, values, dialect=dialect, search=search)
    if found.plan is None:
        return Measures(tuple((d.code, d.message) for d in found.diagnostics if d.severity == "error"))
    return _of_plan(found.plan)


def _of_plan(plan: Plan) -> Measures:
    rows: dict[str, int] = {}
    columns: dict[str, ColumnMeasure] = {}
    names = _shown_names(plan)
    limits: dict[str, int] = {}
    clips: dict[str, tuple[Fraction, Fraction]] = {}
    searched = {place for limit in (plan.searches.every if plan.searches else ()) for place in limit.follow}
    for i, release in enumerate(plan.releases):
        measured = release.measured
        known = all(place[0] != i for place in searched)  # else some limits stand as 1 until they are found
        for unit, contribution in measured.contributions.items() if known else ():
            if contribution.limits_rows:
                rows[unit] = max(rows.get(unit, 0), contribution.rows)
        for what, most in _limits(measured) if known else ():
            limits[what] = min(limits.get(what, most), most)
        for m in measured.measurements:
            c = m.component
            if not isinstance(c, OnGrid) or not rule(c).adds_values or SATURATED in (-c.lo, c.hi):
                continue  # nothing, or open ends
            for arg, low, high in clips_of(c):
                was = clips.get(unclipped(arg), (low, high))
                clips[unclipped(arg)] = max(was[0], low), min(was[1], high)
        for output in measured.node.outputs:
            first = measured.measurements[output.recipe.components[0]]
            name = names.get(output.column.uid, output.label or output.column.name)
            while name in columns:
                name += "'"
            columns[name] = ColumnMeasure(first.sensitivity.l1 * first.unit, output_error(measured, output.recipe))
            if any((i, c) in searched for c in output.recipe.components):
                columns[name] = ColumnMeasure(None, None)
    cost = {u: loss for u, loss in plan.cost.items() if loss != PrivacyLoss()}
    whose = () if plan.searches is None else tuple(dict.fromkeys(each.limit.what for each in plan.searches.every))
    return Measures((), rows, columns, cost, limits, clips, whose)


def _limits(measured: MeasuredRelease) -> Iterator[tuple[str, int]]:
    """What is limited, and the most that counts."""
    found, unit = enforced(measured.node), measured.unit
    for what, most in (
        (f"rows of one {unit}", found.rows),
        (f"rows of one {unit} in one group", found.per_group),
        (f"groups of one {unit}", found.groups),
        *((f"different values of one {unit}", distinct_values(measured.node, c)) for c in measured.node.components),
    ):
        if most is not None:
            yield what, most


def _shown_names(plan: Plan) -> dict[int, str]:
    """Released columns that the answer shows as they are → the names they have there."""
    node = plan.tree.node
    while isinstance(node, Sort | Limit):
        node = node.input
    if not isinstance(node, Project):
        return {}
    return {item.expr.uid: item.column.name for item in node.items if isinstance(item.expr, Column)}
