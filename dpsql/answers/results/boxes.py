"""Quantiles of an answer as boxes: a median, and one or two pairs around it, of one argument."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpsql.core.analysis.releases_of_plan import releases_of
from dpsql.core.ir.components import QuantileChoice
from dpsql.core.ir.short_text import expression
from dpsql.diagnostics.words import number
from dpsql.frontend.aggregates.quantile import ordered
from dpsql.planner.postprocessing.planning.unchanged_columns import shown_by

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dpsql.planner.plan import Plan

HALF = Fraction(1, 2)


@dataclass(frozen=True, slots=True)
class Box:
    """Three or five columns in the order of their p, and what they are quantiles of."""

    of: str
    shares: tuple[Fraction, ...]
    columns: tuple[str, ...]

    @property
    def words(self) -> str:
        """What is drawn how, for a title."""
        inner = len(self.shares) // 2
        told = [f"line p{_percent(HALF)}", f"box {self._pair(inner - 1)}"]
        return " · ".join([*told, f"whiskers {self._pair(0)}"] if inner == 2 else told)

    def _pair(self, at: int) -> str:
        return f"p{_percent(self.shares[at])} to p{_percent(self.shares[-1 - at])}"


def boxes(plan: Plan, names: Sequence[str], wanted: Sequence[str]) -> list[Box]:
    """The boxes that columns of an answer make. names: of all its columns; wanted: those that may be in one."""
    index = releases_of(plan.tree)
    branches = shown_by(plan.tree.node, plan.columns, index.index, quantiles=True)
    found: dict[QuantileChoice, dict[Fraction, str]] = {}
    for name, source in zip(names, branches[0] if len(branches) == 1 else (), strict=len(branches) == 1):
        if source is None or name not in wanted:
            continue
        node = index.node(source[0])
        own = node.components[node.outputs[source[1]].recipe.components[0]]
        if isinstance(own, QuantileChoice):
            found.setdefault(replace(own, p=HALF), {}).setdefault(own.p, name)
    return [
        Box(expression(ordered(c)[0]), tuple(sorted(alike)), tuple(alike[p] for p in sorted(alike)))
        for c, alike in found.items()
        if len(alike) in (3, 5) and HALF in alike and all(1 - p in alike for p in alike)
    ]


def draw_boxes(ax: Axes, box: Box, places: Sequence[Any], values: Mapping[str, Sequence[float]]) -> None:
    """A box for each row."""
    low, *inner, high = [values[name] for name in box.columns]
    first, middle, last = inner if len(inner) == 3 else (low, inner[0], high)
    each = zip(low, first, middle, last, high, strict=True)
    stats = [dict(zip(("whislo", "q1", "med", "q3", "whishi"), five, strict=True), fliers=[]) for five in each]
    ax.bxp(stats, positions=places, showfliers=False, manage_ticks=False)
    ax.set_title(box.words, fontsize="small")


def _percent(p: Fraction) -> str:
    return number(100 * p)
