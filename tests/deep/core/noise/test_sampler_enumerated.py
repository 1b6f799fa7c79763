"""The sampler's draws on every bit string up to a length; wrong samplers are found."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from dpsql.core.noise.sampler.blocks import Blocks
from tests.core.noise.test_sampler_enumerated import (
    CASES,
    MUTANTS,
    ROUNDING,
    Case,
    Law,
    NoCrossTerm,
    Scripted,
    blocks,
    disagreement,
    enumerate_all,
    every_proposal,
    gaussian,
    laplace,
    name,
)


@pytest.mark.parametrize("case", CASES, ids=name)
def test_every_bit_string_of_a_proposal(case: Case) -> None:
    every_proposal(case)


@pytest.mark.parametrize(
    ("law", "low", "most_undecided"),
    [
        (laplace(Fraction(1, 3)), 0, Fraction(20, 100)),
        (laplace(1), 0, Fraction(8, 100)),
        (laplace(Fraction(7, 2)), 1, Fraction(36, 100)),
        (gaussian(Fraction(1, 9)), 0, Fraction(20, 100)),
        (gaussian(1), 0, Fraction(6, 100)),
        (gaussian(Fraction(7, 2)), 1, Fraction(36, 100)),
    ],
    ids=str,
)
def test_every_bit_string_of_a_draw(law: Law, low: int, most_undecided: Fraction) -> None:
    """Refused proposals and what follows them included."""
    wrong, undecided = disagreement(blocks(law, low, 3, 2), law, 14, proposal=False)
    assert wrong <= ROUNDING
    assert undecided <= most_undecided


LAWS = [laplace(Fraction(7, 2)), gaussian(Fraction(7, 2))]
# The exponent of Laplace noise has no cross term to forget.
PAIRS = [(m, law) for m in MUTANTS for law in LAWS if m is not NoCrossTerm or law.power == 2]


@pytest.mark.parametrize(("mutant", "law"), PAIRS, ids=lambda p: p.__name__ if isinstance(p, type) else str(p.power))
def test_every_bit_string_finds_mutants(mutant: type[Blocks], law: Law) -> None:
    wrong, _ = disagreement(blocks(law, 1, 4, 2, mutant), law, 15, proposal=True)
    assert wrong > Fraction(1, 2000)


@pytest.mark.parametrize("law", [laplace(1), gaussian(1)], ids=["laplace", "gaussian"])
def test_two_draws_of_one_call_share_no_bit(law: Law) -> None:
    """The joint mass of every pair is at most the product of the single masses, and all but `undecided` is there."""
    drawer = blocks(law, 0, 3, 1)
    accepted, undecided = enumerate_all(lambda source: tuple(drawer.draw(2, source)), 15)
    for pair, seen in accepted.items():
        assert isinstance(pair, tuple)
        product = law.mass(pair[0]) * law.mass(pair[1])
        assert product - undecided - ROUNDING <= seen <= product + ROUNDING
    assert undecided <= Fraction(35, 100)


def test_the_gaussian_tail_has_no_end_either() -> None:
    """a = 1/32. 1 - F(k) is about e^-((k+1)²/32)/S with S = √(8π) + ½: at 2^-12016 that is k = 515."""
    law = gaussian(1 << 110)
    drawer = Blocks(law.rate, law.power, more_bits=4000)
    assert (drawer.low_digits, drawer.step) == (53, Fraction(1, 32))
    drawn = drawer.draw(1, Scripted(12016, 1))
    expected = math.floor(math.sqrt(32 * (12016 * math.log(2) - math.log(math.sqrt(8 * math.pi) + 0.5)))) - 1
    assert abs(drawn[0] // (1 << 53) + expected) <= 1
    assert abs(drawn[0]) > 1 << 62 and drawn[0] % (1 << 53) == 0
