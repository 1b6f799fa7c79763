"""What stored marginals say of numbers that queries ask for: least squares, as for a batch (`batch/estimate.py`).

Of the columns that no number of a query varies over, sums are enough: each marginal is added up over them first. So an
estimate has few terms, each of which holds the noise of several cells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dpsql.planner.batch.marginal_shares import precision, residual, volume
from dpsql.planner.batch.workload import Marginal, Number, subsets

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_LEAST = 1e-12
"""A smaller variance counts as this."""


def read_columns(numbers: Sequence[Number]) -> frozenset[int]:
    """Those that any of the numbers varies over."""
    return frozenset(column for number in numbers for column in number.columns)


def kept(marginal: Marginal, columns: frozenset[int]) -> Marginal:
    """The columns of a marginal that are left when it is added up over the others."""
    return tuple(column for column in marginal if column in columns)


def coefficients(
    number: Number, columns: frozenset[int], variances: Mapping[Marginal, float], sizes: Mapping[int, int]
) -> dict[Marginal, NDArray[np.float64]]:
    """What each cell of each marginal, added up over all but these columns, counts for in the estimate of a number.

    variances: of the noise of a cell of each marginal.
    """
    import numpy as np

    theta = {m: 1 / max(v, _LEAST) for m, v in variances.items()}
    parts = {onto: residual(number.weights, number.columns, onto) for onto in subsets(number.columns)}
    precisions = {onto: precision(onto, theta, sizes) for onto in parts}
    own, found = volume(number.columns, sizes), dict[Marginal, "NDArray[np.float64]"]()
    for marginal, t in theta.items():
        axes = kept(marginal, columns)
        whole = np.zeros(tuple(sizes[c] for c in axes))
        for onto, part in parts.items():
            if set(onto) <= set(marginal):
                rest = volume(tuple(c for c in marginal if c not in onto), sizes)
                shape = tuple(sizes[c] if c in onto else 1 for c in axes)
                whole = whole + part.reshape(shape) * (t / precisions[onto] / rest / own)
        found[marginal] = whole
    return found
