"""Keys put side by side: which are equal, as Python's `==` says, whoever found them.

Keys of one integer column are compared as an array; all others, and those with a NULL, one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, repeat

import numpy as np
from numpy.typing import NDArray

from dpsql.core.ir.expressions import LiteralValue

Key = tuple[LiteralValue, ...]
Places = NDArray[np.intp]


def numbered(parts: Sequence[Sequence[Key]]) -> tuple[list[Key], list[Places]]:
    """The different keys of all parts, each once, and for each part where its keys stand among them."""
    arrays = [_integers(part) for part in parts]
    found = [a for a in arrays if a is not None]
    if parts and len(found) == len(parts):
        values, at = np.unique(np.concatenate(found), return_inverse=True)
        return list(zip(values.tolist())), np.split(at, np.cumsum([len(a) for a in found])[:-1])
    distinct = dict.fromkeys(chain(*parts))
    position = dict(zip(distinct, range(len(distinct)), strict=True))
    return list(distinct), [np.fromiter(map(position.__getitem__, part), np.intp, len(part)) for part in parts]


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
