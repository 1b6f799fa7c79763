"""What a release measures and shows: its group keys, its noisy components, and how its columns are made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, Literal

from dpsql.core.ir.contributions import Contributing, PerGroup, UnitTotal, Weighing
from dpsql.core.ir.expressions import Column, Expr, LiteralValue
from dpsql.core.value_classes import value


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

    arg: the argument, already clipped where it reads columns; None of rows and of ids.
    filter: FILTER (WHERE …); None is all rows.
    weight: F, sub-units per unit where contributions are scaled; the released value is integer · grid / F.
    every_row: without a filter each row counts, one without a value as the lower end: what the planner guesses, and the
        statement makes true (core/printing/forms/every_row.py).
    """

    kind: ClassVar[str]
    """What the plan's JSON calls it."""
    counted: ClassVar[str] = "row"
    """What its error is a number of, where it is chosen: `row` or `unit`."""

    arg: Expr | None = None
    filter: Expr | None = None
    weight: int = 1
    every_row: bool = field(default=False, kw_only=True)

    @property
    def counts_every_row(self) -> bool:
        """Whether no row adds nothing: the one fact about rows that price and statement read."""
        return self.every_row and self.filter is None

    @property
    def contribution(self) -> Contributing:
        """How what an id adds is bounded."""
        return Weighing.BY_ROW

    @property
    def paired(self) -> bool:
        """Whether a count of the same rows, or of as many values, stands beside it."""
        return self.contribution is Weighing.PAIRED

    @property
    def of_unit(self) -> UnitTotal | None:
        """What one id may add in all groups together, in place of the limits of the release."""
        return self.contribution if isinstance(self.contribution, UnitTotal) else None

    @property
    def per_group(self) -> tuple[Fraction, Fraction] | None:
        """The ends, in the argument's own unit, to which each id's total in each group is clipped."""
        return self.contribution.ends if isinstance(self.contribution, PerGroup) else None

    @property
    def values(self) -> int | None:
        """V: how many different values count in a group; None: any number. A guess, which the SQL makes true."""
        return None

    @property
    def arguments(self) -> tuple[Expr, ...]:
        """One; of a product two; of all rows none."""
        return () if self.arg is None else (self.arg,)

    @property
    def expressions(self) -> tuple[Expr, ...]:
        """What it evaluates for each row."""
        return self.arguments if self.filter is None else (*self.arguments, self.filter)

    @property
    def grid(self) -> Fraction:
        """What an integer unit of the argument is worth."""
        return Fraction(1)

    @property
    def center(self) -> int:
        """The grid units subtracted from every argument."""
        return 0

    @property
    def shift(self) -> int:
        """The integer units subtracted from every square or product."""
        return 0

    @property
    def worth(self) -> Fraction:
        """What one integer unit, before the weight F, is worth in the unit of the released number; of scores, rows."""
        return self.grid

    @property
    def ends(self) -> tuple[int, int]:
        """The least and the largest integer of a row that counts; of what is chosen, how it moves scores."""
        return 0, 1

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
        """How far a value can be from another, or from the 0 of no row, in integer units."""
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


@value(frozen=True, slots=True)
class RowCount(Component):
    """Rows, or rows with a valid argument."""

    kind = "count"

    contribution: Literal[Weighing.BY_ROW] | PerGroup | UnitTotal = Weighing.BY_ROW


@value(frozen=True, slots=True)
class UnitCount(Component):
    """Privacy units present in the group (COUNT(DISTINCT id), key thresholds)."""

    kind = "units"

    arg: None = None


@value(frozen=True, slots=True)
class SharedUnits(Component):
    """Privacy units present in the group, each with less than 1 the more groups it is in: what chooses private keys."""

    kind = "shared_units"

    arg: None = None


@value(frozen=True, slots=True)
class DistinctCount(Component):
    """Different values of the argument."""

    kind = "distinct"

    arg: Expr
    values: int | None = None
    contribution: Literal[Weighing.ALONE] | UnitTotal = Weighing.ALONE


@value(frozen=True, slots=True)
class OnGrid(Component):
    """What reads its argument as integers y = arg/grid - center of [lo, hi].

    grid: a power of two, or 10^-s · 2^j for DECIMAL. center: of what is paired, so that values lie around 0.
    units: a column in which arg/grid stands, clipped and rounded, the center not subtracted; None: it is computed.
    """

    arg: Expr
    grid: Fraction = Fraction(1)
    center: int = 0
    lo: int = 0
    hi: int = 1
    units: Column | None = None

    @property
    def expressions(self) -> tuple[Expr, ...]:
        """And the stored integers."""
        return (*self.arguments, *(e for e in (self.filter, self.units) if e is not None))

    @property
    def ends(self) -> tuple[int, int]:
        """Those of y."""
        return self.lo, self.hi


@value(frozen=True, slots=True)
class ValueSum(OnGrid):
    """Of the clipped argument in grid units."""

    kind = "sum"

    contribution: Contributing = Weighing.ALONE


@value(frozen=True, slots=True)
class DistinctSum(OnGrid):
    """Of the different values of the clipped argument in grid units."""

    kind = "distinct_sum"

    values: int | None = None
    contribution: Literal[Weighing.ALONE, Weighing.PAIRED] = Weighing.ALONE


@value(frozen=True, slots=True)
class ProductSum(OnGrid):
    """Of round(y·z/step) - shift in each row (variances, covariances), paired with a count.

    times: z; None: y itself. step: squared grid units per integer unit. shift: so that what a row adds lies around 0,
    which halves its magnitude.
    """

    kind = "sum"

    times: Factor | None = None
    step: int = 1
    shift: int = 0

    @property
    def contribution(self) -> Contributing:
        """With the weights of the count."""
        return Weighing.PAIRED

    @property
    def arguments(self) -> tuple[Expr, ...]:
        """Both."""
        return (self.arg,) if self.times is None else (self.arg, self.times.arg)

    @property
    def worth(self) -> Fraction:
        """Of a step."""
        return self.grid * (self.grid if self.times is None else self.times.grid) * self.step

    @property
    def ends(self) -> tuple[int, int]:
        """Of steps."""
        least, most = self.products
        return self.stepped(least), self.stepped(most)

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


@value(frozen=True, slots=True)
class Comoment(ProductSum):
    """(n·Σy·z - Σy·Σz)/step, rounded, over all of a public number n of rows: one integer of all of them.

    rows: n.
    """

    kind = "comoment"

    times: Factor = field(kw_only=True)
    rows: int = field(kw_only=True)


@value(frozen=True, slots=True)
class QuantileChoice(OnGrid):
    """Not a sum: the number of a public cell of values, chosen by its rank. Integer units are those of its scores.

    p: which quantile; above 0 and below 1. cells: the most that it is chosen among. logarithmic: beside cells of one
    width also some that grow with |value|.
    """

    kind = "quantile"

    p: Fraction = field(kw_only=True)
    cells: int = 0
    logarithmic: bool = True

    @property
    def steepness(self) -> int:
        """The most by which one row more moves the score of a cell: max(a, b - a) of p = a/b."""
        return max(self.p.numerator, self.p.denominator - self.p.numerator)

    @property
    def worth(self) -> Fraction:
        """Of a unit of the scores."""
        return Fraction(1, self.p.denominator)

    @property
    def ends(self) -> tuple[int, int]:
        """Of the scores."""
        return -self.steepness, self.steepness

    @property
    def span(self) -> int:
        """What a row moves that goes from one side to the other."""
        return self.p.denominator


@value(frozen=True, slots=True)
class ListChoice(Component):
    """Not a sum: the number of one of the public values of its argument; a row with another value counts nowhere.

    choices: the values; None until they are looked for. Integer units are halves of a row, or of a unit.
    """

    arg: Expr
    choices: KeySource | None = None

    @property
    def worth(self) -> Fraction:
        """Of a unit of the scores."""
        return Fraction(1, 2)

    @property
    def ends(self) -> tuple[int, int]:
        """Of the scores."""
        return -1, 1


@value(frozen=True, slots=True)
class ModeChoice(ListChoice):
    """Chosen by how many rows have it; never NULL."""

    kind = "mode"


@value(frozen=True, slots=True)
class LargestChoice(ListChoice):
    """Chosen by how many units have it. pick: which of several choices it is."""

    kind = "largest"
    counted = "unit"

    choices: KeySource = field(kw_only=True)
    pick: Pick = field(kw_only=True)
