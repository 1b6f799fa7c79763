"""All aggregates: one line each."""

from __future__ import annotations

from collections.abc import Mapping

from dpsql.frontend.aggregates.aggregate import AggregateFunction
from dpsql.frontend.aggregates.avg import AVG
from dpsql.frontend.aggregates.count import COUNT, COUNT_IF
from dpsql.frontend.aggregates.covariance import COVARIANCES
from dpsql.frontend.aggregates.extremes import AT_EXTREMES, EXTREMES
from dpsql.frontend.aggregates.mode import MODE
from dpsql.frontend.aggregates.quantile import QUANTILES
from dpsql.frontend.aggregates.sum import SUM
from dpsql.frontend.aggregates.variance import VARIANCES

AGGREGATES: Mapping[str, AggregateFunction] = {
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
        *AT_EXTREMES,
    )
}
"""Name → aggregate, in the order in which they are listed to people."""
