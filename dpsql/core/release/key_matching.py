"""Keys put side by side: which are equal, as Python's `==` says, whoever found them.

Integers are compared as arrays, and looked up in a table where they lie close together; all others, and columns with a
NULL, one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, repeat
from operator import itemgetter
from typing import overload

import numpy as np
from numpy.typing import NDArray

from dpsql.core.ir.expressions import LiteralValue
from dpsql.core.noise.integer_columns import Integers
from dpsql.core.values.key_lists import LazyKeys

Key = tuple[LiteralValue, ...]
Places = NDArray[np.intp]
Values = Sequence[LiteralValue]
SPREAD = 4
"""Integers that lie in a range of this many times their number are looked up in a table of the range."""


class KeyColumns(Sequence[Key]):
    """Keys column by column. Immutable; each is made where it is asked for. It does not show them: they may be private.

    columns: as many values each as there are keys.
    """

    __slots__ = ("columns", "height")

    def __init__(self, columns: Sequence[Values], height: int) -> None:
        self.columns = columns
        self.height = height

    def __len__(self) -> int:
        return self.height

    @overload
    def __getitem__(self, at: int) -> Key: ...
    @overload
    def __getitem__(self, at: slice) -> KeyColumns: ...
    def __getitem__(self, at: int | slice) -> Key | KeyColumns:
        if isinstance(at, slice):
            return KeyColumns([column[at] for column in self.columns], len(range(*at.indices(self.height))))
        if not -self.height <= at < self.height:
            raise IndexError(at)
        return tuple(column[at] for column in self.columns)

    def __iter__(self) -> Iterator[Key]:
        return zip(*self.columns, strict=True) if self.columns else repeat((), self.height)

    def __repr__(self) -> str:
        return f"<{len(self)} keys>"

    def taken(self, at: NDArray[np.intp] | NDArray[np.bool_]) -> KeyColumns:
        """Those at these positions, or those where this is true."""
        chosen = np.flatnonzero(at) if at.dtype == np.bool_ else at.astype(np.intp, copy=False)
        return KeyColumns([taken(column, chosen) for column in self.columns], len(chosen))


def columns_of(keys: Sequence[Key], width: int) -> Sequence[Values]:
    """Keys of this many columns column by column."""
    if isinstance(keys, KeyColumns):
        return keys.columns
    if isinstance(keys, LazyKeys) and (integers := _integers(keys)) is not None:
        return [Integers(integers)]
    return [list(map(itemgetter(i), keys)) for i in range(width)]


def taken(column: Values, at: NDArray[np.intp]) -> Values:
    """The values at these positions."""
    return column.taken(at) if isinstance(column, Integers) else [column[i] for i in at.tolist()]


def numbered(parts: Sequence[Sequence[Values]], heights: Sequence[int]) -> tuple[KeyColumns, list[Places]]:
    """The different keys of all parts, each once, and for each part where its keys stand among them.

    parts: the columns of each part's keys, equally many. heights: how many keys each part has.
    """
    whole = [_joined(columns) for columns in zip(*parts, strict=True)]
    height = sum(heights)
    at, different = np.zeros(height, dtype=np.intp), min(1, height)
    for column in whole:
        if different == height > 1:  # nothing is left that could be equal
            break
        codes, count = _codes(column)
        if different <= 1:
            at, different = codes, count
        else:
            combined, at = np.unique(at * count + codes, return_inverse=True)
            different = len(combined)
    first = np.empty(different, dtype=np.intp)
    first[at[::-1]] = np.arange(height - 1, -1, -1)  # of each key its first place: what is written last stays
    keys = KeyColumns([taken(column, first) for column in whole], different)
    return keys, np.split(at, np.cumsum(heights)[:-1])[: len(parts)]


def _joined(columns: Sequence[Values]) -> Values:
    """All parts of one column, one after the other."""
    integers = [column for column in columns if isinstance(column, Integers)]
    return Integers.joined(integers) if len(integers) == len(columns) else list(chain(*columns))


def _codes(column: Values) -> tuple[Places, int]:
    """Equal values have one number, counted from 0; how many there are."""
    if isinstance(column, Integers):
        close = _range(column.array)
        if close is not None:
            least, width = close
            there = np.zeros(width, dtype=np.bool_)
            there[column.array - least] = True
            numbers = np.cumsum(there) - 1
            return numbers[column.array - least], int(numbers[-1]) + 1
        values, codes = np.unique(column.array, return_inverse=True)
        return codes, len(values)
    distinct = dict.fromkeys(column)
    if len(distinct) == len(column):
        return np.arange(len(column)), len(column)
    position = dict(zip(distinct, range(len(distinct)), strict=True))
    return np.fromiter(map(position.__getitem__, column), np.intp, len(column)), len(position)


def _range(values: NDArray[np.int64]) -> tuple[int, int] | None:
    """The least of them and how many integers lie from it to the largest, if these are not many more than they are."""
    if not len(values) or values.dtype != np.int64:
        return None
    least, largest = int(values.min()), int(values.max())
    width = largest - least + 1
    return (least, width) if width <= SPREAD * len(values) else None


def places(keys: Sequence[Key], asked: Sequence[Key]) -> Places:
    """For each key that is asked for its place among `keys`, which are different ones; -1 where it is not there."""
    own, wanted = _integers(keys), _integers(asked)
    if own is None or wanted is None or not len(own):
        position = dict(zip(keys, range(len(keys)), strict=True))
        return np.fromiter(map(position.get, asked, repeat(-1)), np.intp, len(asked))
    close = _range(own)
    if close is not None:
        least, width = close
        place = np.full(width + 1, -1, dtype=np.intp)
        place[own - least] = np.arange(len(own))
        inside = (wanted >= least) & (wanted < least + width)
        found: Places = place[np.where(inside, wanted - least, width)]  # at the end stands the -1 of all others
        return found
    order = np.argsort(own, kind="stable")
    nearest = order[np.minimum(np.searchsorted(own, wanted, sorter=order), len(own) - 1)]
    return np.where(own[nearest] == wanted, nearest, -1)


def _integers(keys: Sequence[Key]) -> NDArray[np.int64] | None:
    """The keys of one column as an array; None unless all are integers of 64 bits, and there are some."""
    if isinstance(keys, KeyColumns) and len(keys.columns) == 1 and isinstance(keys.columns[0], Integers):
        array = keys.columns[0].array
        return array if len(array) and array.dtype == np.int64 else None
    if not isinstance(keys, LazyKeys):
        return _as_array(keys)
    if "integers" not in keys.worked_out:  # a plan's list is asked for at every run
        made = keys.worked_out["integers"] = _as_array(keys)
        if made is not None:
            made.flags.writeable = False  # frames that users hold may share it
    found: NDArray[np.int64] | None = keys.worked_out["integers"]
    return found


def _as_array(keys: Sequence[Key]) -> NDArray[np.int64] | None:
    if not keys or len(keys[0]) != 1:
        return None
    values = [value for (value,) in keys]
    if set(map(type, values)) != {int}:
        return None
    try:
        return np.array(values, dtype=np.int64)
    except OverflowError:
        return None
