"""How a number above the releases is made of noisy ones: what decides whether it has an interval, and of which kind.

A form is a plan of arithmetic, without numbers: `planner/postprocessing/intervals/answer_intervals.py` carries it out.
What has no interval has a form that says why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum

from dpsql.core.ir.components import Component
from dpsql.core.ir.recipes import Output
from dpsql.core.ir.types import Kind as TypeKind
from dpsql.core.ir.types import SqlType
from dpsql.core.value_classes import replace, value
from dpsql.core.values.value import Scalar, Value
from dpsql.frontend.aggregates.formula import formula
from dpsql.functions.registry import REGISTRY

Source = tuple[int, int]
"""A noisy number of each row of a release: the release's place, and the component's."""
Sources = frozenset[Source]
NOTHING: Sources = frozenset()


@value(frozen=True, slots=True)
class Lost:
    """What limits have cut by an unknown amount: without them a number may be far lower, or far higher.

    told: searches found all these limits, and their octaves tell how much they cut, once they are drawn. others: it is
    of other rows or values than without noise.
    """

    low: bool = False
    high: bool = False
    told: bool = False
    others: bool = False

    def __or__(self, other: Lost) -> Lost:
        told = [each.told for each in (self, other) if each]
        others = self.others or other.others
        return Lost(self.low or other.low, self.high or other.high, bool(told) and all(told), others)

    def __neg__(self) -> Lost:
        return Lost(self.high, self.low, self.told, self.others)

    def __bool__(self) -> bool:
        return self.low or self.high


WHOLE, CUT = Lost(), Lost(low=True, high=True)


class IntervalMethod(Enum):
    """What an interval is made by."""

    EXACT = "exact"  # there is no noise in it
    LINEAR = "linear"  # the quantile of a weighted sum of noise
    QUOTIENT = "quotient"  # of two such: what the quantiles of their differences do not reject
    ENCLOSED = "enclosed"  # a function of several numbers, whose intervals hold all at once
    CONDITION = "condition"  # true, false or both, where these intervals hold
    NONE = "none"


# --- what makes a number ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal."""

    value: Scalar


@dataclass(frozen=True, slots=True)
class Fixed:
    """A value without noise that the engine gives for each row: a hidden column of the step."""

    hidden: int


@dataclass(frozen=True, slots=True)
class Shown:
    """An output of a release, row by row."""

    release: int
    output: int


@dataclass(frozen=True, slots=True)
class Taken:
    """Column `uid` of an input of the step, in the rows that its hidden column numbers; NULL where there is none.

    input: its number among the inputs of the step.
    """

    input: int
    uid: int


@dataclass(frozen=True, slots=True)
class Called:
    """A function of the arguments. values: what is known of each of them in every row."""

    function: str
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Converted:
    """The argument in another type, rounded to so many decimal places; None: it keeps all that intervals have."""

    places: int | None


@dataclass(frozen=True, slots=True)
class First:
    """The first of the arguments that is not NULL; behind them stands, for each but the last, where it is NULL."""


@dataclass(frozen=True, slots=True)
class Either:
    """The first argument where the hidden column is 0, the second where it is 1: rows one below the other."""

    hidden: int


@dataclass(frozen=True, slots=True)
class Moved:
    """The first argument in the input's row that the hidden column numbers; where it is NULL the second, if any."""

    hidden: int


@dataclass(frozen=True, slots=True)
class Framed:
    """Which rows of the input a row stands for, by hidden columns: its own number, its partition, its place there, and
    the first and the last row of its frame; None for all rows."""

    row: int
    partition: int
    place: int
    frame: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Grouped:
    """Which rows of the input a row stands for: a hidden column of lists."""

    rows: int


@dataclass(frozen=True, slots=True)
class Over:
    """`sum`, `avg`, `min` or `max` of the argument over several rows of the input."""

    function: str
    rows: Framed | Grouped


Maker = Constant | Fixed | Shown | Taken | Called | Converted | First | Either | Moved | Over | None


@value(frozen=True, slots=True)
class Form:
    """How one column is made.

    sources: the noisy numbers that it depends on; of an exact one, those that decide whether there is a row to read it
    in. why: it has no interval (NONE); empty where that needs no words. settled: noise does not decide whether it is
    NULL. nonnegative: without noise it is never below 0. lost: which ends of its interval say nothing of the number
    without limits.
    """

    kind: IntervalMethod
    maker: Maker = None
    args: tuple[Form, ...] = ()
    sources: Sources = NOTHING
    why: str = ""
    settled: bool = True
    nonnegative: bool = False
    lost: Lost = WHOLE

    @property
    def exact(self) -> bool:
        """Whether there is no noise in it."""
        return self.kind is IntervalMethod.EXACT

    @property
    def gap(self) -> str | None:
        """Why it has no interval, if that is known beforehand; empty where it needs no words."""
        if self.kind in (IntervalMethod.EXACT, IntervalMethod.NONE):
            return self.why
        if not (self.lost.low and self.lost.high) or self.lost.told:
            return None
        return OF_OTHERS if self.lost.others else OF_CUT


_COMPARES = "it compares noisy numbers"
"""Why an end of an interval is missing."""
OF_CUT = "made of numbers that a limit cuts"
OF_OTHERS = "another noisy number decides what it is made of"
EXACT = Form(IntervalMethod.EXACT)
"""Whatever the engine computes without noise, as long as nobody needs the values."""


def none(why: str, sources: Sources) -> Form:
    """No interval."""
    return Form(IntervalMethod.NONE, sources=sources, why=why, settled=False)


def _none_of(form: Form, sources: Sources) -> Form:
    """No interval of what is computed from this one, which has none."""
    return none(form.why or "it is computed from an end of an interval", sources)


def constant(value: Scalar) -> Form:
    """A literal."""
    positive = isinstance(value, (int, float, Decimal)) and value >= 0
    return Form(IntervalMethod.EXACT, Constant(value), nonnegative=positive)


def shown(
    release: int, at: int, output: Output, components: Sequence[Component], noisy: Sources, lost: Lost = WHOLE
) -> Form:
    """An output of a release. noisy: its components that have noise. lost: what its limits take away."""
    maker = Shown(release, at)
    made_by = formula(output)
    if made_by.no_interval is not None:
        return none(made_by.no_interval, noisy)
    kind = IntervalMethod.ENCLOSED if made_by.terms(components) is None else IntervalMethod.LINEAR
    return Form(kind, maker, sources=noisy, nonnegative=made_by.nonnegative(components), lost=lost)


def taken(number: int, uid: int, form: Form) -> Form:
    """A column of an input of the step."""
    if form.kind in (IntervalMethod.EXACT, IntervalMethod.NONE):
        return form
    return replace(form, maker=Taken(number, uid), args=())


def unsure(form: Form, sources: Sources) -> Form:
    """The form of a column that an outer join pads: where these noisy numbers leave no row, it is NULL."""
    if form.exact:
        return replace(form, sources=form.sources | sources)
    return replace(form, settled=form.settled and not sources)


# --- functions -------------------------------------------------------------------------------------------------------

_CONDITIONS = frozenset(
    ("eq", "ne", "lt", "le", "gt", "ge", "is_distinct_from", "is_not_distinct_from", "and", "or", "not", "is_true",
     "is_not_true", "is_false", "is_not_false", "is_null", "is_not_null", "in", "isnan", "isinf", "isfinite")
)  # fmt: skip
_TOTAL = frozenset(
    ("add", "sub", "mul", "neg", "abs", "sign", "floor", "ceil", "trunc", "round", "clip", "greatest", "least", "exp",
     "case", "if", "radians", "degrees")
)  # fmt: skip
"""Functions that are NULL only where an argument is."""


def called(function: str, args: tuple[Form, ...], values: tuple[Value, ...], result: SqlType) -> Form:
    """A function of which at least one argument has noise; the exact ones are constants or `Fixed`."""
    function = REGISTRY[function].name
    sources = _all(args)
    if function in _CONDITIONS:
        lost = _cut(args) if any(f.lost for f in args) else WHOLE
        return Form(
            IntervalMethod.CONDITION, Called(function, values), args, sources, settled=_settled(args), lost=lost
        )
    if not result.numeric:
        return none(_not_a_number(result), sources)
    chosen, conditions = _chosen(function, args)
    for form in chosen:
        if form.kind is IntervalMethod.NONE:
            return _none_of(form, sources)
    kind = _kind(function, args, chosen, conditions)
    if kind is IntervalMethod.ENCLOSED and any(f.kind is IntervalMethod.CONDITION for f in chosen):
        return none("it is computed from comparisons of noisy numbers", sources)
    settled = function in _TOTAL and _settled(args)
    lost = _lost(function, kind, args, chosen, conditions)
    return Form(kind, Called(function, values), args, sources, "", settled, _nonnegative(function, chosen), lost)


def converted(form: Form, source: SqlType, target: SqlType) -> Form:
    """CAST of something with noise."""
    if form.kind is IntervalMethod.NONE:
        return _none_of(form, form.sources)
    if not target.numeric:
        return none(_not_a_number(target), form.sources)
    if form.kind is IntervalMethod.CONDITION or target.name == "FLOAT":
        places: int | None = None
        kind = IntervalMethod.ENCLOSED
    else:
        keeps = target.kind is TypeKind.DOUBLE or (source.kind is not TypeKind.DOUBLE and source.scale <= target.scale)
        places, kind = (None, form.kind) if keeps else (target.scale, IntervalMethod.ENCLOSED)
    return replace(form, kind=kind, maker=Converted(places), args=(form,))


def first(args: tuple[Form, ...], absent: tuple[Form, ...]) -> Form:
    """COALESCE. absent: for each argument but the last where it is NULL."""
    for form in args:
        if form.kind is IntervalMethod.NONE:
            return _none_of(form, _all(args))
    kind = _mixed([f for f in args if f.maker != Constant(None)])
    settled = _settled(args)
    if not _settled(args[:-1]):
        kind = IntervalMethod.ENCLOSED
    nonnegative = all(f.nonnegative for f in args)
    return Form(kind, First(), (*args, *absent), _all(args), "", settled, nonnegative, _either(args))


def either(left: Form, right: Form, hidden: int) -> Form:
    """Rows of two inputs, one below the other. Where one of them has no interval, only its rows have none."""
    if left.exact and right.exact:
        return EXACT
    sides = (left, right)
    if all(f.kind in (IntervalMethod.NONE, IntervalMethod.EXACT) for f in sides):
        why = next(f.why for f in sides if f.kind is IntervalMethod.NONE)
        return none(why, _all(sides))
    kind = IntervalMethod.ENCLOSED if any(f.kind is IntervalMethod.NONE for f in sides) else _mixed(sides)
    if any(f.kind is IntervalMethod.CONDITION for f in sides):
        return none(_COMPARES, _all(sides))
    nonnegative, why = left.nonnegative and right.nonnegative, left.why or right.why
    return Form(kind, Either(hidden), sides, _all(sides), why, _settled(sides), nonnegative, _either(sides))


def over(function: str, form: Form, rows: Framed | Grouped) -> Form:
    """An aggregate of a column with noise, over rows that noise did not choose."""
    if form.kind is IntervalMethod.NONE:
        return _none_of(form, form.sources)
    if form.kind is IntervalMethod.CONDITION or function not in ("sum", "avg", "min", "max"):
        what = {"count": "number", "quantile_cont": "quantile", "quantile_disc": "quantile", "mode": "MODE"}.get(
            function, function
        )
        return none(f"of the {what} of noisy numbers no interval is known", form.sources)
    if not form.settled and form.kind is IntervalMethod.LINEAR:
        return none("noise decides which of the numbers are NULL", form.sources)
    kind = (
        IntervalMethod.LINEAR
        if form.kind is IntervalMethod.LINEAR and function in ("sum", "avg")
        else IntervalMethod.ENCLOSED
    )
    return Form(kind, Over(function, rows), (form,), form.sources, nonnegative=form.nonnegative, lost=form.lost)


def moved(form: Form, hidden: int, default: Form | None) -> Form:
    """A column in another row, or the default."""
    args = (form,) if default is None else (form, default)
    for f in args:
        if f.kind is IntervalMethod.NONE:
            return _none_of(f, _all(args))
        if f.kind is IntervalMethod.CONDITION:
            return none(_COMPARES, _all(args))
    nonnegative = all(f.nonnegative for f in args)
    return Form(_mixed(args), Moved(hidden), args, _all(args), "", form.settled, nonnegative, _either(args))


def finished(form: Form) -> Form:
    """The form of a column of the answer."""
    return none(_COMPARES, form.sources) if form.kind is IntervalMethod.CONDITION else form


# --- rules -----------------------------------------------------------------------------------------------------------


def _chosen(function: str, args: tuple[Form, ...]) -> tuple[tuple[Form, ...], tuple[Form, ...]]:
    """The arguments that the result is made of, and those that only decide which of them."""
    if function in ("case", "if"):
        return (*args[1:-1:2], args[-1]), args[:-1:2]
    return args, ()


def _kind(function: str, args: Sequence[Form], chosen: Sequence[Form], conditions: Sequence[Form]) -> IntervalMethod:
    kinds = [f.kind for f in args]
    sums = all(k in (IntervalMethod.EXACT, IntervalMethod.LINEAR) for k in kinds)
    match function:
        case "add" | "sub" if sums:
            return IntervalMethod.LINEAR
        case "add" | "sub" if sorted(k.value for k in kinds) == ["exact", "quotient"]:
            return IntervalMethod.QUOTIENT
        case "neg":
            return kinds[0]
        case "mul" if IntervalMethod.EXACT in kinds:
            return next(k for k in kinds if k is not IntervalMethod.EXACT)
        case "div" if kinds[1] is IntervalMethod.EXACT:
            return kinds[0]
        case "div" if sums or kinds == [IntervalMethod.EXACT, IntervalMethod.QUOTIENT]:
            return IntervalMethod.QUOTIENT
        case "nullif" if kinds[1] is IntervalMethod.EXACT:
            return kinds[0]
        case "case" | "if" if all(f.exact for f in conditions):
            return _mixed([f for f in chosen if f.maker != Constant(None)])
        case _:
            return IntervalMethod.ENCLOSED


def _mixed(forms: Sequence[Form]) -> IntervalMethod:
    """The kind of a column that is one of these in each row."""
    kinds = {f.kind for f in forms}
    if kinds <= {IntervalMethod.EXACT}:
        return IntervalMethod.EXACT
    if kinds <= {IntervalMethod.EXACT, IntervalMethod.LINEAR}:
        return IntervalMethod.LINEAR
    return (
        IntervalMethod.QUOTIENT
        if kinds <= {IntervalMethod.EXACT, IntervalMethod.LINEAR, IntervalMethod.QUOTIENT}
        else IntervalMethod.ENCLOSED
    )


def _nonnegative(function: str, args: Sequence[Form]) -> bool:
    every = all(f.nonnegative for f in args)
    match function:
        case "abs" | "sqrt" | "exp":
            return True
        case "greatest":
            return any(f.nonnegative for f in args)
        case "nullif":
            return args[0].nonnegative
        case "add" | "mul" | "div" | "least" | "floor" | "ceil" | "trunc" | "round" | "case" | "if":
            return every or all(f.nonnegative or f.maker == Constant(None) for f in args)
        case _:
            return False


_RISING = frozenset(
    ("round", "floor", "ceil", "trunc", "sqrt", "cbrt", "ln", "log10", "log2", "exp", "greatest", "least", "nullif",
     "case", "if")
)  # fmt: skip
"""Functions that never fall where one of the arguments that they are made of rises."""


def _lost(
    function: str, kind: IntervalMethod, args: Sequence[Form], chosen: Sequence[Form], conditions: Sequence[Form]
) -> Lost:
    """What is lost of a function's value: of shares, ratios and differences of what is cut both ends."""
    if not any(f.lost for f in args):
        return WHOLE
    if kind is IntervalMethod.QUOTIENT or any(f.lost for f in conditions):
        return _cut(args)
    match function:
        case "neg":
            return -args[0].lost
        case "add":
            return args[0].lost | args[1].lost
        case "sub":
            return args[0].lost | -args[1].lost
        case "mul" if args[0].exact or args[1].exact:
            factor, number = (args[0], args[1]) if args[0].exact else (args[1], args[0])
            return _scaled(number.lost, factor)
        case "div" if args[1].exact:
            return _scaled(args[0].lost, args[1])
        case "clip":
            return args[0].lost if all(f.exact for f in args[1:]) else _cut(args)
        case _:
            return _either(chosen) if function in _RISING else _cut(args)


def _scaled(lost: Lost, by: Form) -> Lost:
    """Times a number without noise: what is known of its sign decides which end it is."""
    if by.nonnegative:
        return lost
    known = isinstance(by.maker, Constant) and isinstance(by.maker.value, (int, float, Decimal))
    return -lost if known else replace(lost, low=True, high=True)


def _cut(forms: Sequence[Form]) -> Lost:
    """Both ends, of what is made of these."""
    return replace(_either(forms), low=True, high=True)


def _either(forms: Sequence[Form]) -> Lost:
    """Of one of these."""
    found = WHOLE
    for form in forms:
        found |= form.lost
    return found


def _settled(forms: Sequence[Form]) -> bool:
    return all(f.settled for f in forms)


def _all(forms: Sequence[Form]) -> Sources:
    return NOTHING.union(*(f.sources for f in forms))


def _not_a_number(type_: SqlType) -> str:
    if type_.kind is TypeKind.BOOLEAN:
        return _COMPARES
    what = {TypeKind.VARCHAR: "a text", TypeKind.DATE: "a date", TypeKind.TIMESTAMP: "a time"}.get(type_.kind)
    return f"it is {what or 'no number'}, made from noisy numbers"
