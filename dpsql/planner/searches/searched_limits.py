"""Which limits of a release are searched, and the bounding node and components that hold what is found.

- COUNT, SUM and COUNT(DISTINCT …) each get a limit of their own on what one id adds in all groups; where the noise is
  Gaussian, counts and sums of several public groups get one on the root of the sum of squares.
- What is divided, as averages and variances are, keeps one weight for all its parts: a limit on rows, as a count has.
  Quantiles have the same: the rank is divided by the number of rows.
- Counts of ids, and private keys, get a limit on groups.

Where the tree proves few rows nothing is searched. A declared C is the most that a search may find. Where M and G are
declared they stay, unless nobody asks for a search, the groups are public and M is not 1: then M·G is the most that it
may find; of a root, M·√G, which is what they hold it to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import isqrt
from typing import Final

from dpsql.core.analysis.facts import Columns, Facts
from dpsql.core.analysis.public_groups import groups_of_an_id
from dpsql.core.ir.components import Component, DistinctCount, DistinctSum, RowCount, UnitCount, ValueSum
from dpsql.core.ir.contributions import Norm, UnitTotal
from dpsql.core.ir.expressions import Column, Expr
from dpsql.core.ir.nodes import BoundContributions, GroupKeys, Release
from dpsql.core.ir.recipes import Output
from dpsql.core.ir.short_text import expression
from dpsql.core.measures.all_measures import rule
from dpsql.core.policy.tables import Table
from dpsql.diagnostics.errors import reject
from dpsql.frontend.aggregates.count import Count
from dpsql.frontend.aggregates.interval_end import End
from dpsql.frontend.aggregates.sum import Sum
from dpsql.planner.rewrites.bounds.choose_grids import in_units, resolution_of
from dpsql.planner.searches.limits_to_search import WORTH_SEARCHING, Rule, Searching
from dpsql.planner.searches.may_search import left_open
from dpsql.planner.searches.octave_counts import Histogram

FEW: Final = 64
"""Groups that an id may all be counted in where its rows have a limit for the sake of averages."""


@dataclass(frozen=True, slots=True)
class Declared:
    """C and G as policy and query declare them; None: not at all.

    is_of_groups: whether rows is M·G, or less. roots: then the cap of the root of an id's squares by group, unless C is
    declared, too.
    """

    rows: int | None
    groups: int | None
    roots: int | None = None
    is_of_groups: bool = False

    @classmethod
    def of_groups(cls, rows: int | None, per_group: int, groups: int) -> Declared:
        """M and G as a cap on the total. rows: C, beside it."""
        if rows is None:
            return cls(per_group * groups, None, isqrt(per_group**2 * groups), True)
        return cls(min(rows, per_group * groups), None, None, True)


@dataclass(frozen=True, slots=True)
class SearchedLimits:
    """The limits of one release that are searched. keyed: its rows with their group columns. id: whose they are.

    seem: columns that seem to be functions of the id. one_group: whether each id seems to have rows in one group at
    most. table: of the policy, by its name.
    """

    searching: Searching
    keyed: GroupKeys
    id: Column
    facts: Facts
    seem: Columns
    one_group: bool
    declared: Declared
    table: Callable[[str], Table]

    def bounded(self, node: Release) -> Release:
        """The release with all limits found."""
        _require_searchable(node)
        node = _apart(node)
        divided = _divided(node)
        components = tuple(c if i in divided else self._limited(c) for i, c in enumerate(node.components))
        chosen = all(rule(node.components[i]).chosen for i in divided)
        rows = self._rows(quantiles=chosen) if divided else None
        present = any(isinstance(c, UnitCount) for c in components)
        return replace(node, input=self._bounding(rows, present), components=components)

    def open_sums(self, node: Release) -> set[int]:
        """The sums of a release with a limit of their own: their arguments have no bounds, or those are searched."""
        sums = [(i, c.arg) for i, c in enumerate(node.components) if isinstance(c, ValueSum)]
        return {i for i, arg in sums if i not in _divided(node) and self._is_open(arg)}

    def _is_open(self, arg: Expr) -> bool:
        return not self.facts.value(arg).interval.bounded or left_open(arg, self.facts, self.table) is not None

    def sums_bounded(self, node: Release, bounding: BoundContributions | None, proven: int | None) -> Release:
        """The release with limits of these sums alone. bounding: of the others; None where few rows are proven."""
        open_sums = self.open_sums(node)
        if bounding is None:
            assert proven is not None
            keys = tuple(item.column for item in self.keyed.items)
            bounding = BoundContributions(self.keyed, self.id, keys, proven)
            if self.one_group:
                bounding = self._of_one_group(keys, proven)
        components = tuple(self._limited(c) if i in open_sums else c for i, c in enumerate(node.components))
        return replace(node, input=bounding, components=components)

    def total(self, c: RowCount | DistinctCount | ValueSum, worth: int | None) -> Component:
        """A component with a limit of its own on what one id adds. c: with its grid. worth: what a row adds at most."""
        norm = self._norm(c, worth is not None and self.declared.rows is not None and self.declared.roots is None)
        rows = self.declared.roots if norm == "l2" else self.declared.rows
        at_most = None if rows is None or worth is None else rows * worth
        match c:
            case RowCount():
                octaves, what = self._histogram.of_rows(c, norm), "COUNT("
            case DistinctCount():
                octaves, what = self._histogram.of_values(c), "COUNT(DISTINCT "
            case ValueSum():
                octaves, what = self._histogram.of_totals(c, norm), "SUM("
        label, most = self.searching.limit(
            octaves, self.keyed, _named(what, c), Rule.SUM, at_most, c.worth, norm, counts=c
        )
        return replace(c, contribution=UnitTotal(most, norm, label))

    def _norm(self, c: Component, is_capped: bool) -> Norm:
        """Whether a limit is on what an id adds in all groups together, or on the root of the sum of their squares.

        Gaussian noise is as large for either, and the root is smaller. Not of different values, which a statement keeps
        or leaves out by their number; nor under a declared C: that is on the rows in all groups, and no answer counts
        more of one id. Of private keys an id counts in few, as many as a search finds.
        """
        if self.one_group or is_capped or isinstance(c, DistinctCount):
            return "l1"
        possible = self._possible()
        if possible is None or possible == 1:
            return "l1"
        self.searching.rooted = True
        return "l2" if self.searching.gaussian else "l1"

    def _limited(self, c: Component) -> Component:
        if isinstance(c, RowCount | DistinctCount):
            return self.total(c, 1)
        if not isinstance(c, ValueSum):
            return c
        value = self.facts.value(c.arg)
        c = in_units(c, value, resolution_of(c.arg, self.facts, self.table))
        return self.total(c, c.magnitude if value.interval.bounded else None)

    def _bounding(self, rows: int | None, present: bool) -> BoundContributions:
        keyed, keys = self.keyed, tuple(item.column for item in self.keyed.items)
        if self.one_group:
            each = 1 if present and rows is None else rows  # an id counts once, however many rows it has
            return self._of_one_group(keys, each)
        possible, asked = self._possible(), self.declared.groups
        sure = possible == groups_of_an_id(keyed, self.facts.by_id)
        if keyed.sources is None:
            groups = self._groups(self.declared.rows) if asked is None else asked
            return BoundContributions(keyed, self.id, keys, rows, None, groups, truncate_groups=True)
        if asked is not None and not (sure and possible is not None and possible <= asked):
            return BoundContributions(keyed, self.id, keys, rows, None, asked, truncate_groups=True)
        few = FEW if rows is not None else WORTH_SEARCHING - 1 if self.searching.undeclared else 0
        if present and possible is not None and possible <= few:
            return BoundContributions(
                keyed, self.id, keys, rows, None, possible, truncate_groups=not sure, few_groups=sure
            )
        if rows is not None or not present:
            return BoundContributions(keyed, self.id, keys, rows)
        if possible == 1:
            return self._of_one_group(keys, None)
        return BoundContributions(keyed, self.id, keys, None, None, self._groups(possible))

    def _possible(self) -> int | None:
        """In how many groups an id seems to be, at most."""
        return groups_of_an_id(self.keyed, self.seem)

    def _of_one_group(self, keys: tuple[Column, ...], rows: int | None) -> BoundContributions:
        """So many rows of an id, in one group: proven, or enforced."""
        few = groups_of_an_id(self.keyed, self.facts.by_id) == 1
        cut = not few and self.keyed.sources is None
        return BoundContributions(self.keyed, self.id, keys, None, rows, 1, truncate_groups=cut, few_groups=few)

    def _rows(self, quantiles: bool) -> int:
        """How many rows of an id count in full, of what is divided by their number."""
        octaves, most = self._histogram.of_rows(), self.declared.rows
        return self.searching.limit(octaves, self.keyed, "COUNT(*)", Rule.AVERAGE, most, quantiles=quantiles)[1]

    def _groups(self, at_most: int | None) -> int:
        octaves = self._histogram.of_groups(at_most)
        return self.searching.limit(octaves, self.keyed, "groups", Rule.GROUPS, at_most)[1]

    @property
    def _histogram(self) -> Histogram:
        return Histogram(self.keyed, self.id, self.searching.numbers, self.one_group)


def _require_searchable(node: Release) -> None:
    """Refuse sums of different values: what one id adds depends on what others have. Raises Rejected DP211."""
    if any(isinstance(c, DistinctSum) for c in node.components):
        raise reject(
            "DP211", "no search finds how many different values one privacy unit adds", span=node.span,
            help=[
                "custodian: declare for the table:  max_rows_per_unit: 20",
                "or, in this query:  SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = 20) …",
            ],
        )  # fmt: skip


def _divided(node: Release) -> set[int]:
    """The components of averages and the like, which have one weight."""
    return {i for o in node.outputs if not _is_total(o) for i in o.recipe.components}


def _is_total(output: Output) -> bool:
    """Whether it is one number that rows add up to, or an end of its interval."""
    recipe = output.recipe.of if isinstance(output.recipe, End) else output.recipe
    return isinstance(recipe, (Count, Sum)) and len(recipe.components) == 1


def _named(function: str, c: Component) -> str:
    """What is searched, as a person would write it."""
    arg = "*" if c.arg is None else expression(c.arg)
    where = "" if c.filter is None else f" FILTER (WHERE {expression(c.filter)})"
    return f"{function}{arg}){where}"


def _apart(node: Release) -> Release:
    """The release in which no count that an average is divided by is a column, too: their limits differ."""
    components, outputs, divided = list(node.components), [], _divided(node)
    for output in node.outputs:
        if _is_total(output) and divided & set(output.recipe.components):
            to = {i: len(components) + at for at, i in enumerate(output.recipe.components)}
            components += [node.components[i] for i in to]
            output = replace(output, recipe=output.recipe.moved(to))
        outputs.append(output)
    return replace(node, components=tuple(components), outputs=tuple(outputs))
