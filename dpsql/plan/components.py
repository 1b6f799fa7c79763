"""What a release measures and shows: its group keys, its noisy components, and how its columns are made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction

from dpsql.diagnostics.diagnostic import Span
from dpsql.plan.expr import Column, Expr, LiteralValue


@dataclass(frozen=True, slots=True)
class KeySource:
    """Public keys for some of the group columns, released whether or not a row has them.

    positions: which of the GroupKeys items these tuples fill, in order.
    keys: the tuples in release order; one-column lists may be lazy (`LazyKeys`). NULL may be among them.
    origin: for EXPLAIN, e.g. `domain of patients.region` or `airlines.name`.
    covers: the input rows' keys lie in the list by construction (columns of an inner-joined public table), so the
        engine need not filter; a row outside is dropped after the fetch all the same.
    """

    positions: tuple[int, ...]
    keys: Sequence[tuple[LiteralValue, ...]]
    origin: str
    covers: bool = False


class Measure(Enum):
    """What a component counts or adds up."""

    COUNT = "count"  # rows (arg None) or rows with a valid arg
    SUM = "sum"  # of the clipped argument in grid units
    DISTINCT = "distinct"  # distinct values of arg
    UNITS = "units"  # privacy units present in the group (COUNT(DISTINCT id), key thresholds)


@dataclass(frozen=True, slots=True)
class Component:
    """One noisy integer per group: Σ over rows (or ids) of an integer the engine computes exactly.

    arg: the argument, already clipped where it reads columns; None for COUNT(*) and UNITS.
    filter: FILTER (WHERE …); None is all rows.
    grid: worth of one integer unit of a SUM's argument; a power of two, or 10^-s · 2^j for DECIMAL.
    center: grid units subtracted from every argument (AVG); lo, hi: clip bounds of (arg/grid - center), integers.
    weight: F, sub-units per unit where contributions are scaled; the released value is integer · grid / F.
    paired: the sum belongs to a count with the same weights (AVG), so it is scaled like the count.
    per_group: ends, in the argument's own unit, to which each id's total in each group is clipped (a COUNT's rows:
        from 0); never of a paired sum.
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
    per_group: tuple[Fraction, Fraction] | None = None

    @property
    def magnitude(self) -> int:
        """B = max(|lo|, |hi|) in grid units; 1 for counts."""
        return max(abs(self.lo), abs(self.hi))

    @property
    def one_sign(self) -> bool:
        """True if no value is negative, or none positive."""
        return self.lo >= 0 or self.hi <= 0

    @property
    def span(self) -> int:
        """How far a value can be from another, or from the 0 of no row, in grid units."""
        return max(self.hi, 0) - min(self.lo, 0)

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


@dataclass(frozen=True, slots=True)
class Count:
    """Output recipe: the component's value, rounded to an integer."""

    component: int


@dataclass(frozen=True, slots=True)
class Sum:
    """Output recipe: the component's value in the column's type."""

    component: int


@dataclass(frozen=True, slots=True)
class Ratio:
    """Output recipe of AVG: center + sum / max(1, count), clamped to [lo, hi]."""

    sum: int
    count: int
    lo: Fraction
    hi: Fraction


@dataclass(frozen=True, slots=True)
class End:
    """Output recipe: the lower or upper end of the 95 % confidence interval of another recipe."""

    of: Count | Sum | Ratio
    high: bool


Recipe = Count | Sum | Ratio | End


@dataclass(frozen=True, slots=True)
class Output:
    """One released column: its definition from components, and the AggregateCall's text for messages."""

    column: Column
    recipe: Recipe
    label: str = field(default="", compare=False)
    span: Span | None = field(default=None, compare=False)
