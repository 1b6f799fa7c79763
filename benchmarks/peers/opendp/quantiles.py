"""OpenDP's quantile: the scores of candidates, and its noisy maximum of them, as its documentation puts them together.

Candidates have equal steps: 101 of them, as in the documentation, or, with `candidates` in the task, so many. The
scores are the same for every draw, so they are computed once.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import opendp.prelude as dp
from quantile_sets import Draw, asked, spaced, values_of
from serve import Asked, serve

dp.enable_features("contrib")


def open_task(task: dict[str, Any]) -> dict[str, Asked | str]:
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()

    def load(one: dict[str, Any]) -> Any:
        values, candidates = np.array(values_of(one)), spaced(one, task["candidates"])

        @lru_cache
        def scored(p: float) -> Any:
            score = space >> dp.t.then_quantile_score_candidates(candidates, alpha=p)
            return score, np.array(score(values), dtype=np.uint64)

        return candidates, scored

    def draw_of(held: Any, p: float, epsilon: float) -> Draw:
        candidates, scored = held
        score, scores = scored(p)

        def chosen(scale: float) -> Any:
            domains = score.output_domain, score.output_metric
            return dp.m.make_noisy_max(*domains, dp.max_divergence(), scale, negate=True)

        scale = dp.binary_search_param(lambda s: score >> chosen(s), d_in=1, d_out=epsilon, bounds=(1e-6, 1e12))
        choose = chosen(scale)
        return lambda: candidates[choose(scores)]

    return asked(task, load, draw_of)


serve(open_task, "opendp")
