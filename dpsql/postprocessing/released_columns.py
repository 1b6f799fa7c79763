"""Released columns from noisy components, each in its SQL type."""

from __future__ import annotations

from dpsql.aggregates.formula import formula
from dpsql.core.release.noisy import NoisyRelease


def released_columns(noisy: NoisyRelease) -> list[list[object]]:
    """One list per output of the release, in the SQL type of its column."""
    return [formula(o).values(noisy, o.column.type) for o in noisy.planned.measured.node.outputs]
