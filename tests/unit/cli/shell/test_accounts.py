"""What the shell says about the budget."""

from __future__ import annotations

from fractions import Fraction

from dpsql.cli.shell.accounts import charged
from dpsql.loss import NO_LOSS, PrivacyLoss


def of(epsilon: str, delta: str = "0") -> PrivacyLoss:
    return PrivacyLoss(Fraction(epsilon), Fraction(delta))


def test_a_charge_of_another_unit_than_the_one_most_was_spent_of_is_seen() -> None:
    before = {"patient": of("1"), "doctor": of("0.2")}
    assert charged(before, {**before, "doctor": of("0.5", "1e-9")}) == of("0.3", "1e-9")
    assert charged(before, before) == NO_LOSS


def test_a_first_charge_is_seen() -> None:
    assert charged({}, {"patient": of("0.1")}) == of("0.1")
    assert charged({}, {}) == NO_LOSS
