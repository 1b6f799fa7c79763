"""How wide the intervals of consistent totals will be, before anything is drawn: from public keys and planned noise."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from dpsql.core.ir.nodes import key_sources
from dpsql.core.noise.integer_columns import Integers
from dpsql.core.release.noisy import NoisyRelease, public_keys
from dpsql.core.release.planned import PlannedRelease
from dpsql.planner.postprocessing.consistency.totals import Totals, reconciled
from dpsql.planner.postprocessing.intervals.derived_columns import whole_output
from dpsql.planner.postprocessing.intervals.linear import Noises

Widths = dict[tuple[int, int], float]


def expected_widths(totals: Totals, releases: Sequence[PlannedRelease], level: Fraction) -> Widths:
    """(release, output) → the largest half-width of its numbers, before they are made whole; no output but sums."""
    noisy = [_zeros(release, public=place in totals.places) for place, release in enumerate(releases)]
    consistent, noises = reconciled((totals,), noisy), Noises(noisy)
    found: Widths = {}
    for place in totals.places:
        node = noisy[place].planned.measured.node
        for at, output in enumerate(node.outputs):
            if output.recipe.terms(node.components) is None:
                continue
            bounds = whole_output(noises, place, at, noisy[place], consistent).bounds(1 - level)
            found[place, at] = float(np.max((bounds.high - bounds.low) / 2, initial=0))
    return found


def _zeros(planned: PlannedRelease, *, public: bool) -> NoisyRelease:
    node = planned.measured.node
    keys = tuple(public_keys(key_sources(node) or (), len(node.keys))) if public else ()
    return NoisyRelease(planned, keys, tuple(Integers.zeros(len(keys)) for _ in node.components))
