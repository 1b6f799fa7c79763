"""Sets of groups of the same rows: which groups of a finer set a group of a coarser one is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dpsql.core.ir.expressions import LiteralValue

Places = NDArray[np.intp]
Key = tuple[LiteralValue, ...]
Positions = tuple[int, ...]


class NoTotals(Exception):
    """The groups of one set are not made of those of the finest. text: how so."""


@dataclass(frozen=True)
class Groupings:
    """Several ways to group the rows of the finest one.

    positions: of each set, which columns of the finest set's keys its own keys are, in their order. keys: of each set.
    finest: which of them has all columns.
    """

    positions: tuple[Positions, ...]
    keys: tuple[Sequence[Key], ...]
    finest: int

    @cached_property
    def group_of(self) -> tuple[Places, ...]:
        """Of each set, which of its groups each group of the finest is in. Raises NoTotals if one is in none."""
        leaves = [_placed(key, self.positions[self.finest]) for key in self.keys[self.finest]]
        return tuple(self._group_of(at, leaves) for at in range(len(self.positions)))

    def _group_of(self, at: int, leaves: Sequence[dict[int, LiteralValue]]) -> Places:
        own = {_typed(key): place for place, key in enumerate(self.keys[at])}
        found = [own.get(_typed([leaf[p] for p in self.positions[at]]), -1) for leaf in leaves]
        if -1 in found:
            leaf = leaves[found.index(-1)]
            raise NoTotals(f"{tuple(leaf[p] for p in self.positions[at])} is no group of a total")
        return np.array(found, dtype=np.intp)

    @cached_property
    def by_size(self) -> list[int]:
        """The sets, those of the fewest columns first."""
        return sorted(range(len(self.positions)), key=lambda at: len(self.positions[at]))

    @property
    def is_chain(self) -> bool:
        """Whether each set refines the one before it, as those of a ROLLUP do."""
        ordered = [set(self.positions[at]) for at in self.by_size]
        return all(coarse <= fine for coarse, fine in pairwise(ordered))

    def chain(self) -> list[int]:
        """Sets of which each refines the one before it, up to the finest; as many as are found from there."""
        found = [self.finest]
        for at in reversed(self.by_size):
            if at not in found and set(self.positions[at]) <= set(self.positions[found[0]]):
                found.insert(0, at)
        return found

    def within(self, fine: int, coarse: int) -> Places:
        """Of each group of a finer set the group of a coarser one that it is in; -1 where it has no rows."""
        found = np.full(len(self.keys[fine]), -1, dtype=np.intp)
        found[self.group_of[fine]] = self.group_of[coarse]
        return found

    @cached_property
    def parts(self) -> tuple[Positions, ...]:
        """The columns that every set has together or not at all."""
        together: dict[frozenset[int], list[int]] = {}
        for column in sorted(self.positions[self.finest]):
            sets = frozenset(at for at, positions in enumerate(self.positions) if column in positions)
            together.setdefault(sets, []).append(column)
        return tuple(tuple(columns) for columns in together.values())

    def has_part(self, at: int, part: int) -> bool:
        """Whether a set has the columns of a part."""
        return self.parts[part][0] in self.positions[at]

    @cached_property
    def product(self) -> tuple[Places, ...]:
        """Of each group of the finest set, the number of its values of each part.

        Raises NoTotals unless all combinations of these are groups.
        """
        leaves = [_placed(key, self.positions[self.finest]) for key in self.keys[self.finest]]
        found, size = [], 1
        for part in self.parts:
            numbers: dict[object, int] = {}
            found.append(
                np.array([numbers.setdefault(_typed([leaf[p] for p in part]), len(numbers)) for leaf in leaves])
            )
            size *= len(numbers)
        if size != len(leaves):
            raise NoTotals("not every combination of keys is a group")
        return tuple(found)


def _placed(key: Key, positions: Positions) -> dict[int, LiteralValue]:
    return dict(zip(positions, key, strict=True))


def _typed(values: Sequence[LiteralValue]) -> tuple[object, ...]:
    """1 and TRUE are different keys."""
    return tuple((type(v), v) for v in values)
