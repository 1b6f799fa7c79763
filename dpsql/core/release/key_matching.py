"""Keys put side by side: which are equal, as Python's `==` says, whoever found them.

Integers are compared as arrays; all others, and columns with a NULL, one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, repeat

import numpy as np
from numpy.typing import NDArray

from dpsql.core.ir.expressions import LiteralValue
from dpsql.core.noise.integer_columns import Integers

Key = tuple[LiteralValue, ...]
Places = NDArray[np.intp]
Values = Sequence[LiteralValue]


def numbered(parts: Sequence[Sequence[Values]], heights: Sequence[int]) -> tuple[list[Key], list[Places]]:
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
    held = [c.taken(first) if isinstance(c, Integers) else [c[i] for i in first.tolist()] for c in whole]
    keys: list[Key] = list(zip(*held, strict=True)) if held else [()] * different
    return keys, np.split(at, np.cumsum(heights)[:-1])[: len(parts)]


def _joined(columns: Sequence[Values]) -> Values:
    """All parts of one column, one after the other."""
    integers = [column for column in columns if isinstance(column, Integers)]
    return Integers.joined(integers) if len(integers) == len(columns) else list(chain(*columns))


def _codes(column: Values) -> tuple[Places, int]:
    """Equal values have one number, counted from 0; how many there are."""
    if isinstance(column, Integers):
        values, codes = np.unique(column.array, return_inverse=True)
        return codes, len(values)
    distinct = dict.fromkeys(column)
    if len(distinct) == len(column):
        return np.arange(len(column)), len(column)
    position = dict(zip(distinct, range(len(distinct)), strict=True))
    return np.fromiter(map(position.__getitem__, column), np.intp, len(column)), len(position)


def places(keys: Sequence[Key], asked: Sequence[Key]) -> Places:
    """For each key that is asked for its place among `keys`, which are different ones; -1 where it is not there."""
    own, wanted = _integers(keys), _integers(asked)
    if own is None or wanted is None or not len(own):
        position = dict(zip(keys, range(len(keys)), strict=True))
        return np.fromiter(map(position.get, asked, repeat(-1)), np.intp, len(asked))
    order = np.argsort(own, kind="stable")
    nearest = order[np.minimum(np.searchsorted(own, wanted, sorter=order), len(own) - 1)]
    return np.where(own[nearest] == wanted, nearest, -1)


def _integers(keys: Sequence[Key]) -> NDArray[np.int64] | None:
    """The keys of one column as an array; None unless all are integers of 64 bits, and there are some."""
    if not keys or len(keys[0]) != 1:
        return None
    values = [value for (value,) in keys]
    if set(map(type, values)) != {int}:
        return None
    try:
        return np.array(values, dtype=np.int64)
    except OverflowError:
        return None
