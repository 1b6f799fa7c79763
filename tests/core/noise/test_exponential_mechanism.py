"""Choices of the exponential mechanism against their exact distribution.

With few digits and few cells every bit string of a draw is run, as in test_sampler_enumerated: the mass of every cell
is the exact one but for strings that ask for more bits. With all digits the decisions next to each boundary are run.
"""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Sequence
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.core.noise.sampler import choose, exponential_mechanism
from dpsql.core.noise.sampler.entropy import BitSource
from dpsql.core.noise.sampler.exponential_function import exp_digits
from dpsql.core.noise.sampler.exponential_mechanism import CellChoice, Powers
from tests.core.noise.test_sampler_enumerated import ROUNDING, OutOfBits, Tape, enumerate_all

CONTEXT = Context(prec=130)
HAIR = Fraction(1, 10**60)  # far above the error of 130 digits of numbers below 2^160
HALF, THIRD = Fraction(1, 2), Fraction(1, 3)


def exp_of(x: Fraction) -> Fraction:
    """e^-x to 130 digits; 0 for x beyond two millions."""
    return Fraction(CONTEXT.exp(CONTEXT.divide(Decimal(-x.numerator), Decimal(x.denominator))))


# --- the bounds ---


def excess(powers: Powers, s: int) -> Fraction:
    """U - 2^digits·e^(-eta·s)"""
    return powers.bounds([s], 0)[0] - exp_of(powers.eta * s) * (1 << powers.digits)


LONG = st.integers(1, 2**100)
ETAS = st.builds(Fraction, LONG, LONG)


@given(ETAS, st.integers(0, 2**80), st.integers(0, 120 * 2**20))
def test_bounds_are_bounds_and_tight(eta: Fraction, any_score: int, millionths: int) -> None:
    powers = Powers(eta)
    for s in (any_score, int(Fraction(millionths, 2**20) / eta)):  # one of any size, one that weighs something
        assert -HAIR <= excess(powers, s) < 1 << 20
        if eta * s <= 30:
            assert excess(powers, s) < exp_of(eta * s) * (1 << powers.digits) * Fraction(1, 1 << 90)


@pytest.mark.parametrize(
    "eta", [Fraction(1, 10**30), Fraction(1, 997), THIRD, Fraction(5), Fraction(111), Fraction(10**9)]
)
def test_bounds_next_to_where_they_end(eta: Fraction) -> None:
    """Up to there tables decide, from there on U is 1, which is no lower than the truth."""
    powers = Powers(eta)
    for s in range(max(1, powers.far - 3), powers.far + 3):
        assert excess(powers, s) >= 0
        assert (powers.bounds([s], 0) == [1]) or s < powers.far
    assert powers.bounds([0], 0) == [1 << powers.digits]


def test_bounds_without_a_margin() -> None:
    """With few digits every rounding shows: of the ratio, of the entries, of the products."""
    least = Fraction(1)
    for digits, group in itertools.product(range(3, 11), (2, 4)):
        for eta in [Fraction(n, 24) for n in range(1, 40)]:
            powers = Powers(eta, digits, group)
            least = min(least, *(excess(powers, s) for s in range(1, powers.far + 2)))
    assert 0 <= least < Fraction(1, 10)


def test_threads_share_the_tables() -> None:
    """Whichever makes a table, there is one of each."""
    scores = [i * (1 << 47) // 5000 for i in range(5000)]
    expected = Powers(Fraction(1, 1 << 41)).bounds(scores, 0)
    for _ in range(5):
        powers, gate = Powers(Fraction(1, 1 << 41)), threading.Barrier(4)
        found: list[list[int]] = []

        def work(powers: Powers = powers, gate: threading.Barrier = gate, found: list[list[int]] = found) -> None:
            gate.wait()
            found.append(powers.bounds(scores, 0))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [expected] * 4
        assert len(powers._tables) == 5


# --- every bit string ---


class Case(NamedTuple):
    choice: CellChoice
    length: int
    most_undecided: Fraction


def case(counts: list[int], scores: list[int], eta: Fraction, digits: int, percent: int) -> Case:
    return Case(CellChoice(counts, scores, Powers(eta, digits, 1, 2)), 15, Fraction(percent, 100))


CASES = [
    case([2, 1, 3], [7, 4, 5], HALF, 3, 1),
    case([1, 1], [0, 1], Fraction(1), 2, 1),
    case([1, 5, 1, 2], [-3, 0, -2, -3], Fraction(7, 10), 2, 1),
    case([1, 3, 2], [0, 9, 2], THIRD, 4, 1),
    case([3, 1], [10**30, 10**30 + 3 * 10**29], Fraction(1, 10**30), 3, 1),
    case([1, 6], [0, 40], Fraction(1, 20), 1, 1),
    case([1, 2], [2, 2], Fraction(10**9), 0, 1),
    case([2, 1, 1, 3], [9, 0, 12, 10], THIRD, 1, 1),
]


@pytest.fixture(autouse=True)
def _digits_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The digits of e^-x are a function of x and their number: computed once each here."""
    monkeypatch.setattr(exponential_mechanism, "exp_digits", lru_cache(exp_digits))


def disagreement(case: Case, *, proposal: bool, kind: type[CellChoice] = CellChoice) -> tuple[Fraction, Fraction]:
    """(how far the mass of some cell lies outside of what the bit strings allow; the undecided mass)."""
    powers = case.choice.powers
    weights = [exp_of(powers.eta * (s - case.choice.least)) for s in case.choice.scores]
    choice = kind(case.choice.counts, case.choice.scores, powers)
    whole = sum((c * w for c, w in zip(choice.counts, weights, strict=True)), Fraction(0))
    if proposal:  # a word holds a cell at 2^digits·e^-x of 2^width places
        whole = Fraction(1 << choice.width, 1 << powers.digits)
    accepted, undecided = enumerate_all(choice.propose if proposal else choice.draw, case.length)
    cells = {(run, place): weights[run] / whole for run, count in enumerate(choice.counts) for place in range(count)}
    assert set(accepted) <= {None, *cells}
    wrong = (max(accepted[cell] - mass, mass - accepted[cell] - undecided) for cell, mass in cells.items())
    return max(wrong), undecided


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.choice.counts}-{c.choice.scores}-{c.choice.powers.eta}")
def test_every_bit_string_of_a_proposal(case: Case) -> None:
    wrong, undecided = disagreement(case, proposal=True)
    assert wrong <= ROUNDING
    assert undecided <= case.most_undecided


def test_every_bit_string_of_a_draw() -> None:
    """Refused proposals and what follows them included."""
    wrong, undecided = disagreement(CASES[1], proposal=False)
    assert wrong <= ROUNDING
    assert undecided <= Fraction(2, 100)


class AllAccepted(CellChoice):
    """U where e^-x is meant."""

    def accept(self, run: int, rest: int, source: BitSource) -> bool:
        return True


class TiesAccepted(CellChoice):
    """The digits of e^-x rounded up."""

    def accept(self, run: int, rest: int, source: BitSource) -> bool:
        return super().accept(run, max(0, rest - 1), source)


class TiesRefused(CellChoice):
    """The digits of e^-x rounded down."""

    def accept(self, run: int, rest: int, source: BitSource) -> bool:
        return super().accept(run, rest + (self.scores[run] > self.least), source)


class LowBounds(CellChoice):
    """Bounds that are none."""

    def __init__(self, counts: Sequence[int], scores: Sequence[int], powers: Powers) -> None:
        super().__init__(counts, scores, powers)
        self.bounds = [max(1, u - 2) for u in self.bounds]
        self.ends = list(itertools.accumulate(c * u for c, u in zip(counts, self.bounds, strict=True)))


class Flatter(CellChoice):
    """A tenth less of eta."""

    def __init__(self, counts: Sequence[int], scores: Sequence[int], powers: Powers) -> None:
        super().__init__(counts, scores, Powers(powers.eta * Fraction(9, 10), powers.digits, powers.group, powers.more))


class FirstCell(CellChoice):
    """Cells of a run that are not alike."""

    def propose(self, source: BitSource) -> tuple[int, int] | None:
        cell = super().propose(source)
        return cell and (cell[0], cell[1] // 2 * 2)


@pytest.mark.parametrize("kind", [AllAccepted, TiesAccepted, TiesRefused, LowBounds, Flatter, FirstCell])
def test_every_bit_string_finds_mutants(kind: type[CellChoice]) -> None:
    assert disagreement(CASES[0], proposal=True, kind=kind)[0] > Fraction(1, 1000)


# --- all digits ---


def bits_of(*words: tuple[int, int]) -> tuple[int, ...]:
    """The bits of (number, how many bits) one after the other."""
    return tuple(int(bit) for number, bits in words for bit in f"{number:0{bits}b}")


@pytest.mark.parametrize("eta", [Fraction(1, 10**20 + 1), Fraction(3, 1 << 40), THIRD, Fraction(1, 2)])
@pytest.mark.parametrize("run", [1, 2, 3])
def test_decisions_next_to_the_boundaries(eta: Fraction, run: int) -> None:
    """Below the digits of e^-x a cell is accepted, above refused, and at them further digits decide likewise."""
    choice = CellChoice([3, 1 << 62, 5, 1], [4, 4 + int(2 / eta), 4 + int(50 / eta), 4 + int(90 / eta)], Powers(eta))
    x, place = eta * (choice.scores[run] - 4), choice.counts[run] // 3
    part = choice.ends[run - 1] + place * choice.bounds[run]
    digits, more = exp_digits(x, 160), exp_digits(x, 224) % (1 << 64)

    def proposed(rest: int, *tail: int) -> tuple[int, int] | None:
        assert 0 <= rest < choice.bounds[run]
        return choice.propose(Tape(bits_of((part + rest, choice.width), *((word, 64) for word in tail))))

    assert proposed(0) == proposed(digits - 1) == proposed(digits, more - 1) == (run, place)
    assert proposed(digits, more + 1) is None
    assert {proposed(rest) for rest in (digits + 1, choice.bounds[run] - 1) if digits < rest < choice.bounds[run]} <= {
        None
    }
    with pytest.raises(OutOfBits):
        proposed(digits, more)


def test_what_weighs_less_than_a_digit() -> None:
    """U = 1 and e^-x begins with 160 zeros and more: V decides alone."""
    choice = CellChoice([1, 1], [0, 1], Powers(Fraction(200)))
    more = exp_digits(Fraction(200), 352)  # 192 digits after the first 160
    assert more > 0 == exp_digits(Fraction(200), 224)
    for word, outcome in ((more - 1, (1, 0)), (more + 1, None), (1 << 191, None)):
        words = (choice.ends[0], choice.width), (word >> 128, 64), (word >> 64 & (1 << 64) - 1, 64)
        try:
            found = choice.propose(Tape(bits_of(*words)))
        except OutOfBits:
            found = choice.propose(Tape(bits_of(*words, (word & (1 << 64) - 1, 64))))
        assert found == outcome


@pytest.mark.parametrize("shift", [1, -1, 10**30, -(10**30), 1 << 80])
def test_a_constant_added_to_all_scores_changes_nothing(shift: int) -> None:
    counts, scores, powers = [1, 2, 3, 10**6, 1], [0, 5, 9, 5, 1000], Powers(THIRD)
    choice, moved = CellChoice(counts, scores, powers), CellChoice(counts, [s + shift for s in scores], powers)
    assert (choice.bounds, choice.ends) == (moved.bounds, moved.ends)
    made = random.Random(0)  # the same strings of bits each time
    for _ in range(200):
        bits = tuple(made.choices((0, 1), k=2000))
        assert choice.draw(Tape(bits)) == moved.draw(Tape(bits))


# --- samples ---


# --- far ends ---

NEAR = 1 << 61  # half of the cells of a run


def test_a_run_of_all_cells_there_are() -> None:
    """Places are uniform over 2^62: of 60, less than half and more than half occur but for a probability of 2^-59."""
    drawn = [choose([1 << 62], [12345], Fraction(1, 3)) for _ in range(60)]
    assert {run for run, _ in drawn} == {0} and all(0 <= place < 1 << 62 for _, place in drawn)
    assert min(place for _, place in drawn) < NEAR <= max(place for _, place in drawn)
    assert len({place for _, place in drawn}) == 60  # fails with a probability below 2^-51


def test_one_cell() -> None:
    assert choose([1], [1 << 80], Fraction(7, 3)) == (0, 0)


def test_equal_scores() -> None:
    """Each of four cells is missing from 100 draws with a probability of (3/4)^100 < 1e-12."""
    drawn = {choose([1, 2, 1], [5, 5, 5], Fraction(10**30, 7)) for _ in range(100)}
    assert drawn == {(0, 0), (1, 0), (1, 1), (2, 0)}


def test_a_huge_eta_takes_the_least_score() -> None:
    """2^62 cells of one more weigh e^-(2^90) each."""
    assert {choose([1 << 62, 1, 1 << 62], [1, 0, 1 << 80], Fraction(1 << 90)) for _ in range(50)} == {(1, 0)}


def test_a_tiny_eta_takes_any() -> None:
    """e^-(2^-19) apart: two thirds of the cells; a false alarm has a probability below 2·(2/3)^100 < 1e-17."""
    drawn = {choose([1, 2], [0, 1 << 80], Fraction(1, 1 << 99))[0] for _ in range(100)}
    assert drawn == {0, 1}


def test_far_runs_are_not_lost() -> None:
    """A run of 2^62 cells at e^-43 each has about 2^62·2^-62 of the weight of the one that is best."""
    drawn = {choose([1, 1 << 62], [0, 43 << 70], Fraction(1, 1 << 70))[0] for _ in range(100)}
    assert drawn == {0, 1}  # the shares are .5 and .5 but for a tenth


@pytest.mark.parametrize(
    ("counts", "scores"), [([], []), ([1], []), ([1, 1], [0]), ([1], [0, 1]), ([0, 1], [0, 0]), ([1, -1], [0, 0])]
)
def test_runs_that_are_none(counts: list[int], scores: list[int]) -> None:
    with pytest.raises(ValueError, match="at least one"):
        choose(counts, scores, HALF)


@pytest.mark.parametrize("eta", [Fraction(0), Fraction(-1), 1, 0.5, None, "1"], ids=repr)
def test_an_eta_that_is_none(eta: object) -> None:
    """Also where the tables of an equal number are there."""
    assert choose([1], [0], HALF) == choose([1], [0], Fraction(1)) == (0, 0)
    with pytest.raises(ValueError, match="eta"):
        choose([1], [0], eta)  # type: ignore[arg-type]
