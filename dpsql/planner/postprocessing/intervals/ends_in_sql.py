"""DP_INTERVAL_LOW and DP_INTERVAL_HIGH of what a limit cuts: as of the number's interval, 0, or NULL."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpsql.core.numbers.confidence import LEVEL
from dpsql.core.release.noisy import NoisyRelease
from dpsql.core.value_classes import replace
from dpsql.frontend.aggregates.formula import formula
from dpsql.frontend.aggregates.interval_end import End
from dpsql.planner.postprocessing.intervals.derived_columns import whole_output
from dpsql.planner.postprocessing.intervals.linear import Cut, Noises
from dpsql.planner.postprocessing.planning.steps import PostProcessing


def ends_in_sql(
    post: PostProcessing, releases: Sequence[NoisyRelease], cut: Cut, place: int
) -> dict[int, Sequence[object]]:
    """Of one release: output → its values in all rows. cut: what limits cut that searches found."""
    found = dict[int, Sequence[object]]()
    noises: Noises | None = None
    for at, end in ((at, end) for (own, at), end in post.cut_ends.items() if own == place):
        told = None
        if end.told:
            noises = noises or Noises(releases, cut)
            told = _told(noises, cut, place, at)
        found[at] = told or (_nothing(releases[place]) if end.is_lost else _from_zero(releases[place], at))
    return found


def _nothing(release: NoisyRelease) -> list[float | None]:
    return [None] * len(release.keys)


def _from_zero(release: NoisyRelease, at: int) -> list[float | None]:
    """A lower end, the only one, of what is never below 0."""
    output = release.planned.measured.node.outputs[at]
    values = formula(output).values(release, output.column.type)
    return [max(0.0, float(value)) if isinstance(value, int | float) else None for value in values]


def _told(noises: Noises, cut: Cut, place: int, at: int) -> list[float | None] | None:
    """None where too little was seen of a limit."""
    release = noises.releases[place]
    node = release.planned.measured.node
    end = node.outputs[at].recipe
    assert isinstance(end, End)
    limited = [(place, i) for i in end.components if (place, i) in cut]
    if not limited or not all(each in noises.cut for each in limited):
        return None
    outputs = (*node.outputs[:at], replace(node.outputs[at], recipe=end.of), *node.outputs[at + 1 :])
    measured = replace(release.planned.measured, node=replace(node, outputs=outputs))
    number = replace(release, planned=replace(release.planned, measured=measured))
    bounds = whole_output(noises, place, at, number).bounds(1 - LEVEL)
    values = bounds.high if end.high else bounds.low
    return [None if np.isnan(value) else value for value in values.tolist()]
