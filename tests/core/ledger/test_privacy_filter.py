"""The ledger as a filter: with mechanisms chosen after each answer, the promised loss of all of them together holds.

Every strategy of an adversary who picks the next mechanism from a menu, as long as the real book admits it, is
enumerated, and the worst one's exact loss compared with the cap. The twin is a filter by numerical composition, for
which the exact counter-example is here, too.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations

import pytest

from dpsql.core.ledger.accountant import Accountant, cost
from dpsql.core.ledger.ledger import Caps, Entry
from dpsql.core.ledger.privacy_filter import Book, settle
from dpsql.core.privacy_loss import PrivacyLoss, exact, rho_to_delta, rho_to_epsilon
from dpsql.diagnostics.errors import BudgetExceeded

F = Fraction
Outcomes = tuple[tuple[float, float], ...]
"""The probability of each outcome with the person in the data, and without."""


@dataclass(frozen=True)
class Mechanism:
    outcomes: Outcomes
    loss: PrivacyLoss

    @property
    def turned(self) -> Mechanism:
        return Mechanism(tuple((q, p) for p, q in self.outcomes), self.loss)


def response(epsilon: str) -> Mechanism:
    """Randomized response: the exact worst case of ε."""
    e = exact(epsilon)
    yes = 1 / (1 + math.exp(-float(e)))
    return Mechanism(((yes, 1 - yes), (1 - yes, yes)), PrivacyLoss(e))


def reveal(delta: Fraction) -> Mechanism:
    """Tells everything with probability δ, else nothing: (0, δ)."""
    d = float(delta)
    return Mechanism(((d, 0.0), (0.0, d), (1 - d, 1 - d)), PrivacyLoss(delta=delta))


def worst(
    admitted: Callable[[tuple[Mechanism, ...]], bool],
    menu: tuple[Mechanism, ...],
    leaf: Callable[[float, float], float],
    depth: int,
) -> float:
    """The largest sum over transcripts of leaf(P, Q) that a strategy can reach with admitted mechanisms."""

    def value(used: tuple[Mechanism, ...], p: float, q: float) -> float:
        best = leaf(p, q)
        if len(used) < depth and (p or q):
            for mechanism in menu:
                now = (*used, mechanism)
                if admitted(now):
                    best = max(best, sum(value(now, p * a, q * b) for a, b in mechanism.outcomes))
        return best

    return value((), 1.0, 1.0)


def by_book(accountant: Accountant, cap: PrivacyLoss) -> Callable[[tuple[Mechanism, ...]], bool]:
    """What the book admits: the answer depends on the charges alone, so it is remembered by them."""
    known: dict[tuple[PrivacyLoss, ...], bool] = {}

    def admitted(used: tuple[Mechanism, ...]) -> bool:
        charges = tuple(cost(accountant, [m.loss]) for m in used)
        if charges not in known:
            book, caps = Book(accountant), Caps(total={"person": cap})
            known[charges] = True
            for at, charge in enumerate(charges):
                entry = settle(Entry(str(at), "ana", {"person": charge}, "p", "q"), accountant)
                try:
                    book.check(entry, caps)
                except BudgetExceeded:
                    known[charges] = False
                    break
                book.add(entry)
        return known[charges]

    return admitted


def hockey_stick(epsilon: float) -> Callable[[float, float], float]:
    return lambda p, q: max(0.0, p - math.exp(epsilon) * q)


def test_sums_of_epsilon_alone_bound_every_adaptive_strategy() -> None:
    menu = (response("0.25"), response("0.5"), response("1"))
    admitted = by_book("pure_dp", PrivacyLoss(F(5, 4)))
    assert worst(admitted, menu, hockey_stick(1.25), 5) <= 1e-12
    assert worst(admitted, menu, hockey_stick(1.24), 5) > 1e-4


def test_numerical_composition_is_no_filter_and_the_ledger_is() -> None:
    """Randomized response of 0.5, then, chosen by its outcome, one of 1 or a rare full disclosure.

    Composed in advance, either branch has δ(1.2) = 0.11794. Chosen by the outcome, δ(1.2) is 0.16247: a filter that
    admits whatever keeps the composed curve below the cap would promise what is false.
    """
    first, other = response("0.5"), response("1")
    rare = reveal(F(11794, 100000))
    target = hockey_stick(1.2)

    def composed(*used: Mechanism) -> float:
        transcripts = [(1.0, 1.0)]
        for mechanism in used:
            transcripts = [(p * a, q * b) for p, q in transcripts for a, b in mechanism.outcomes]
        return sum(target(p, q) for p, q in transcripts)

    in_advance = [max(composed(first, x), composed(first.turned, x.turned)) for x in (other, rare)]
    assert in_advance == pytest.approx([0.11794, 0.11794], abs=5e-6)
    delta = F(11795, 100000)
    numerical = worst(lambda used: composed(*used) <= float(delta), (first, other, rare), target, 2)
    assert numerical == pytest.approx(0.16247, abs=5e-6)
    assert numerical > float(delta)
    ledger = by_book("approx_dp", PrivacyLoss(F(6, 5), delta))
    assert not ledger((first, other))
    assert worst(ledger, (first, other, rare), target, 3) <= float(delta)


@pytest.mark.parametrize("accountant", ["pure_dp", "approx_dp", "zcdp"])
def test_totals_do_not_depend_on_the_order(accountant: Accountant) -> None:
    dice = random.Random(7)
    kinds: Mapping[str, Callable[[], PrivacyLoss]] = {
        "pure_dp": lambda: PrivacyLoss(F(dice.randrange(1, 99), dice.randrange(1, 10**9))),
        "approx_dp": lambda: PrivacyLoss(F(dice.randrange(99), 7), F(dice.randrange(99), 10**12 + 39)),
        "zcdp": lambda: PrivacyLoss(rho=F(dice.randrange(99), 10**15 + 37), delta=F(1, dice.randrange(2, 10**9))),
    }
    entries = [settle(Entry(str(i), "ana", {"person": kinds[accountant]()}, "p", "q"), accountant) for i in range(5)]
    totals = set()
    for order in permutations(entries):
        book = Book(accountant)
        for entry in order:
            book.add(entry)
        totals.add(book.spent("person"))
    assert len(totals) == 1


# Conversions ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", ["1e-3", "1e-6", "1e-9"])
@pytest.mark.parametrize("rho", ["0.0001", "0.01", "0.125", "0.5", "2", "20"])
def test_conversions_agree_with_opendp(rho: str, delta: str) -> None:
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    gaussian = dp.m.make_gaussian(*space, scale=math.sqrt(1 / (2 * float(rho))))
    curve = dp.c.make_zCDP_to_approxDP(gaussian).map(1.0)
    ours = rho_to_epsilon(exact(rho), exact(delta))
    assert float(ours) == pytest.approx(curve.epsilon(float(delta)), rel=1e-6)
    assert float(rho_to_delta(exact(rho), ours)) == pytest.approx(curve.delta(float(ours)), rel=1e-5)
