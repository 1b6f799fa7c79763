"""The releases of a query, each after those it reads; what is asked twice is measured, and paid, once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.fingerprint import fingerprint
from dpsql.core.ir.nodes import Node, Release
from dpsql.core.ir.walk import Tagged


@dataclass(frozen=True, slots=True)
class Releases:
    """distinct: the different releases in the order they run. index: every Release node → its place there."""

    distinct: tuple[Tagged[Facts], ...]
    index: Mapping[Node, int]

    def node(self, place: int) -> Release:
        """The node that is measured."""
        node = self.distinct[place].node
        assert isinstance(node, Release)
        return node

    def standing_for(self, node: Release, table: str) -> str:
        """The noisy rows of a release in a statement: the table that holds them, under this node's column numbers."""
        first = self.node(self.index[node])
        if first is node:
            return table
        own, theirs = ([*n.keys, *(o.column for o in n.outputs)] for n in (node, first))
        listed = [f"c{b.uid} AS c{a.uid}" for a, b in zip(own, theirs, strict=True)]
        return f"(SELECT {', '.join(listed)} FROM {table})"

    def nodes(self, *trees: Tagged[Facts]) -> Iterator[Release]:
        """Every Release node of the trees."""
        for tagged in (t for tree in trees for t in tree.walk()):
            if isinstance(tagged.node, Release):
                yield tagged.node


def releases_of(*trees: Tagged[Facts]) -> Releases:
    """Find all releases of trees, and which of them are equal up to the numbers of their columns."""
    distinct: list[Tagged[Facts]] = []
    index: dict[Node, int] = {}
    places: dict[str, int] = {}
    ordered = [tagged for tree in trees for tagged in _in_order(tree)]
    for tagged in ordered:
        form = fingerprint(tagged.node, numbered=True) if len(ordered) > 1 else ""
        if form not in places:
            places[form] = len(distinct)
            distinct.append(tagged)
        index[tagged.node] = places[form]
    return Releases(tuple(distinct), index)


def _in_order(tree: Tagged[Facts]) -> Iterator[Tagged[Facts]]:
    for child in tree.inputs:
        yield from _in_order(child)
    if isinstance(tree.node, Release):
        yield tree
