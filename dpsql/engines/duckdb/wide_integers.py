"""128-bit integers through numpy, which has none: two 64-bit halves, cut by the engine, put together in Python."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

# h = high·2⁶⁴ + low with 0 ≤ low < 2⁶⁴: a shift rounds down and & takes the two's complement, for negative h too.
SPLIT: Final = "CAST({0} >> 64 AS BIGINT) AS {0}_high, CAST({0} & 18446744073709551615::HUGEINT AS UBIGINT) AS {0}_low"


def rejoin(high: NDArray[np.int64], low: NDArray[np.uint64]) -> list[Any]:
    """The integers high·2⁶⁴ + low as Python ints, None where masked (NULL)."""
    missing = np.ma.getmaskarray(high)
    upper, lower = np.ma.getdata(high), np.ma.getdata(low)
    small = lower.view(np.int64)
    if bool(((upper == small >> 63) | missing).all()):  # every value fits 64 bits
        values: list[Any] = small.tolist()
    else:
        values = [(h << 64) | rest for h, rest in zip(upper.tolist(), lower.tolist(), strict=True)]
    for i in np.flatnonzero(missing).tolist():
        values[i] = None
    return values
