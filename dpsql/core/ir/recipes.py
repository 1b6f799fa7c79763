"""How the columns of a release are made of its components: arithmetic over public numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from typing import ClassVar, Self

from dpsql.core.ir.components import Component
from dpsql.core.ir.expressions import Column
from dpsql.core.numbers.interval import Interval, everything
from dpsql.core.value_classes import value
from dpsql.diagnostics.diagnostic import Span

Terms = tuple[tuple[int, Fraction], ...]
"""Components, each with what one of its integers is worth in the released number."""


class Recipe(ABC):
    """How a released column is made of components: arithmetic over public numbers, on which no privacy rests.

    Here stands what planning asks of it; the aggregates themselves are in `dpsql/frontend/aggregates`.
    """

    __slots__ = ()

    to_plan: ClassVar[str] = "select a COUNT, too, and name it in max_error"
    """What helps whoever plans its error, where that depends on the data."""

    @property
    @abstractmethod
    def components(self) -> tuple[int, ...]:
        """Which components it reads."""

    @abstractmethod
    def moved(self, to: Mapping[int, int]) -> Self:
        """The same recipe where the components have other places."""

    @property
    def own(self) -> tuple[int, ...]:
        """The components that its weight counts for."""
        return self.components

    @property
    def span(self) -> Interval:
        """Where its numbers are clamped to."""
        return everything()

    @property
    def nullable(self) -> bool:
        """Whether a number can be NULL."""
        return False

    def terms(self, components: Sequence[Component]) -> Terms | None:
        """What the released number is a sum of; None if it is none."""
        return None

    def noisy_terms(self, components: Sequence[Component], known: Sequence[int | None]) -> Terms | None:
        """What its noise is a sum of; None if that depends on the data. known: integers that are public."""
        return self.terms(components)


@value(frozen=True, slots=True)
class Output:
    """One released column: its definition from components, and the AggregateCall's text for messages."""

    column: Column
    recipe: Recipe
    label: str = field(default="", compare=False)
    span: Span | None = field(default=None, compare=False)
