"""EXPLAIN's parts as values: the rows of its tree, its tables of components, and its other lines, in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dpsql.core.analysis.facts import Facts
from dpsql.core.analysis.releases_of_plan import releases_of
from dpsql.core.ir.nodes import BoundContributions, Node
from dpsql.core.ir.walk import Tagged
from dpsql.planner.explain.nodes import facts_of, operator
from dpsql.planner.plan import Plan


@dataclass(frozen=True, slots=True)
class PlanRow:
    """A node of the tree. ends: of the nodes above it and of itself, but for the root, whether it is the last input.
    facts: what is known of its rows.
    """

    ends: tuple[bool, ...]
    operator: str
    facts: tuple[str, ...]

    @property
    def depth(self) -> int:
        """How many nodes are above it."""
        return len(self.ends)

    @property
    def bars(self) -> str:
        """What stands before it."""
        if not self.ends:
            return ""
        *above, own = self.ends
        return _bars(above) + ("└─ " if own else "├─ ")

    def below(self, has_inputs: bool) -> str:
        """What stands before what goes on under it."""
        return _bars(self.ends) + ("│  " if has_inputs else "   ")


@dataclass(frozen=True, slots=True)
class PlanTree:
    """From the answer down, each node before its inputs."""

    rows: tuple[PlanRow, ...]


@dataclass(frozen=True, slots=True)
class ComponentTable:
    """The components of a release, behind a row of heads. cells: the name, then numbers."""

    cells: tuple[tuple[str, ...], ...]


Part = str | PlanTree | ComponentTable
"""A str is a line."""


def plan_rows(plan: Plan) -> Iterator[PlanRow]:
    """The nodes of a plan. A release that stands at several places is shown once."""
    searches = 0 if plan.searches is None else len(plan.searches.asked)
    searches += 0 if plan.keys_first is None else len(plan.keys_first.releases)
    numbers, found = dict[Node, int](), releases_of(plan.tree)
    for node in found.nodes(plan.tree) if searches + len(plan.releases) > 1 else ():
        numbers[node] = searches + found.index[node]
    return _rows(plan.tree, (), numbers, set(), bool(searches))


def _rows(
    tagged: Tagged[Facts], ends: tuple[bool, ...], numbers: Mapping[Node, int], shown: set[int], searched: bool
) -> Iterator[PlanRow]:
    """numbers: every Release node → its number, if there are several. searched: limits are still to be found, so that
    those in the tree are none.
    """
    number = numbers.get(tagged.node)
    name = operator(tagged.node, number)
    if number is not None and number in shown:
        yield PlanRow(ends, name, ("as above, measured once",))
        return
    if number is not None:
        shown.add(number)
    found = "limits that are found" if searched and isinstance(tagged.node, BoundContributions) else None
    yield PlanRow(ends, name, tuple(facts_of(tagged.fact, found)))
    for i, child in enumerate(tagged.inputs):
        yield from _rows(child, (*ends, i == len(tagged.inputs) - 1), numbers, shown, searched)


def _bars(ends: tuple[bool, ...] | list[bool]) -> str:
    return "".join("   " if end else "│  " for end in ends)
