"""What tells one kind of component from another. Whoever needs to know asks `rule(component)` of `all_measures.py`.

Claim: with contributions bounded as `limits` says, the integers of one unit, before the weight grid F, have the norms
    that `largest` says.
Why: of rows, of values and of ids, the files of this room say. Where both are bounded, all groups together and each of
    at most G groups, Σv² is convex, so largest where groups are full. A limit τ of the component's own on Σ|v| or on
    √Σv² is that; by Cauchy and Schwarz the latter leaves Σ|v| ≤ τ·√G, and of integers Σ|v| ≤ Σv².
When it would be false: a clip, a weight or a limit that the emitted SQL does not apply (it reads them from here; only
    the weighted shapes do, hence `scaled`); a number of groups that nothing enforces; a τ that
    divides by other totals than those that it multiplies: of other rows, another filter, other groups.
Proved by: Bounds.squares_most, Bounds.l1_of_sq, Bounds.l1_le_sq, Bounds.sq_one_sign, Bounds.total_l1, Bounds.root_sq
Tested by: tests/deep/core/analysis/test_contribution_bounding.py, tests/deep/core/analysis/test_public_groups.py,
tests/deep/core/analysis/test_unit_totals.py
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import isqrt
from typing import ClassVar, Generic, Literal, TypeVar

from dpsql.core.analysis.facts import Contribution
from dpsql.core.ir.components import Component
from dpsql.core.ir.contributions import PerGroup, UnitTotal

C = TypeVar("C", bound=Component)


@dataclass(frozen=True, slots=True)
class Norms:
    """Bounds of a vector v over groups, in a component's integers: Σ|v| ≤ in_all, Σv² ≤ squares, max|v| ≤ in_group."""

    in_all: int
    squares: int
    in_group: int


def at_most(in_all: int, groups: int, in_group: int) -> Norms:
    """At most `in_all`, and at most `in_group` in each of at most `groups` groups."""
    in_all = min(in_all, groups * in_group)
    in_group = min(in_group, in_all)
    return Norms(in_all, squares(in_all, in_group), in_group)


def squares(in_all: int, in_group: int) -> int:
    """The largest Σv² where Σ|v| ≤ in_all and max|v| ≤ in_group: as many of the largest as there is room for."""
    if not in_group:
        return 0
    full, rest = divmod(in_all, in_group)
    return full * in_group**2 + rest**2


def groups_of_a_unit(limits: Contribution) -> int | None:
    """Most groups in which a unit counts under a limit of a component's own; None: it may be in any number."""
    possible = limits.released_groups
    groups = possible if limits.scaled_over_groups or limits.groups is None else limits.groups
    return groups if possible is None or groups is None else min(groups, possible)


class MeasureRule(ABC, Generic[C]):
    """The rules of one kind of component. Its file opens with what it claims."""

    __slots__ = ()

    name: ClassVar[str]
    """What is measured, as a person would write it, of {argument} or of {unit}."""
    counts: ClassVar[Literal["rows", "values", "ids"]]
    """What counts in a group: each row, each different value once, or each id once."""
    adds_values: ClassVar[bool] = False
    """Whether a row adds the clipped value of its argument; else 1."""
    chosen: ClassVar[bool] = False
    """Whether it is one of many cells, chosen by their scores, instead of a number that noise is added to."""

    @abstractmethod
    def largest(self, c: C, limits: Contribution) -> Norms:
        """How much one unit can contribute: integers and whole rows, before the weight grid."""

    def limited(self, c: C, total: UnitTotal, limits: Contribution) -> Norms:
        """How much one unit can contribute under a limit of the component's own."""
        raise AssertionError("a limit that is of no component of this kind")

    @abstractmethod
    def replaced(self, c: C, fixed: bool) -> Norms:
        """What one row moves that another one replaces: it leaves one group and enters another, or the same.

        fixed: the number of rows is public, every row counts, and there is one group.
        """

    def kept(self, c: C, limits: Contribution) -> int:
        """How many different values of an id may count, where values do."""
        raise AssertionError("a component that counts rows or ids")

    def values_in_group(self, c: C, limits: Contribution) -> int:
        """How many of an id's different values may count in one group, where values do."""
        raise AssertionError("a component that counts rows or ids")

    def known(self, c: C, size: int) -> int:
        """The integer that everybody knows of a component that nothing changes.

        size: the public number of rows, or 0.
        """
        return c.ends[0] * size

    def options(self, c: C) -> int:
        """How many there are to choose from, where one is chosen."""
        raise AssertionError("a component that is not chosen")

    def alone(self, c: C) -> bool:
        """Whether what an id adds is clipped by itself, instead of weighed with all rows of the id."""
        return False


class RowRule(MeasureRule[C]):
    """Components in which each row counts.

    Claim: one unit adds at most rows · B in all, as many rows of one group · B there, and Σv² as the limits say; where
        its total of a group is clipped to [a, b], at most T = max(|a|, |b|) there.
    Why: each of at most G groups (or of c rows) holds at most M rows. A row adds an integer of at most B = `magnitude`,
        which the printed expression is clipped to. Of a limit of C rows in all both hold: at most C·B in all, and at
        most T in each of at most G groups.
    When it would be false: a clip or a weight that the emitted SQL does not apply.
    Tested by: tests/core/noise/test_sensitivity.py, tests/deep/core/analysis/test_contribution_bounding.py
    """

    __slots__ = ()

    counts = "rows"

    def largest(self, c: C, limits: Contribution) -> Norms:
        """Rows times magnitude, or clipped totals."""
        rows, groups, each = limits.rows, limits.most_groups, c.magnitude
        if not isinstance(c.contribution, PerGroup) or not limits.scaled:
            return Norms(rows * each, limits.l2_squared * each**2, limits.rows_in_one_group * each)
        clipped = c.most_per_group
        if limits.by_rows is None:
            return Norms(groups * clipped, groups * clipped**2, clipped)
        return at_most(rows * each, groups, clipped)

    def limited(self, c: C, total: UnitTotal, limits: Contribution) -> Norms:
        """The limit in all groups together, or as the root of their squares."""
        most, groups = total.most, groups_of_a_unit(limits)
        if total.norm == "l1":
            return Norms(most, most**2, most)
        # Rounded up, so that it holds of the parts of whole units that the weight makes, too.
        in_all = c.weight * most**2 if groups is None else isqrt(groups * most**2 - 1) + 1
        return Norms(in_all, most**2, most)
