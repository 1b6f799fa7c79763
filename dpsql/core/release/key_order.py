"""The order in which private group keys are released: by value, NULL last, whatever order the engine found them in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.core.ir.expressions import LiteralValue
from dpsql.core.noise.integer_columns import Integers


def in_order(columns: Sequence[Sequence[LiteralValue]], height: int) -> NDArray[np.intp]:
    """The positions of the rows, the least row first: compared by the first column, then the next, and so on.

    A column holds values of one type, or None.
    """
    order = np.arange(height)
    for column in reversed(columns):
        order = order[np.argsort(_ranks(column)[order], kind="stable")]
    return order


def _ranks(column: Sequence[Any]) -> NDArray[Any]:
    """Numbers in the order of the values."""
    kinds = set(map(type, column))
    if kinds == {int}:
        return Integers.of(column).array
    if kinds == {float}:
        return np.array(column, dtype=np.float64)  # NaN goes to the end
    distinct = sorted(set(column) - {None})
    rank = dict(zip(distinct, range(len(distinct)), strict=True))
    return np.fromiter((rank.get(v, len(rank)) for v in column), np.intp, len(column))
