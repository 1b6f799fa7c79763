"""The sampler against its exact distribution, by running it on every bit string up to a length.

A run that stops after k bits has probability 2^-k; adding up gives the exact mass that each value has received so far.
The rest is undecided: those bit strings ask for more bits. Hence for a correct sampler
`accepted(z) ≤ true(z) ≤ accepted(z) + undecided`, with no statistics involved. The reference is the decimal module.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Hashable
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pytest

from dpsql.measure.random import BitSource, Chance, Chances, Laplace, Words
from dpsql.numbers.exact import exp_minus

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


def mass(scale: Fraction, z: int) -> Fraction:
    q = exp_of(-1 / scale)
    return (1 - q) / (1 + q) * exp_of(-abs(z) / scale)


def disagreement(law: Laplace, scale: Fraction, length: int) -> tuple[Fraction, Fraction]:
    """(largest accepted - true mass or true - accepted - undecided, over all values; undecided mass)."""
    accepted, undecided = enumerate_all(lambda source: law.draw(1, source)[0], length)
    values = {z for z in accepted if isinstance(z, int)} | set(range(-20, 21))
    over = max(accepted[z] - mass(scale, z) for z in values)
    under = max(mass(scale, z) - accepted[z] - undecided for z in values)
    return max(over, under), undecided


CHANCES = [Fraction(1, 7), Fraction(1, 1), Fraction(9, 2), Fraction(1, 1000), Fraction(30)]


@pytest.mark.parametrize("x", CHANCES, ids=str)
@pytest.mark.parametrize(("first", "second", "length"), [(3, 3, 12), (2, 1, 9), (8, 2, 14)])
def test_a_chance_is_its_binary_expansion_cut_off(x: Fraction, first: int, second: int, length: int) -> None:
    """After L bits exactly ⌊p·2^L⌋ of 2^L strings say yes and one is undecided: p is matched digit by digit."""
    table = Chances([Chance(lambda bits: exp_minus(x, bits))], first, second)
    accepted, undecided = enumerate_all(lambda source: bool(table.draw(1, source)[0, 0]), length)
    assert undecided == Fraction(1, 1 << length)
    expected = exp_of(-x) * (1 << length)
    assert accepted[True] == Fraction(expected.__floor__(), 1 << length)


SPLITS = [
    # scale, low digits, first, second, length, the undecided mass stated
    (Fraction(1, 3), 2, 2, 2, 15, Fraction(8, 100)),
    (Fraction(1), 0, 3, 3, 16, Fraction(7, 100)),
    (Fraction(1), 1, 3, 3, 18, Fraction(4, 100)),
    (Fraction(3, 2), 2, 2, 2, 17, Fraction(5, 100)),
    (Fraction(7, 2), 1, 3, 2, 16, Fraction(30, 100)),
]


@pytest.mark.parametrize(("scale", "low", "first", "second", "length", "most_undecided"), SPLITS)
def test_every_bit_string(
    scale: Fraction, low: int, first: int, second: int, length: int, most_undecided: Fraction
) -> None:
    wrong, undecided = disagreement(Laplace(scale, low, first, second), scale, length)
    assert wrong <= ROUNDING
    assert undecided <= most_undecided


class PlusMinusZero(Laplace):
    """The classic sign error: a sign times a geometric number gives zero twice."""

    def draw(self, count: int, source: BitSource) -> list[int]:
        bits = self.body.draw(count, source)
        size = self._high(count, source) * (1 << self.low_digits)
        for i in range(self.low_digits):
            size += bits[i].astype(np.int64) << i
        signed: list[int] = np.where(source.words(count, 1) != 0, -size, size).tolist()
        return signed


class NoTail(Laplace):
    """Digits without the geometric tail: finite support."""

    def _high(self, count: int, source: BitSource) -> np.ndarray:
        return np.zeros(count, np.int64)


class OffByOne(Laplace):
    """|Z| - 1 used as |Z|."""

    def draw(self, count: int, source: BitSource) -> list[int]:
        return [z - (z > 0) + (z < 0) for z in super().draw(count, source)]


class TiesAccepted(Laplace):
    """A tie at the first digits counted as a yes: one part in 2^first too many."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self.body.first += 1


@pytest.mark.parametrize("mutant", [PlusMinusZero, NoTail, OffByOne, TiesAccepted])
def test_every_bit_string_finds_mutants(mutant: type[Laplace]) -> None:
    wrong, _ = disagreement(mutant(Fraction(1), 1, 3, 3), Fraction(1), 18)
    assert wrong > Fraction(1, 1000)


def joint(law: Laplace, length: int) -> tuple[Counter[Hashable], Fraction]:
    return enumerate_all(lambda source: tuple(law.draw(2, source)), length)


def test_two_draws_of_one_call_share_no_bit() -> None:
    """The joint mass of every pair is at most the product of the single masses, and all but `undecided` is there."""
    scale = Fraction(1)
    accepted, undecided = joint(Laplace(scale, 0, 2, 1), 15)
    for (a, b), seen in accepted.items():
        assert seen <= mass(scale, a) * mass(scale, b) + ROUNDING
        assert seen >= mass(scale, a) * mass(scale, b) - undecided - ROUNDING
    assert undecided <= Fraction(36, 100)


def test_two_draws_finds_a_shared_draw() -> None:
    """Twin: the second draw repeats the first."""

    class Repeating(Laplace):
        def draw(self, count: int, source: BitSource) -> list[int]:
            return super().draw(1, source) * count

    accepted, _ = joint(Repeating(Fraction(1), 0, 2, 1), 15)
    assert any(seen > mass(Fraction(1), a) * mass(Fraction(1), b) + ROUNDING for (a, b), seen in accepted.items())


def test_the_tail_has_no_end_and_never_overflows() -> None:
    """A source of zeros enters the tail again and again: past 2^63 the draw is still the right integer."""

    class ZerosThenOnes:
        def __init__(self, rounds: int) -> None:
            self.calls, self.rounds = 0, rounds

        def words(self, count: int, bits: int) -> Words:
            self.calls += 1
            value = 0 if self.calls <= self.rounds else (1 << bits) - 1
            return np.full(count, value, np.uint8 if bits <= 8 else np.uint64)

    law = Laplace(Fraction(1 << 55))
    assert law.low_digits == 58
    # Every chance in the table starts with a digit group above 0 except the tail's, e^-8 = 0.000000000001…: its tie at
    # eight zero bits is resolved by the second call. Call 1 is the body; each tail success takes calls 2k, 2k+1.
    successes = 40
    drawn = law.draw(3, ZerosThenOnes(1 + 2 * successes))
    low = sum(1 << i for i in range(58))  # all zeros: below every digit's threshold, so every digit is 1
    assert drawn == [-(low + (successes << 58) + 1)] * 3
    assert abs(drawn[0]) > 1 << 63
