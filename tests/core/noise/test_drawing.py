"""The two functions that draw: what they accept, how many they give, how their tables are kept."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpsql.core.noise import sampler
from dpsql.core.noise.sampler import discrete_gaussian, discrete_laplace
from dpsql.core.noise.sampler.blocks import BATCH, Blocks
from dpsql.core.noise.sampler.entropy import Kernel

Draw = Callable[[Fraction, int], list[int]]
both = pytest.mark.parametrize("draw", [discrete_laplace, discrete_gaussian])
TOP = 1 << 55


@pytest.mark.parametrize(
    "variance", [Fraction(0), Fraction(-1), Fraction(TOP**2 + 1), 1.0, 0.1, 3, None, "1"], ids=repr
)
def test_bad_variances(variance: Any) -> None:
    with pytest.raises(ValueError, match=r"2\^110"):
        discrete_gaussian(variance, 1)


@both
def test_a_negative_number_of_draws(draw: Draw) -> None:
    with pytest.raises(ValueError, match="n must"):
        draw(Fraction(1), -1)


@both
@pytest.mark.parametrize("size", [Fraction(5), Fraction(10**8)], ids=str)
@pytest.mark.parametrize("n", [0, 1, 2, 7, BATCH - 1, BATCH, BATCH + 1, 3 * BATCH])
def test_as_many_draws_as_asked(draw: Draw, size: Fraction, n: int) -> None:
    drawn = draw(size, n)
    assert len(drawn) == n
    assert {type(z) for z in drawn} <= {int}


@both
def test_a_tiny_scale_draws_zeros(draw: Draw) -> None:
    """P(Z ≠ 0) is below 2e^-500: seeing one would be a miracle or a bug."""
    assert draw(Fraction(1, 1000), 1000) == [0] * 1000


@both
def test_a_hopelessly_tiny_scale(draw: Draw) -> None:
    assert draw(Fraction(1, 10**400), 100) == [0] * 100


@pytest.mark.parametrize(
    "size", [Fraction(1, 3), Fraction(7), Fraction(8), Fraction(63, 2), Fraction(TOP) - Fraction(1, 3)]
)
def test_every_size_of_block(size: Fraction) -> None:
    """Blocks are an eighth to a quarter of the scale wide, or 1; both families agree."""
    for blocks in (sampler.blocks_of(1 / size, 1), sampler.blocks_of(1 / (2 * size**2), 2)):
        width = 1 << blocks.low_digits
        assert width == 1 if size < 8 else size / 8 < width <= size / 4
        assert blocks._reach > 0 or size < 8


@both
def test_the_largest_scale(draw: Draw) -> None:
    size = Fraction(TOP) if draw is discrete_laplace else Fraction(TOP**2)
    drawn = draw(size, 2000)
    assert max(map(abs, drawn)) > TOP, "at 2,000 draws P(no such) is below 1e-300"
    assert max(map(abs, drawn)) < 100 * TOP
    low = [z & 0xFFFF for z in drawn]
    assert len(set(low)) > 1500, "the lowest digits are drawn as well"


@both
def test_tables_are_kept_and_scales_are_not_mixed_up(draw: Draw) -> None:
    """Alternating scales: each draw has the spread of its own."""
    for _ in range(3):
        assert max(map(abs, draw(Fraction(1, 20), 50))) <= 60
        assert max(map(abs, draw(Fraction(10**12), 50))) > 10**4
    before = sampler.blocks_of.cache_info()
    draw(Fraction(10**12), 1)
    after = sampler.blocks_of.cache_info()
    assert (after.hits, after.misses) == (before.hits + 1, before.misses), "its tables were kept"


def test_blocks_beyond_the_table_are_drawn_all_the_same() -> None:
    """A block of one where the scale is 500: most blocks have numbers beyond what the table can hold."""
    narrow = Blocks(Fraction(1, 500), 1, 0)
    assert int(narrow.table[narrow.table != 255].max()) == 254
    drawn = np.array(narrow.draw(4000, Kernel()))
    assert int((np.abs(drawn) > 254).sum()) > 2000
    assert 420 < np.abs(drawn).mean() < 580, "ten standard errors"
