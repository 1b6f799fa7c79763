"""What is known about the values that an expression can take."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import field
from decimal import Decimal

from dpsql.core.ir.types import Kind, SqlType, value_range
from dpsql.core.numbers import interval as iv
from dpsql.core.numbers.interval import Exact, Interval, everything, iv_meet
from dpsql.core.value_classes import value

Scalar = bool | int | Decimal | float | str | bytes | dt.date | dt.datetime | dt.time | dt.timedelta | None
"""A SQL value on the Python side. INTEGER is int, DECIMAL is Decimal, DOUBLE is float, DATE is date."""


class Missing:
    """The type of MISSING."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING = Missing()
"""Marks a Value that is not a constant (None is the constant NULL)."""


@value(frozen=True, slots=True)
class Domain:
    """A finite public list of the values an expression may take as a group key, in release order.

    `values` holds non-NULL values and may be lazy (a `range`, a `DateRange`): ask `size` before you expand it.
    `null` says whether NULL is a key too. A domain is a *choice of keys*, never a fact about private data: rows whose
    key lies outside are dropped by the plan, so a wrong domain costs rows, not privacy.
    """

    values: Sequence[Scalar]
    null: bool = False

    @property
    def size(self) -> int:
        """Number of keys, NULL included."""
        values = self.values
        # len() of a range beyond 2⁶³ raises OverflowError.
        size = len(values) if not isinstance(values, range) else max(0, -((values.start - values.stop) // values.step))
        return size + int(self.null)

    def keys(self) -> Iterator[Scalar]:
        """All keys in release order; NULL comes last."""
        yield from self.values
        if self.null:
            yield None


TRUTH, TRUTH_OR_NULL = Domain((False, True)), Domain((False, True), null=True)
"""The keys of a condition."""


@value(frozen=True, slots=True)
class Value:
    """What holds for an expression's value in every row of every neighbouring database.

    interval: all non-NULL, non-NaN values lie in it, as engines compute them, *by construction* (clipping, literals,
        functions with a finite image). A raw column's interval is open, whatever bounds the policy declares: bounds
        become facts only through the CLIP nodes that the rewrite inserts. DATE counts in days and TIMESTAMP in
        microseconds since 1970-01-01; BOOLEAN is [0, 1]; VARCHAR and other kinds are open. A DOUBLE's ends are DOUBLEs,
        rounded outwards (core/numbers/doubles.py). Still no claim rests on a computed DOUBLE's interval before it is
        clipped again (core/printing/grid_integers.py, cast.py): not that it is other than 0, nor its sign, nor that a
        function is defined for it.
    range: what the stored value can be by its type (a raw INTEGER column: ±2³¹), a CLIP or exact arithmetic; used only
        to choose an execution type that cannot overflow, and to count values. Open for DOUBLE.
    reach: of sums, differences and products of exact numbers: no sum or product of some of their parts, in whatever
        order an engine takes them, is larger. None: the range says it.
    nullable: the value may be NULL. What is computed in DOUBLE always may.
    finite: the value is never NaN nor ±∞: always true for types other than DOUBLE; of a DOUBLE only what the printed
        SQL makes so: a constant, a CLIP, an exact number converted, or a choice among such (CASE, COALESCE).
    domain: finite public list of group keys, if there is one.
    constant: the value itself if the expression is a literal, else MISSING.
    """

    type: SqlType
    interval: Interval = field(default_factory=everything)
    range: Interval = field(default_factory=everything)
    nullable: bool = True
    finite: bool = True
    domain: Domain | None = None
    constant: Scalar | Missing = MISSING
    reach: Exact | None = None
    _unlisted: Value | None = field(default=None, init=False, compare=False, repr=False)

    @property
    def is_constant(self) -> bool:
        """True for literals and expressions folded to one."""
        return not isinstance(self.constant, Missing)

    # Spelled out: `replace` takes ten times as long, and these run for every expression.

    def with_interval(self, interval: Interval) -> Value:
        """The same facts with another interval."""
        return Value(
            self.type, interval, self.range, self.nullable, self.finite, self.domain, self.constant, self.reach
        )  # fmt: skip

    def without_domain(self) -> Value:
        """The same facts without a list of keys: of one value always the very same object, for `apply`."""
        found = self._unlisted
        if found is None:
            found = Value(
                self.type, self.interval, self.range, self.nullable, self.finite, None, self.constant, self.reach
            )  # fmt: skip
            object.__setattr__(self, "_unlisted", found)
        return found


def type_range(t: SqlType) -> Interval:
    """`value_range`, open where the type is no finite set of numbers."""
    found = _RANGES.get(t.name)
    if found is None:
        found = _RANGES[t.name] = value_range(t) or everything()
    return found


_RANGES: dict[str, Interval] = {}
"""By the name, which tells types apart, and is quicker to look up than a type."""

Args = Sequence[Value]


def is_null(a: Value) -> bool:
    """True for the literal NULL, whatever its type."""
    return a.is_constant and a.constant is None


_STORED = {
    Kind.DATE: iv.interval(-(2**31), 2**31),
    Kind.TIMESTAMP: iv.interval(-(2**63), 2**63),
    Kind.VARCHAR: iv.interval(0, 2**32),
}


def stored(a: Value) -> Interval:
    """The range of an argument, never wider than its type's: days, microseconds; of a text, its size in bytes."""
    widest = _STORED.get(a.type.kind) or type_range(a.type)
    return widest if a.range is widest else iv_meet(a.range, widest)


def may_fail(a: Value, target: SqlType) -> bool:
    """True if `as_type` may give NULL: a DATE far outside of what TIMESTAMP can hold."""
    far = 290_000 * 365
    return (
        a.type.kind is Kind.DATE
        and target.kind is Kind.TIMESTAMP
        and not is_null(a)
        and not a.interval.within(iv.interval(-far, far))
    )
