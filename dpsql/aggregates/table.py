"""All aggregates: one line each."""

from __future__ import annotations

from collections.abc import Mapping

from dpsql.aggregates.aggregate import Aggregate
from dpsql.aggregates.avg import AVG
from dpsql.aggregates.count import COUNT, COUNT_IF
from dpsql.aggregates.covariance import COVARIANCES
from dpsql.aggregates.extremes import EXTREMES
from dpsql.aggregates.mode import MODE
from dpsql.aggregates.quantile import QUANTILES
from dpsql.aggregates.sum import SUM
from dpsql.aggregates.variance import VARIANCES

AGGREGATES: Mapping[str, Aggregate] = {
    aggregate.name: aggregate
    for aggregate in (
        COUNT,
        SUM,
        AVG,
        *VARIANCES,
        *COVARIANCES,
        COUNT_IF,
        *QUANTILES,
        MODE,
        *EXTREMES,
    )
}
"""Name → aggregate, in the order in which they are listed to people."""
