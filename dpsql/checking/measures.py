"""What the analysis says about one statement, in numbers that two versions of it can be compared by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from dpsql.checking.values import Values
from dpsql.compiler.explain import output_error
from dpsql.compiler.plan import Plan
from dpsql.diagnostics.diagnostic import Source
from dpsql.loss import PrivacyLoss
from dpsql.plan.components import components_of
from dpsql.plan.expr import Column
from dpsql.plan.nodes import Limit, Project, Sort
from dpsql.policy.models import Policy
from dpsql.session.check import examine


@dataclass(frozen=True, slots=True)
class ColumnMeasure:
    """A released column. sensitivity: how far one privacy unit moves it, over all groups, in its own unit (of an
    average: its sum). error: half the width of the 95 % interval; None where it depends on the data."""

    sensitivity: Fraction
    error: float | None


@dataclass(frozen=True, slots=True)
class Measures:
    """refusals: (code, message) of a refused statement; then there is nothing else.

    rows: privacy unit → most rows of one unit that count in a release (the stability, after limits). columns: name →
    its measure. cost: privacy unit → what one run is charged, at the ε that the statement or the policy states, else 1.
    """

    refusals: tuple[tuple[str, str], ...] = ()
    rows: Mapping[str, int] = field(default_factory=dict)
    columns: Mapping[str, ColumnMeasure] = field(default_factory=dict)
    cost: Mapping[str, PrivacyLoss] = field(default_factory=dict)

    @property
    def refused(self) -> bool:
        """Whether the statement cannot be run."""
        return bool(self.refusals)


def measures_of(text: str, policy: Policy, dialect: str, values: Values) -> Measures:
    """The measures of one statement, from its text, the values of its parameters and the policy alone.

    Raises Rejected DP903: unknown dialect.
    """
    found = examine(Source(text), policy, values, dialect=dialect)
    if found.plan is None:
        return Measures(tuple((d.code, d.message) for d in found.diagnostics if d.severity == "error"))
    return _of_plan(found.plan)


def _of_plan(plan: Plan) -> Measures:
    rows: dict[str, int] = {}
    columns: dict[str, ColumnMeasure] = {}
    names = _shown_names(plan)
    for release in plan.releases:
        measured = release.measured
        for unit, contribution in measured.contributions.items():
            rows[unit] = max(rows.get(unit, 0), contribution.rows)
        for output in measured.node.outputs:
            first = measured.measurements[components_of(output.recipe)[0]]
            name = names.get(output.column.uid, output.label or output.column.name)
            while name in columns:
                name += "'"
            columns[name] = ColumnMeasure(first.sensitivity.l1 * first.unit, output_error(measured, output.recipe))
    return Measures((), rows, columns, {u: loss for u, loss in plan.cost.items() if loss != PrivacyLoss()})


def _shown_names(plan: Plan) -> dict[int, str]:
    """Released columns that the answer shows as they are → the names they have there."""
    node = plan.tree.node
    while isinstance(node, Sort | Limit):
        node = node.input
    if not isinstance(node, Project):
        return {}
    return {item.expr.uid: item.column.name for item in node.items if isinstance(item.expr, Column)}
