"""COVAR_POP, COVAR_SAMP, CORR and the REGR_… family of (y, x): centred sums, products, squares and a count.

A row counts where both arguments are valid. x is the second one, the independent variable of SQL's regressions. Sums,
squares and the count are those of AVG, VAR_POP and COUNT of the same rows, and are measured once for all of them.

Intervals: `intervals/covariance_intervals.py`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, Self

from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.components import Comoment, Component, Factor, ProductSum, ValueSum
from dpsql.core.ir.contributions import Weighing
from dpsql.core.ir.expressions import Call, Expr
from dpsql.core.ir.expressions import Literal as Constant
from dpsql.core.ir.nodes import AggregateCall
from dpsql.core.ir.recipes import Terms
from dpsql.core.ir.types import BIGINT, BOOLEAN, DOUBLE, NULL, SqlType
from dpsql.core.ir.walk import arguments
from dpsql.core.numbers.interval import Interval, everything, interval
from dpsql.diagnostics.errors import reject
from dpsql.frontend.aggregates.aggregate import AggregateFunction, Shared
from dpsql.frontend.aggregates.arguments import CLIP, bound, bounded
from dpsql.frontend.aggregates.avg import Ratio
from dpsql.frontend.aggregates.count import Count, counted
from dpsql.frontend.aggregates.formula import Bounds, Formula
from dpsql.frontend.aggregates.weighted_sum import WeightedSum

if TYPE_CHECKING:
    from dpsql.core.noise.integer_columns import Floats
    from dpsql.core.release.noisy import NoisyRelease
    from dpsql.frontend.aggregates.intervals.covariance_intervals import Boxes, Hull
    from dpsql.frontend.aggregates.moments import Exact


@dataclass(frozen=True, slots=True)
class Moment:
    """n·Σab - Σa·Σb, which is n² times the covariance of a and b.

    first, second, product: places of Σa, Σb and Σab. widths: of the bounds of a and of b.
    """

    first: int
    second: int
    product: int
    widths: tuple[Fraction, Fraction]

    @property
    def places(self) -> tuple[int, ...]:
        """All three; of a variance two."""
        return tuple(dict.fromkeys((self.product, self.first, self.second)))

    @property
    def top(self) -> Fraction:
        """The largest |covariance| that such values can have (Popoviciu, Cauchy and Schwarz)."""
        return self.widths[0] * self.widths[1] / 4

    def moved(self, to: Mapping[int, int]) -> Moment:
        """With the components at other places."""
        return replace(self, first=to[self.first], second=to[self.second], product=to[self.product])


@dataclass(frozen=True, slots=True)
class OfMoments(Formula):
    """A number made of moments and the count."""

    moments: tuple[Moment, ...]
    count: int

    @property
    def components(self) -> tuple[int, ...]:
        """The product first, the count last."""
        return (*dict.fromkeys(place for m in self.moments for place in m.places), self.count)

    def moved(self, to: Mapping[int, int]) -> Self:
        """With the components at other places."""
        return replace(self, count=to[self.count], moments=tuple(m.moved(to) for m in self.moments))

    def values(self, noisy: NoisyRelease, type_: SqlType) -> list[object]:
        """Rounded once, a root once more; NULL where the denominator is not above 0."""
        return [None if x != x else x for x in self._shown(noisy).tolist()]

    def intervals(self, noisy: NoisyRelease, level: Fraction) -> list[Bounds]:
        """NaN where the denominator may be 0."""
        import numpy as np

        from dpsql.frontend.aggregates.intervals.covariance_intervals import Boxes
        from dpsql.frontend.aggregates.released_numbers import holding

        with np.errstate(all="ignore"):  # what is too large for a DOUBLE has no interval
            low, high = self._enclosed(Boxes(noisy, self.components, self.count, self.least, level))
        return holding(list(zip(low.tolist(), high.tolist(), strict=True)), self._shown(noisy))

    @property
    def least(self) -> int:
        """The number of rows that a smaller count is taken for."""
        return 1

    def variance(self, components: Sequence[Component], spread: Sequence[float]) -> float:
        """As its sum of products."""
        return spread[self.moments[0].product]

    @property
    def as_mean(self) -> tuple[int, Fraction]:
        """The products, in what a covariance can be."""
        return self.moments[0].product, self.moments[0].top

    def _shown(self, noisy: NoisyRelease) -> Floats:
        from dpsql.frontend.aggregates.moments import Exact

        return self._exact(Exact(noisy, self.count, self.least))

    @abstractmethod
    def _exact(self, numbers: Exact) -> Floats:
        """The released numbers; NaN where there is none."""

    @abstractmethod
    def _enclosed(self, boxes: Boxes) -> Hull:
        """Where the truth lies; NaN where that is not known."""


@dataclass(frozen=True, slots=True)
class Covariance(OfMoments):
    """The moment over n², over n·(n-1), or over n: `pop`, `samp`, `sum`. Clamped to what such values can have."""

    over: Literal["pop", "samp", "sum"] = "pop"

    @property
    def least(self) -> int:
        """Two of a sample."""
        return 2 if self.over == "samp" else 1

    @property
    def greatest(self) -> Fraction | None:
        """The largest number; of a sample of two, twice as large. None: it grows with the rows."""
        (moment,) = self.moments
        return None if self.over == "sum" else moment.top * self.least

    @property
    def square(self) -> bool:
        """Whether it is a variance."""
        (moment,) = self.moments
        return moment.first == moment.second

    @property
    def span(self) -> Interval:
        """What it is clamped to."""
        if self.greatest is None:
            return everything()
        top = Fraction(float(self.greatest))
        return interval(Fraction(0) if self.square else -top, top)

    def nonnegative(self, components: Sequence[Component]) -> bool:
        """Of a variance."""
        return self.square

    def _exact(self, numbers: Exact) -> Floats:
        return numbers.covariance(self)

    def _enclosed(self, boxes: Boxes) -> Hull:
        return boxes.covariance(self)


@dataclass(frozen=True, slots=True)
class Regression(OfMoments):
    """slope = yx/xx, intercept = ȳ - slope·x̄, corr = yx/√(xx·yy), or its square.

    Of the moments yx, xx, and for `corr` and `r2` yy. NULL where one that it divides by is not above 0.
    """

    number: Literal["slope", "intercept", "corr", "r2"] = "corr"

    @property
    def span(self) -> Interval:
        """What it is clamped to."""
        match self.number:
            case "corr":
                return interval(Fraction(-1), Fraction(1))
            case "r2":
                return interval(Fraction(0), Fraction(1))
            case _:
                return everything()

    @property
    def nullable(self) -> bool:
        """Always."""
        return True

    def nonnegative(self, components: Sequence[Component]) -> bool:
        """Of R²."""
        return self.number == "r2"

    def _exact(self, numbers: Exact) -> Floats:
        return numbers.regression(self)

    def _enclosed(self, boxes: Boxes) -> Hull:
        return boxes.regression(self)


@dataclass(frozen=True, slots=True)
class SizedCovariance(WeightedSum):
    """The covariance of a public number of rows, of the comoment of all of them."""

    component: int
    over: Literal["pop", "samp", "sum"] = "pop"

    @property
    def components(self) -> tuple[int, ...]:
        """That one."""
        return (self.component,)

    def moved(self, to: Mapping[int, int]) -> Self:
        """With the component at another place."""
        return replace(self, component=to[self.component])

    def terms(self, components: Sequence[Component]) -> Terms:
        """Over n², n·(n-1) or n."""
        c = components[self.component]
        assert isinstance(c, Comoment)
        below = {"pop": c.rows**2, "samp": c.rows * (c.rows - 1), "sum": c.rows}[self.over]
        return ((self.component, c.worth / c.weight / below),)

    def nonnegative(self, components: Sequence[Component]) -> bool:
        """It can have either sign."""
        return False

    def variance(self, components: Sequence[Component], spread: Sequence[float]) -> float:
        """As of the sum of products that it stands for."""
        own = components[self.component]
        assert isinstance(own, Comoment)
        return spread[self.component] / float(own.rows) ** 2


# --- calls -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Pair:
    """The arguments of a call, each where the other one is valid, too."""

    call: AggregateCall
    facts: Facts
    shared: Shared

    @property
    def y(self) -> Expr:
        return self._where_valid(0)

    @property
    def x(self) -> Expr:
        return self._where_valid(1)

    def _where_valid(self, i: int) -> Expr:
        arg, other = self._valid(i), self._valid(1 - i)
        if self._sure(other):
            return arg
        return Call("case", (Call("is_not_null", (other,), BOOLEAN), arg, Constant(None, NULL)), arg.type, arg.span)

    def _valid(self, i: int) -> Expr:
        """The argument, NULL where it is NaN or ±∞, if it has bounds."""
        arg = arguments(self.call)[i]
        value = self.facts.value(arg)
        low, high = value.interval.lo, value.interval.hi
        if value.finite or low is None or high is None:
            return arg
        return Call("clip", (arg, bound(low, arg.type, False), bound(high, arg.type, True)), arg.type, arg.span)

    def _sure(self, arg: Expr) -> bool:
        value = self.facts.value(arg)
        return not value.nullable and value.finite

    @property
    def count(self) -> int:
        """Rows where both are valid."""
        arg = self.x if self._sure(self._valid(0)) else self.y
        return self.shared(counted(arg, self.call, self.facts))

    def mean(self, i: int) -> Ratio:
        arg, (low, high) = (self.y, self.x)[i], self.ends(i)
        return Ratio(self._sum(arg), self.count, low, high)

    def moment(self, i: int, j: int) -> Moment:
        args, ends = (self.y, self.x), (self.ends(i), self.ends(j))
        a, b = (high - low for low, high in ends)
        if a * b >= 2**1023:
            raise reject(
                "DP410", f"{self.call.function.upper()} of these bounds could be larger than any DOUBLE",
                span=self.call.span, help=[CLIP],
            )  # fmt: skip
        times = None if i == j else Factor(args[j])
        product = ProductSum(args[i], self.call.filter, times=times)
        return Moment(self._sum(args[i]), self._sum(args[j]), self.shared(product), (a, b))

    def _sum(self, arg: Expr) -> int:
        return self.shared(ValueSum(arg, self.call.filter, contribution=Weighing.PAIRED))

    def ends(self, i: int) -> tuple[Fraction, Fraction]:
        """The bounds of one argument. Raises Rejected DP201 or DP202 if it has none."""
        found = bounded(self.call, self.facts, arguments(self.call)[i]).interval
        assert found.lo is not None and found.hi is not None
        return Fraction(found.lo), Fraction(found.hi)


def _aggregate(name: str, summary: str, made: Callable[[_Pair], Formula]) -> AggregateFunction:
    def bind(call: AggregateCall, facts: Facts, shared: Shared) -> Formula:
        return made(_Pair(call, facts, shared))

    result = BIGINT if name == "regr_count" else DOUBLE
    signature = f"{name}(y: number, x: number) → {'bigint' if result == BIGINT else 'double'}"
    return AggregateFunction(name, signature, summary, lambda arg: result, bind)


def _of(i: int, j: int, over: Literal["pop", "samp", "sum"]) -> Callable[[_Pair], Covariance]:
    return lambda pair: Covariance((pair.moment(i, j),), pair.count, over)


def _line(number: Literal["slope", "intercept"]) -> Callable[[_Pair], Regression]:
    return lambda pair: Regression((pair.moment(0, 1), pair.moment(1, 1)), pair.count, number)


def _fit(number: Literal["corr", "r2"]) -> Callable[[_Pair], Regression]:
    return lambda pair: Regression((pair.moment(0, 1), pair.moment(1, 1), pair.moment(0, 0)), pair.count, number)


COVARIANCES = (
    _aggregate("covar_pop", "Population covariance; y and x need bounds.", _of(0, 1, "pop")),
    _aggregate("covar_samp", "Sample covariance; y and x need bounds.", _of(0, 1, "samp")),
    _aggregate(
        "corr", "Correlation; y and x need bounds. NULL where the noisy variance of one is not above 0.", _fit("corr")
    ),
    _aggregate("regr_slope", "Slope of the line of least squares; y and x need bounds.", _line("slope")),
    _aggregate("regr_intercept", "Where that line is at x = 0; y and x need bounds.", _line("intercept")),
    _aggregate("regr_r2", "Square of the correlation; y and x need bounds.", _fit("r2")),
    _aggregate("regr_count", "Number of rows where neither y nor x is NULL.", lambda pair: Count(pair.count)),
    _aggregate("regr_avgy", "Mean of y over these rows; y needs bounds.", lambda pair: pair.mean(0)),
    _aggregate("regr_avgx", "Mean of x over these rows; x needs bounds.", lambda pair: pair.mean(1)),
    _aggregate("regr_syy", "Sum of the squared distances of y from its mean; y needs bounds.", _of(0, 0, "sum")),
    _aggregate("regr_sxx", "Sum of the squared distances of x from its mean; x needs bounds.", _of(1, 1, "sum")),
    _aggregate("regr_sxy", "Sum of the products of both distances; y and x need bounds.", _of(0, 1, "sum")),
)
