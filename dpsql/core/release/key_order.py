"""The order in which private group keys are released: by value, NULL last, whatever order the engine found them in."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.core.ir.expressions import LiteralValue
from dpsql.core.noise.integer_columns import Integers


def in_order(columns: Sequence[Sequence[LiteralValue]], height: int) -> NDArray[np.intp]:
    """The positions of the rows, the least row first: compared by the first column, then the next, and so on.

    A column holds values of one type, or None.
    """
    if len(columns) > 1 and len(set(columns[0])) == height and float not in map(type, columns[0]):
        columns = columns[:1]  # no two rows are equal there, as two NaN are that a set takes for two
    order = np.arange(height)
    for column in reversed(columns):
        kinds = {int} if isinstance(column, Integers) else set(map(type, column))
        if len(columns) == 1 and not kinds <= {int, float}:
            return _sorted(column)
        order = order[np.argsort(_ranks(column, kinds)[order], kind="stable")]
    return order


def _sorted(column: Sequence[Any]) -> NDArray[np.intp]:
    present = [at for at, value in enumerate(column) if value is not None]
    missing = [at for at, value in enumerate(column) if value is None] if len(present) < len(column) else []
    return np.array(sorted(present, key=column.__getitem__) + missing, dtype=np.intp)


def _ranks(column: Sequence[Any], kinds: Set[type]) -> NDArray[Any]:
    """Numbers in the order of the values, which are of these kinds."""
    if kinds == {int}:
        return Integers.of(column).array
    if kinds == {float}:
        return np.array(column, dtype=np.float64)  # NaN goes to the end
    distinct = sorted(set(column) - {None})
    rank = {value: at for at, value in enumerate([*distinct, None])}
    return np.fromiter(map(rank.__getitem__, column), np.intp, len(column))
