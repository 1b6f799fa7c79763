"""What a ledger tells of spending: the same numbers as its entries, at fewer points."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dpsql.core.ledger.ledger import Entry, EntryKind, Receipt
from dpsql.core.policy.units import UnitNames
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.service.accounts.spending_story import MOST_POINTS, NEVER, NEWEST, SpendingStory

NAMES = UnitNames(frozenset({"u", "v"}), {"w": "v"})


def entry(number: int, account: str = "ana", minute: str = "", **charges: str) -> Receipt:
    losses = {unit: PrivacyLoss(Fraction(e)) for unit, e in charges.items()}
    at = minute or f"2026-01-{1 + number // 1440 % 28:02}T{number // 60 % 24:02}:{number % 60:02}:00+00:00"
    return Receipt(Entry(f"id{number}", account, losses, "p", f"policy{number % 2}"), number + 1, "h", at)


@pytest.mark.parametrize("entries", [0, 1, 2, MOST_POINTS, 2 * MOST_POINTS + 1, 5_003])
@pytest.mark.parametrize("most", [1, 2, 7, MOST_POINTS])
def test_of_any_number_of_entries_so_many_points_are_told_each_true_and_the_last_one_among_them(
    entries: int, most: int
) -> None:
    story = SpendingStory.of(NAMES, (entry(n, "ana" if n % 2 else "ben", u="1/3") for n in range(entries)))
    for who, count in ((None, entries), ("ana", entries // 2), ("ben", -(-entries // 2))):
        points = story.trail("u", who).points(most)
        assert len(points) <= most and (not count or points[-1][1].epsilon == Fraction(count, 3))
        assert [at for at, _ in points] == sorted(at for at, _ in points)
        step = Fraction(1, 3)
        assert all(spent.epsilon % step == 0 and 0 < spent.epsilon <= count * step for _, spent in points)
        assert story.trail("u", who).spent.epsilon == Fraction(count, 3)
    assert [len(story.newest[who]) for who in ("ana", "ben")] == [
        min(NEWEST, entries // 2), min(NEWEST, -(-entries // 2)),
    ]  # fmt: skip
    assert story.charges == entries and len(story.policies) == min(entries, 2)


def test_units_are_told_by_their_present_names_and_noise_within_a_run_is_not_told() -> None:
    story = SpendingStory.of(
        NAMES,
        [
            entry(0, u="1", w="2"),
            Receipt(Entry("noise", "ana", {}, "", ""), 2, "h", "2026-01-01T00:00:30+00:00"),
            Receipt(Entry("kept", "*", {}, "", "", "ACCEPT LEDGER x", kind=EntryKind.ACCEPTANCE), 3, "h", "no time"),
        ],
    )
    assert story.charged("ana") == {"u": PrivacyLoss(Fraction(1)), "v": PrivacyLoss(Fraction(2))}
    assert (story.charges, list(story.newest["ana"]), story.accounts("v")) == (1, ["id0"], [None, "ana"])
    assert [receipt.entry.id for receipt in story.changes] == ["kept"] and story.last is not None
    assert story.last.entry.id == "id0"


def test_time_never_runs_backwards() -> None:
    """A clock that jumped a year ahead, and was put back."""
    times = ["2026-01-01T00:00:00+00:00", "2027-01-01T00:00:00+00:00", "2026-01-02T00:00:00+00:00", "soon"]
    story = SpendingStory.of(NAMES, (entry(n, minute=at, u="1") for n, at in enumerate(times)))
    points = [at for at, _ in story.trail("u", None).points()]
    assert points == sorted(points) and (story.begins, story.ends) == (points[0], points[1])
    assert SpendingStory.of(NAMES, [entry(0, minute="soon", u="1")]).begins == NEVER
