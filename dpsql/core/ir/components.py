"""What a release measures and shows: its group keys, its noisy components, and how its columns are made of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from typing import ClassVar, Literal, Self

from dpsql.core.ir.expressions import Column, Expr, LiteralValue
from dpsql.core.numbers.interval import Interval, everything
from dpsql.core.value_classes import value
from dpsql.diagnostics.diagnostic import Span


@dataclass(frozen=True, slots=True)
class KeySource:
    """Public keys for some of the group columns, released whether or not a row has them.

    positions: which of the GroupKeys items these tuples fill, in order.
    keys: the tuples in release order; one-column lists may be lazy (`LazyKeys`). NULL may be among them.
    origin: for EXPLAIN, e.g. `domain of patients.region` or `airlines.name`.
    covers: the input rows' keys lie in the list by construction (columns of an inner-joined public table), so the
        engine need not filter; a row outside is dropped after the fetch all the same.
    ends: the first and the last of a single column's keys, if all of its values between them are keys.
    closed: as far as the query and its types tell, no row has another key. For readers alone: rows are dropped as ever.
    """

    positions: tuple[int, ...]
    keys: Sequence[tuple[LiteralValue, ...]]
    origin: str
    covers: bool = False
    ends: tuple[LiteralValue, LiteralValue] | None = None
    closed: bool = field(default=False, compare=False)


Norm = Literal["l1", "l2"]

SATURATED = 2**62
"""Totals of one id, and values without declared bounds, are clipped to ± this many grid units before they are added."""


@dataclass(frozen=True, slots=True)
class UnitTotal:
    """How much one id may add to a component, with its totals per group taken together; more is scaled down.

    most: τ, in whole integer units of the component before its weight F (rows of a COUNT, different (group, value) of
        a COUNT(DISTINCT …), grid units of a SUM).
    norm: `l1`: Σ |total of the id in the group| over all groups is at most τ; `l2`: √Σ total² is.
    label: of the search that finds τ; for messages, and for the addresses of answers. No integer depends on it.

    A total is that of the rows which the component counts, after its own FILTER, saturated to ±2⁶². A plan that counts
    ids by the octaves of such sums stands in tests/core/analysis/test_octaves_of_ids.py.
    """

    most: int
    norm: Norm = "l1"
    label: str = field(default="", compare=False)


class Measure(Enum):
    """What a component counts or adds up."""

    COUNT = "count"  # rows (arg None) or rows with a valid arg
    SUM = "sum"  # of the clipped argument in grid units
    DISTINCT = "distinct"  # distinct values of arg
    DISTINCT_SUM = "distinct_sum"  # of the distinct values of the clipped argument in grid units
    UNITS = "units"  # privacy units present in the group (COUNT(DISTINCT id), key thresholds)
    COMOMENT = "comoment"  # n·Σy·z - Σy·Σz over all of a public number n of rows
    QUANTILE = "quantile"  # not a sum: the number of a public cell of values, chosen by its rank
    MODE = "mode"  # not a sum: the number of a public value, chosen by how many rows have it
    LARGEST = "largest"  # not a sum: the number of a public value, chosen by how many units have it

    __hash__ = object.__hash__  # each is one object; Enum's own hash is that of the name, in Python


@dataclass(frozen=True, slots=True)
class Quantile:
    """Which quantile of the clipped argument, and among how many cells of values it is chosen.

    p: above 0 and below 1. cells: the most. logarithmic: beside cells of one width also some that grow with |value|.
    """

    p: Fraction
    cells: int = 0
    logarithmic: bool = True

    @property
    def steepness(self) -> int:
        """The most by which one row more moves the score of a cell: max(a, b - a) of p = a/b."""
        return max(self.p.numerator, self.p.denominator - self.p.numerator)


@dataclass(frozen=True, slots=True)
class Pick:
    """One of `of` choices from one list, each among those values that the choices before it left. place: from 0."""

    place: int
    of: int


@dataclass(frozen=True, slots=True)
class Factor:
    """By what each row's y is multiplied: z = arg/grid - center, an integer of [lo, hi].

    arg: NULL, or no finite number, where that of the component is, and nowhere else.
    """

    arg: Expr
    grid: Fraction = Fraction(1)
    center: int = 0
    lo: int = 0
    hi: int = 1


@value(frozen=True, slots=True)
class Component:
    """One noisy integer per group: Σ over rows (or ids) of an integer the engine computes exactly.

    arg: the argument, already clipped where it reads columns; None for COUNT(*) and UNITS.
    filter: FILTER (WHERE …); None is all rows.
    grid: worth of one integer unit of a SUM's argument; a power of two, or 10^-s · 2^j for DECIMAL.
    center: grid units subtracted from every argument (AVG); lo, hi: clip bounds of y = arg/grid - center, integers.
    squared: the integer of a row is round(y²/step) - shift instead of y (variances); step: squared grid units per
        integer unit; shift: so that what a row adds lies around 0, which halves its magnitude.
    times: with it the integer of a row is round(y·z/step) - shift (covariances). Never of a square.
    rows: of a comoment the public number n of rows. Its integer is that of all of them: (n·Σy·z - Σy·Σz)/step, rounded.
    weight: F, sub-units per unit where contributions are scaled; the released value is integer · grid / F.
    paired: the sum belongs to a count with the same weights (AVG), so it is scaled like the count; of different values:
        to a count of as many.
    by_row: the sum is scaled like a count of the same rows, though no count is measured with it: what an id adds is the
        same in all groups together, however its rows are grouped.
    per_group: ends, in the argument's own unit, to which each id's total in each group is clipped (a COUNT's rows:
        from 0); never of a paired sum.
    values: of COUNT and SUM(DISTINCT arg), the most different values that arg can have, by construction; None: not
        known.
    of_unit: what one id may add in all groups together, in place of the limits of the release; never of a paired sum.
    quantile: of a QUANTILE alone. Its integer units are those of the scores of its cells.
    choices: of a MODE or LARGEST alone, the public values of arg that one is chosen from; a row with another value
        counts nowhere. Of a MODE never NULL. None until they are looked for. Its integer units are halves of a row, or
        of a unit.
    pick: of a LARGEST alone, which of several choices it is.
    every_row: without a filter each row counts, one without a value as the lower end: what the planner guesses, and the
        statement makes true (core/printing/forms/every_row.py).
    units: a column in which arg/grid stands, clipped and rounded, the center not subtracted; None: it is computed.
    """

    measure: Measure
    arg: Expr | None = None
    filter: Expr | None = None
    grid: Fraction = Fraction(1)
    center: int = 0
    lo: int = 0
    hi: int = 1
    weight: int = 1
    paired: bool = False
    by_row: bool = False
    per_group: tuple[Fraction, Fraction] | None = None
    squared: bool = False
    step: int = 1
    shift: int = 0
    times: Factor | None = None
    rows: int | None = None
    values: int | None = None
    of_unit: UnitTotal | None = None
    quantile: Quantile | None = None
    choices: KeySource | None = None
    pick: Pick | None = None
    units: Column | None = None
    every_row: bool = False

    @property
    def arguments(self) -> tuple[Expr, ...]:
        """One; of a product two; of all rows none."""
        return tuple(e for e in (self.arg, None if self.times is None else self.times.arg) if e is not None)

    @property
    def expressions(self) -> tuple[Expr, ...]:
        """What it evaluates for each row."""
        return (*self.arguments, *(e for e in (self.filter, self.units) if e is not None))

    @property
    def worth(self) -> Fraction:
        """What one integer unit, before the weight F, is worth in the unit of the released number; of scores, rows."""
        if self.quantile is not None:
            return Fraction(1, self.quantile.p.denominator)
        if self.times is not None:
            return self.grid * self.times.grid * self.step
        if self.of_list:
            return Fraction(1, 2)
        return self.grid**2 * self.step if self.squared else self.grid

    @property
    def ends(self) -> tuple[int, int]:
        """The least and the largest integer of a row that counts; of what is chosen, how it moves scores."""
        if self.quantile is not None:
            return -self.quantile.steepness, self.quantile.steepness
        if self.measure is Measure.MODE or self.measure is Measure.LARGEST:
            return -1, 1
        if not self.squared and self.times is None:
            return self.lo, self.hi
        least, most = self.products
        return self.stepped(least), self.stepped(most)

    @property
    def of_list(self) -> bool:
        """Whether it is one of a public list of values."""
        return self.measure in (Measure.MODE, Measure.LARGEST)

    @property
    def counted(self) -> str:
        """What its error is a number of, where it is chosen: `row` or `unit`."""
        return "unit" if self.measure is Measure.LARGEST else "row"

    @property
    def multiplied(self) -> bool:
        """Whether a row adds a square or a product."""
        return self.squared or self.times is not None

    @property
    def products(self) -> tuple[int, int]:
        """The least and the largest y², or y·z: bilinear, so at corners."""
        if self.times is not None:
            corners = [y * z for y in (self.lo, self.hi) for z in (self.times.lo, self.times.hi)]
            return min(corners), max(corners)
        low, high = sorted((self.lo**2, self.hi**2))
        return 0 if self.lo <= 0 <= self.hi else low, high

    def stepped(self, product: int) -> int:
        """The integer of a row with this square or product: over step, halves rounded up, less the shift. Grows."""
        return (product + self.step // 2) // self.step - self.shift

    @property
    def magnitude(self) -> int:
        """B: the largest |integer| of a row; 1 for counts."""
        low, high = self.ends
        return max(abs(low), abs(high))

    @property
    def one_sign(self) -> bool:
        """True if no value is negative, or none positive."""
        low, high = self.ends
        return low >= 0 or high <= 0

    @property
    def span(self) -> int:
        """How far a value can be from another, or from the 0 of no row, in integer units.

        Of a quantile: what a row moves that goes from one side to the other.
        """
        if self.quantile is not None:
            return self.quantile.p.denominator
        low, high = self.ends
        return max(high, 0) - min(low, 0)

    @property
    def ends_per_group(self) -> tuple[int, int]:
        """`per_group` in grid units, rounded outwards."""
        assert self.per_group is not None
        low, high = self.per_group
        return int(low // self.grid), int(-(-high // self.grid))

    @property
    def most_per_group(self) -> int:
        """The larger end of `per_group`, in grid units."""
        return max(map(abs, self.ends_per_group))


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
