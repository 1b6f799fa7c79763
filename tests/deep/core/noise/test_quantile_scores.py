"""Scores of cells, over many small groups, for every quantile."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from tests.core.measures.test_quantile import QUANTILES, moves_no_further, scores, tiny


@pytest.mark.parametrize("p", QUANTILES, ids=str)
def test_a_cell_that_the_quantile_lies_in_has_the_score_0(p: Fraction) -> None:
    for weights in tiny():
        rows = [v for v, w in enumerate(weights) for _ in range(w if w < 9 else w >> 61)]
        if rows:
            at = rows[min(len(rows) - 1, math.ceil(p * len(rows)) - 1)]
            assert scores(p, weights)[at] == 0 == min(scores(p, weights)), (weights, at)


@pytest.mark.parametrize("p", QUANTILES, ids=str)
def test_no_score_moves_further_than_is_claimed(p: Fraction) -> None:
    moves_no_further(p)
