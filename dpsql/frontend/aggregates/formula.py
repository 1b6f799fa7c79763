"""How released numbers become an answer, and what is said of it: public arithmetic, on which no privacy rests."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Self

from dpsql.core.ir.components import Component
from dpsql.core.ir.recipes import Output, Recipe
from dpsql.core.ir.types import SqlType

if TYPE_CHECKING:
    from dpsql.core.noise.integer_columns import Floats
    from dpsql.core.release.noisy import NoisyRelease

Bounds = tuple[float, float]
Ends = tuple[float | None, float | None]
"""The same of an answer; None: nothing is known to that side, because a limit cuts the number."""
Parts = Mapping[int, tuple[int, tuple[int, ...]]]
"""Place of a count → places of the rest and of its slices."""


class Formula(Recipe):
    """All that is asked of an aggregate once its components are known. Units are those of the released number."""

    __slots__ = ()

    no_interval: ClassVar[str | None] = None
    """Why its numbers have no interval, if they have none; empty where that goes without saying."""
    off: ClassVar[str] = ""
    """How far it is off, where its error is a number of rows: `{rows}`, which `{lie}` somewhere; else empty."""
    doubt: ClassVar[str] = ""
    """The same as something that may be, of `{rows}`."""

    @property
    def splits(self) -> bool:
        """Whether slices of its component can stand for it: `with_parts`."""
        return False

    @abstractmethod
    def values(self, noisy: NoisyRelease, type_: SqlType) -> Sequence[object]:
        """The released numbers, one for each row of the release, in the column's type."""

    @abstractmethod
    def intervals(self, noisy: NoisyRelease, level: Fraction) -> list[Bounds]:
        """One (low, high) for each row of the release, at a confidence in (0, 1).

        They speak of the *bounded* truth: what the query would give without noise, clips and contribution limits in
        place.
        """

    @abstractmethod
    def nonnegative(self, components: Sequence[Component]) -> bool:
        """Whether the truth is at least 0 whatever the data hold."""

    @abstractmethod
    def variance(self, components: Sequence[Component], spread: Sequence[float]) -> float:
        """About the variance of its noise. spread: of each component's noise, in squared units of that component."""

    def largest_of_row(self, components: Sequence[Component]) -> Fraction | None:
        """The most that one row can add to it; None if rows do not add up."""
        return None

    @property
    def as_mean(self) -> tuple[int, Fraction] | None:
        """Of a quotient by a count the component above, and half the range that it can have; else None."""
        return None

    @property
    def rows(self) -> int | None:
        """The component that counts the rows of what has a distribution of theirs: see `with_missing`; else None."""
        return None

    def with_missing(self, ends: tuple[Floats, Floats], part: Floats, counted: Floats) -> tuple[Floats, Floats]:
        """The interval, if up to this part of its rows is missing. counted: at least so many are there."""
        raise TypeError(f"{type(self).__name__} has no distribution of rows")

    def with_count(self, centred: Callable[[int], tuple[int, int] | None]) -> Self:
        """The same number of a centred sum and a count.

        centred: place of a sum → those of the two, if that is wanted.
        """
        return self

    def with_parts(self, parts: Parts) -> Self:
        """The same number, where counts are made of the counts of slices."""
        return self


def formula(output: Output) -> Formula:
    """What an output is made by."""
    assert isinstance(output.recipe, Formula)
    return output.recipe


def output_intervals(noisy: NoisyRelease, output: Output, level: Fraction) -> list[Bounds]:
    """One (low, high) per row of the release for one output column, at confidence `level` in (0, 1)."""
    return formula(output).intervals(noisy, level)
