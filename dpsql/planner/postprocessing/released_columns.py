"""Released columns from noisy components, each in its SQL type."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from dpsql.core.ir.recipes import Output
from dpsql.core.release.noisy import NoisyRelease
from dpsql.frontend.aggregates.formula import formula


def released_columns(
    noisy: NoisyRelease, drawn: NoisyRelease | None = None, lost: Collection[int] = ()
) -> list[Sequence[object]]:
    """A column for each output of the release, in the SQL type of its column. lost: outputs that are NULL.

    drawn: the same as it was drawn, where totals were made the sums of their parts: what is no sum is made of that.
    """
    node = noisy.planned.measured.node

    def source(output: Output) -> NoisyRelease:
        return noisy if drawn is None or output.recipe.terms(node.components) is not None else drawn

    nothing = [None] * len(noisy.keys)
    return [nothing if at in lost else formula(o).values(source(o), o.column.type) for at, o in enumerate(node.outputs)]
