"""What the rewrites may look at beside the tree: the policy, public facts and the query's own limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from dpsql.core.analysis.context import Derivation
from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.components import KeySource
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
    Scan,
    SetOperation,
    Sort,
    Truncate,
    Unnest,
    Values,
    Window,
)
from dpsql.core.ir.periods import Span
from dpsql.core.ir.walk import walk
from dpsql.planner.searches.limits_to_search import Searching

SHOWN_FIRST: Final = "keys shown first"
"""Where a list of keys comes from that were private."""


@dataclass(frozen=True, slots=True)
class ContributionLimits:
    """Contribution limits set by the query; the smaller of these and the policy's is used.

    rows, per_group, groups: C, M and G. min_units: fewest units of a private key.
    """

    rows: int | None = None
    per_group: int | None = None
    groups: int | None = None
    min_units: int = 1


@dataclass(frozen=True, slots=True)
class RewriteContext:
    """Everything a rewrite reads. Rewrites are guesses: the analysis derives every fact again from their result.

    error: the total error of a finished release, given the facts of its input; for choices between forms that differ
    in noise alone. None: the plain forms.
    searching: the limits that searches may find; None: all are declared or the query is refused.
    consistent: totals of several sets of groups count the same rows.
    shown: the keys of the groups, where private ones were shown before; None: they were not.
    only: growing table → the days of it that are read at most.
    """

    analysis: Derivation
    limits: ContributionLimits = ContributionLimits()
    error: Callable[[Release, Facts], float] | None = None
    searching: Searching | None = None
    consistent: bool = False
    shown: KeySource | None = None
    only: Mapping[str, Sequence[Span]] = field(default_factory=dict)

    @property
    def reads_copies(self) -> bool:
        """Whether any table is read from a prepared copy."""
        return any(table.copied is not None for table in self.analysis.policy.tables.values())

    def searching_in(self, rows: Node, *, of_rows: bool = False) -> Searching | None:
        """Who finds limits of a release of these rows; None where nobody asks for any.

        Nor where they depend on another release, unless what is searched is a limit `of_rows`: its numbers have to be
        drawn before the search. (Bounds of values are searched of rows whose releases are not rewritten yet.)
        """
        if self.searching is None or not any(map(self._is_release, walk(rows))):
            return self.searching
        if of_rows and self.searching.in_rounds:
            self.searching.waits = True
            return self.searching
        self.searching.withheld = True
        return None

    def _is_release(self, node: Node) -> bool:
        """Whether a node releases numbers, or will once all rewrites are done."""
        if isinstance(node, Aggregate):
            return not node.inner and self.private(node.input)
        return isinstance(node, Release)

    def searches_rows(self, rows: Node) -> bool:
        """Whether limits on the rows of an id may be found."""
        return self.searching is not None and (self.searching.undeclared or self.asks_to_search_rows(rows))

    def asks_to_search_rows(self, rows: Node) -> bool:
        """The same, by the query's wish or by that of a table's policy."""
        tables = (self.analysis.table(node.table) for node in walk(rows) if isinstance(node, Scan))
        return self.searching is not None and (self.searching.everywhere or any(t.search_rows for t in tables))

    def private(self, node: Node) -> bool:
        """True if rows of `node` depend on private data other than through a release."""
        match node:
            case Scan(table=table):
                return not self.analysis.table(table).public
            case Values() | Release():
                return False
            case Aggregate(input=child, inner=inner):
                return inner and self.private(child)  # else, over private rows, it becomes a release
            case Join(left=left, right=right) | SetOperation(left=left, right=right):
                return self.private(left) or self.private(right)
            case (
                Filter(input=child)
                | Project(input=child)
                | Unnest(input=child)
                | Truncate(input=child)
                | Window(input=child)
                | Sort(input=child)
                | Limit(input=child)
                | GroupKeys(input=child)
                | BoundContributions(input=child)
            ):
                return self.private(child)
