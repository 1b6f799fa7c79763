"""A column of exact integers: 64 bits each where all of them fit, Python integers where one does not.

*Claim.* Every operation gives what the same formula gives in Python integers; nothing wraps. *Why.* Each one bounds
all that it computes on the way by the columns' extremes, in Python integers, and works on 64 bits only where the bound
fits; numpy runs the same expression on Python integers otherwise.
*Not proved:* numpy is trusted. *Tested by* tests/core/noise/test_integer_columns.py.

This module loads numpy: whatever `dpsql check` needs imports it where it draws.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import index
from typing import Any, Final, overload

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Floats = NDArray[np.float64]
LIMIT: Final = (1 << 63) - 1
"""What is bounded by this is computed in 64 bits."""
_EXACT: Final = 1 << 53
"""Integers up to this are floating-point numbers."""


class Integers(Sequence[int]):
    """Immutable. `array` is of int64, or of Python ints (dtype object); never to be written to.

    Its elements and slices are Python's; equal to every sequence of equal integers. It does not show its values, which
    may be private.
    """

    __slots__ = ("array",)

    def __init__(self, array: Array) -> None:
        """Use `of` or `zeros`. array: of int64 or of Python ints."""
        self.array = array

    @classmethod
    def of(cls, values: Iterable[Any]) -> Integers:
        """Exactly these. Raises TypeError for what is no integer."""
        if isinstance(values, Integers):
            return values
        if isinstance(values, np.ndarray) and values.dtype == np.int64:
            return cls(values)
        listed = list(map(index, values))
        try:
            return cls(np.array(listed, dtype=np.int64))
        except OverflowError:
            return cls(np.array(listed, dtype=object))

    @classmethod
    def zeros(cls, height: int) -> Integers:
        """All 0."""
        return cls(np.zeros(height, dtype=np.int64))

    @classmethod
    def joined(cls, parts: Sequence[Integers]) -> Integers:
        """One after the other."""
        return cls(np.concatenate(arrays(max(p.largest for p in parts), *parts)))

    def __len__(self) -> int:
        return len(self.array)

    @overload
    def __getitem__(self, at: int) -> int: ...
    @overload
    def __getitem__(self, at: slice) -> Integers: ...
    def __getitem__(self, at: int | slice) -> int | Integers:
        return Integers(self.array[at]) if isinstance(at, slice) else int(self.array[at])

    def __iter__(self) -> Iterator[int]:
        return iter(self.tolist())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Integers):
            return bool(np.array_equal(self.array, other.array))
        return isinstance(other, Sequence) and self.tolist() == list(other)

    def __hash__(self) -> int:
        return hash(tuple(self.tolist()))

    def __repr__(self) -> str:
        return f"<{len(self)} integers>"

    def __reduce__(self) -> tuple[Any, ...]:
        return Integers, (self.array,)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.array, dtype=dtype)

    def tolist(self) -> list[int]:
        """As Python integers."""
        found: list[int] = self.array.tolist()
        return found

    def floats(self) -> Floats:
        """Each as the nearest floating-point number."""
        return self.array.astype(np.float64)

    @property
    def largest(self) -> int:
        """The largest |value|; 0 of none."""
        return max(-int(self.array.min()), int(self.array.max()), 0) if len(self.array) else 0

    def plus(self, other: Integers) -> Integers:
        """The sums, pair by pair."""
        a, b = arrays(self.largest + other.largest, self, other)
        return Integers(a + b)

    def clipped(self, low: int, high: int) -> Integers:
        """Each moved into [low, high]."""
        if self.largest <= min(-low, high):
            return self
        return Integers.of(np.minimum(np.maximum(self.array.astype(object), low), high))

    def taken(self, at: NDArray[Any]) -> Integers:
        """Those at these positions, or those where this is true."""
        return Integers(self.array[at])

    def added_at(self, at: NDArray[np.intp], height: int) -> Integers:
        """Σ of the values with position p, for each p below `height`; 0 where there is none."""
        (values,) = arrays(self.largest * max(1, len(self)), self)
        found = np.zeros(height, dtype=values.dtype)
        np.add.at(found, at, values)
        return Integers(found)


def arrays(bound: int, *columns: Integers) -> list[Array]:
    """The columns to compute on, where no number that is made of them is larger than `bound` in size."""
    if bound <= LIMIT:
        return [np.asarray(c.array, dtype=np.int64) for c in columns]
    return [c.array.astype(object) for c in columns]


def combined(parts: Iterable[tuple[Integers, int]], constant: int, height: int) -> Integers:
    """constant + Σ factor · column, for each of `height` rows."""
    listed = [(column, factor) for column, factor in parts if factor]
    bound = abs(constant) + sum(max(1, column.largest) * abs(factor) for column, factor in listed)
    total = np.full(height, constant, dtype=np.int64 if bound <= LIMIT else object)
    for (_, factor), array in zip(listed, arrays(bound, *(c for c, _ in listed)), strict=True):
        total = total + array * factor
    return Integers(total)


def rounded(column: Integers, above: int, below: int) -> Integers:
    """column · above / below, to the nearest integers, halves away from zero. above ≥ 0, below > 0."""
    if (above, below) == (1, 1):
        return column
    (values,) = arrays(2 * max(1, column.largest) * above + 2 * below, column)
    scaled = values * above
    whole = (2 * np.abs(scaled) + below) // (2 * below)
    return Integers(np.where(scaled >= 0, whole, -whole))


def quotients(over: Integers, under: Integers | int) -> Floats:
    """over / under as the nearest floating-point numbers; infinite where there is none so large. under > 0."""
    a = over.array
    b = under.array if isinstance(under, Integers) else np.full(len(a), under, dtype=_type_of(under))
    simple = ((a >= -_EXACT) & (a <= _EXACT) & (b <= _EXACT)).astype(np.bool_)
    if simple.all():  # a quotient of floating-point numbers is rounded once
        found: Floats = a.astype(np.float64) / b.astype(np.float64)
        return found
    found = np.empty(len(a), dtype=np.float64)
    found[simple] = a[simple].astype(np.float64) / b[simple].astype(np.float64)
    pairs = zip(a[~simple].tolist(), b[~simple].tolist(), strict=True)
    found[~simple] = [_quotient(x, y) for x, y in pairs]
    return found


def outwards(over: Integers, under: int, side: int) -> Floats:
    """Floating-point numbers ≤ over / under (side -1) or ≥ (side 1): equal where there are such, else the nearest or
    the next one to it. under > 0."""
    near = quotients(over, under)
    (a,) = arrays(max(over.largest, under), over)
    b = np.full(len(a), under, dtype=a.dtype)
    shared = np.gcd(a, b)
    a, b = a // shared, b // shared
    odd = np.abs(a // np.maximum(a & -a, 1))
    exact = ((b & (b - 1)) == 0) & (b <= LIMIT) & (odd <= _EXACT)
    return np.where(exact.astype(np.bool_), near, np.nextafter(near, side * np.inf))


def _type_of(x: int) -> type:
    return np.int64 if abs(x) <= LIMIT else object


def _quotient(x: int, y: int) -> float:
    try:
        return x / y
    except OverflowError:
        return float("inf") if x > 0 else float("-inf")
