"""Columns that come through numpy, which has no 128-bit integers: the engine cuts these into two 64-bit halves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpsql.core.noise.integer_columns import Integers

# h = high·2⁶⁴ + low with 0 ≤ low < 2⁶⁴: a shift rounds down and & takes the two's complement, for negative h too.
SPLIT: Final = "CAST({0} >> 64 AS BIGINT) AS {0}_high, CAST({0} & 18446744073709551615::HUGEINT AS UBIGINT) AS {0}_low"


def column(values: NDArray[Any]) -> Sequence[Any]:
    """What numpy holds of a column, as Python's values, None where masked (NULL); integers stay as they are."""
    if values.dtype.kind in "iu" and values.dtype != np.uint64 and not np.ma.isMaskedArray(values):
        return Integers(values.astype(np.int64, copy=False))
    listed: list[Any] = values.tolist()
    return listed


def rejoin(high: NDArray[np.int64], low: NDArray[np.uint64]) -> Sequence[Any]:
    """The integers high·2⁶⁴ + low, None where masked (NULL)."""
    missing = np.ma.getmaskarray(high)
    upper, lower = np.ma.getdata(high), np.ma.getdata(low)
    small = lower.view(np.int64)
    if bool(((upper == small >> 63) | missing).all()):  # every value fits 64 bits
        if not missing.any():
            return Integers(small)
        values: list[Any] = small.tolist()
    else:
        values = [(h << 64) | rest for h, rest in zip(upper.tolist(), lower.tolist(), strict=True)]
    for i in np.flatnonzero(missing).tolist():
        values[i] = None
    return values
