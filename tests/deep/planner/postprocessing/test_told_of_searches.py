"""What is told of a search holds for all noise within its width"""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from dpsql.planner.postprocessing.searches.octaves import Octaves
from dpsql.planner.postprocessing.searches.told import beyond
from tests.planner.postprocessing.test_told_of_searches import FIVE, counted, off_by


@pytest.mark.parametrize("at_most", [None, 1_000])
def test_units_beyond_a_limit_hold_for_all_noise_within_w(at_most: int | None) -> None:
    random.seed(5)
    for _ in range(150):
        people = [
            random.choice([random.randint(1, 4), random.randint(1, 5_000)]) for _ in range(random.randint(1, 400))
        ]
        exact = counted(people, at_most)
        n = len(exact)
        w = FIVE.half_width_of_sum(n, Fraction(975, 1000))
        sums = [random.choice([-w, w, random.randint(-w, w)]) for _ in exact]
        noisy = [c + z for c, z in zip(exact, off_by(sums), strict=True)]
        search = Octaves("s", "SUM(amount)", "customer", tuple(noisy), FIVE, n, at_most=at_most)
        for k in range(n - 1):
            number, width = beyond(search, 2**k) or (0, 0)
            above = sum(person > 2**k for person in people)
            assert number - width <= above <= number + width
        assert beyond(search, at_most or 2**62) is None
