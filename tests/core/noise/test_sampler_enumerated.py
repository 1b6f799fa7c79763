"""The sampler against its exact distribution, by running it on every bit string up to a length.

A run that stops after k bits has probability 2^-k; adding up gives the exact mass that each value has received so far.
The rest is undecided: those bit strings ask for more bits. Hence for a correct sampler
`accepted(z) ≤ true(z) ≤ accepted(z) + undecided`, with no statistics involved. The reference is the decimal module.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Hashable
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
import pytest

from dpsql.core.noise.integer_columns import Integers
from dpsql.core.noise.sampler.blocks import Blocks
from dpsql.core.noise.sampler.entropy import BitSource, Kernel, Words

ROUNDING = Fraction(1, 10**60)  # far above the error of 80 decimal digits, far below any mass seen here


class OutOfBits(Exception):
    def __init__(self, wanted: int) -> None:
        self.wanted = wanted


class Tape:
    """A bit source that plays one given bit string and refuses to go on after its end."""

    def __init__(self, bits: tuple[int, ...]) -> None:
        self.bits, self.used = bits, 0

    def words(self, count: int, bits: int) -> Words:
        end = self.used + count * bits
        if end > len(self.bits):
            raise OutOfBits(end)
        taken = self.bits[self.used : end]
        self.used = end
        words = [int("".join(map(str, taken[i : i + bits])), 2) for i in range(0, count * bits, bits)]
        return np.array(words, np.uint64)


def enumerate_all(run: Callable[[BitSource], Hashable], length: int) -> tuple[Counter[Hashable], Fraction]:
    """Mass of every outcome over all bit strings of at most `length` bits, and the undecided mass."""
    accepted: Counter[Hashable] = Counter()
    undecided = Fraction(0)
    open_prefixes: list[tuple[int, ...]] = [()]
    while open_prefixes:
        prefix = open_prefixes.pop()
        tape = Tape(prefix)
        try:
            outcome = run(tape)
        except OutOfBits as more:
            if more.wanted > length:
                undecided += Fraction(1, 1 << len(prefix))
            else:
                extensions = itertools.product((0, 1), repeat=more.wanted - len(prefix))
                open_prefixes += [prefix + extension for extension in extensions]
            continue
        assert tape.used == len(prefix), "a bit was fetched and never used"
        accepted[outcome] += Fraction(1, 1 << len(prefix))
    assert sum(accepted.values()) + undecided == 1
    return accepted, undecided


def exp_of(x: Fraction) -> Fraction:
    """e^x by the decimal module, correct to 80 digits."""
    context = Context(prec=80)
    return Fraction(context.exp(context.divide(Decimal(x.numerator), Decimal(x.denominator))))


class Law(NamedTuple):
    """P(Z = z) ∝ e^(-rate·|z|^power)."""

    rate: Fraction
    power: Literal[1, 2]

    def weight(self, z: int) -> Fraction:
        return exp_of(-self.rate * abs(z) ** self.power)

    def mass(self, z: int) -> Fraction:
        return self.weight(z) / total(self)


@lru_cache
def total(law: Law) -> Fraction:
    """The sum of all weights; in closed form for Laplace."""
    if law.power == 1:
        q = law.weight(1)
        return (1 + q) / (1 - q)
    last = math.isqrt(int(200 / law.rate)) + 2  # what follows is below e^-200
    return 1 + 2 * sum(law.weight(z) for z in range(1, last))


def laplace(scale: Fraction | int) -> Law:
    return Law(1 / Fraction(scale), 1)


def gaussian(variance: Fraction | int) -> Law:
    return Law(1 / (2 * Fraction(variance)), 2)


def blocks(law: Law, low: int | None, first: int, more: int, kind: type[Blocks] = Blocks) -> Blocks:
    return kind(law.rate, law.power, low, first, first, more)


def proposed_mass(drawer: Blocks, law: Law) -> Callable[[int], Fraction]:
    """The mass with which one proposal is z and accepted: its weight over 2^(N+1) times the blocks' weights."""
    width = 1 << drawer.low_digits
    if law.power == 1:
        starts = 1 / (1 - exp_of(-law.rate * width))
    else:
        last = math.isqrt(int(200 / (law.rate * width**2))) + 2
        starts = sum((law.weight(k * width) for k in range(last)), Fraction(0))
    return lambda z: law.weight(z) / (starts * 2 * width)


def disagreement(drawer: Blocks, law: Law, length: int, *, proposal: bool) -> tuple[Fraction, Fraction]:
    """(largest accepted - true mass or true - accepted - undecided, over all values; undecided mass)."""

    def run(source: BitSource) -> Hashable:
        if not proposal:
            return drawer.draw(1, source)[0]
        value, accepted = drawer.propose(1, source)
        return int(value[0]) if accepted[0] else None

    accepted, undecided = enumerate_all(run, length)
    mass = proposed_mass(drawer, law) if proposal else law.mass
    values = {z for z in accepted if isinstance(z, int)} | set(range(-20, 21))
    over = max(accepted[z] - mass(z) for z in values)
    under = max(mass(z) - accepted[z] - undecided for z in values)
    return max(over, under), undecided


class Case(NamedTuple):
    law: Law
    low: int | None
    first: int  # bits of a first word
    more: int
    length: int
    most_undecided: Fraction


def case(law: Law, low: int | None, first: int, more: int, length: int, percent: int) -> Case:
    return Case(law, low, first, more, length, Fraction(percent, 100))


# low: N. Without places (0, and None for small scales) blocks alone decide. With places the tables of e^-x decide, or,
# where a block is wider than they reach, the exact digits do.
CASES = [
    case(laplace(Fraction(1, 3)), 0, 2, 2, 14, 1),
    case(laplace(1), 0, 3, 3, 14, 1),
    case(laplace(1), 1, 3, 2, 17, 1),
    case(laplace(Fraction(3, 2)), 2, 2, 1, 15, 1),
    case(laplace(Fraction(1, 3)), 2, 2, 2, 17, 1),
    case(laplace(Fraction(7, 2)), 1, 3, 2, 16, 1),
    case(laplace(8), None, 4, 2, 16, 3),
    case(gaussian(Fraction(1, 9)), 0, 2, 2, 14, 1),
    case(gaussian(1), None, 3, 3, 14, 1),
    case(gaussian(1), 1, 3, 2, 17, 1),
    case(gaussian(1), 2, 2, 1, 15, 1),
    case(gaussian(Fraction(7, 2)), 1, 3, 2, 16, 1),
    case(gaussian(64), None, 4, 2, 16, 3),
]


def name(c: Case) -> str:
    return f"{c.law.power}-{c.law.rate}-{c.low}-{c.first}-{c.more}"


@pytest.mark.parametrize("case", (*CASES[:3], *CASES[7:10]), ids=name)
def test_every_bit_string_of_a_proposal(case: Case) -> None:
    every_proposal(case)


def every_proposal(case: Case) -> None:
    drawer = blocks(case.law, case.low, case.first, case.more)
    wrong, undecided = disagreement(drawer, case.law, case.length, proposal=True)
    assert wrong <= ROUNDING
    assert undecided <= case.most_undecided


class ZeroTwice(Blocks):
    """The classic sign error: a sign times a size gives zero twice."""

    def propose(self, count: int, source: BitSource) -> tuple[np.ndarray, np.ndarray]:
        value, accepted = super().propose(count, source)
        return value, accepted | (value == 0)


class NoTail(Blocks):
    """The last block of the table used for all that is beyond: finite support."""

    def _settle_block(self, word: int, source: BitSource) -> int:
        return min(super()._settle_block(word, source), 1)


class SecondBlock(Blocks):
    """An off-by-one among the blocks."""

    def blocks(self, count: int, source: BitSource) -> np.ndarray:
        return super().blocks(count, source) + 1


class OffByOne(Blocks):
    """Sizes counted from one."""

    def propose(self, count: int, source: BitSource) -> tuple[np.ndarray, np.ndarray]:
        value, accepted = super().propose(count, source)
        return value + np.sign(value), accepted


class TiesAccepted(Blocks):
    """A tie at the first digits counted as a yes."""

    def _settle_accept(self, block: int, place: int, word: int, source: BitSource) -> bool:
        return super()._settle_accept(block, place, max(0, word - 1), source)


class TiesToTheLeast(Blocks):
    """A tie between blocks given to the lower one."""

    def _settle_block(self, word: int, source: BitSource) -> int:
        return max(0, super()._settle_block(word, source) - 1)


class AllAccepted(Blocks):
    """Uniform within a block."""

    def accept(self, block: np.ndarray, place: np.ndarray, source: BitSource) -> np.ndarray:
        return np.ones(block.size, np.bool_)


class NoCrossTerm(Blocks):
    """j² where (k·2^N + j)² - (k·2^N)² is meant (Gaussian)."""

    def accept(self, block: np.ndarray, place: np.ndarray, source: BitSource) -> np.ndarray:
        return super().accept(np.zeros_like(block), place, source)


class WiderByFivePercent(Blocks):
    """The scale is 5 % too large."""

    def __init__(self, rate: Fraction, power: Literal[1, 2], *rest: int) -> None:
        super().__init__(rate * Fraction(20, 21) ** power, power, *rest)


class MinusPreferred(Blocks):
    """A sign that is minus three times out of four where the place allows it."""

    def propose(self, count: int, source: BitSource) -> tuple[np.ndarray, np.ndarray]:
        value, accepted = super().propose(count, source)
        return np.where(value % 2 == 0, -np.abs(value), value), accepted


MUTANTS = [ZeroTwice, NoTail, SecondBlock, OffByOne, TiesAccepted, TiesToTheLeast, AllAccepted, NoCrossTerm]
MUTANTS += [WiderByFivePercent, MinusPreferred]


def test_two_draws_finds_a_shared_draw() -> None:
    """Twin: the second draw repeats the first."""

    class Repeating(Blocks):
        def draw(self, count: int, source: BitSource) -> Integers:
            return Integers.of([*super().draw(1, source)] * count)

    law = gaussian(1)
    drawer = blocks(law, 0, 3, 1, Repeating)
    accepted, _ = enumerate_all(lambda source: tuple(drawer.draw(2, source)), 15)
    assert any(
        seen > law.mass(pair[0]) * law.mass(pair[1]) + ROUNDING
        for pair, seen in accepted.items()
        if isinstance(pair, tuple)
    )


class Scripted:
    """Blocks read ones in the first `ones` bits, then zeros; places and signs are `place`; acceptances read zeros."""

    def __init__(self, ones: int, place: int) -> None:
        self.ones, self.place = ones, place

    def words(self, count: int, bits: int) -> Words:
        if bits == 54:
            return np.full(count, self.place, np.uint64)
        value = (1 << bits) - 1 if self.ones > 0 and bits != 32 else 0
        self.ones -= bits
        return np.full(count, value, object if bits > 64 else np.uint64)


def test_the_tail_has_no_end_and_never_overflows() -> None:
    """Far out, past 2^63, the draw is still the right integer.

    Laplace: U = 1 - 2^-400 (a little above it) and F(k) = 1 - e^-((k+1)/4) give k = ⌊400·4·ln 2⌋ = 1109 blocks of 2^53.
    """
    law = laplace(1 << 55)
    drawer = Blocks(law.rate, law.power)
    assert drawer.low_digits == 53
    drawn = drawer.draw(1, Scripted(400, (1 << 54) - 1))
    assert drawn == [-((1109 << 53) + (1 << 53) - 1)]
    assert type(drawn[0]) is int and abs(drawn[0]) > 1 << 63


@pytest.mark.parametrize("law", [laplace(1 << 55), gaussian(1 << 110)], ids=["laplace", "gaussian"])
def test_far_and_near_draws_mix(law: Law) -> None:
    """One call in which a proposal lies beyond 64 bits gives exact Python integers for all."""

    class OneFar(Blocks):
        def blocks(self, count: int, source: BitSource) -> np.ndarray:
            k = super().blocks(count, source)
            if count == 100:
                k[0] = 1 << 40
            return k

        def accept(self, block: np.ndarray, place: np.ndarray, source: BitSource) -> np.ndarray:
            return super().accept(np.minimum(block, 3), place, source) | (block > 3)

    drawn = OneFar(law.rate, law.power).draw(100, Kernel())
    assert {type(z) for z in drawn} == {int}
    assert 1 << 93 <= max(abs(z) for z in drawn) < (1 << 93) + (1 << 53)
    assert sum(abs(z) < 1 << 63 for z in drawn) == 99
