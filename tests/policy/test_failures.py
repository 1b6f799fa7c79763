"""`failures:`: what may stand there, and that it is no part of what is measured."""

from __future__ import annotations

from datetime import timedelta

import pytest

from dpsql.core.policy.budgets import Failures
from dpsql.diagnostics.errors import CannotOpen
from dpsql.policy.policy import Policy
from tests.policy.policies import good

KEY = "name: good"


def failures(text: str) -> Failures:
    return good(KEY, f"{KEY}\nfailures: {text}").failures


def test_without_it_ten_of_an_account_and_thirty_of_all_in_thirty_days_stop() -> None:
    assert good().failures == failures("{}") == Failures(10, timedelta(days=30), 30)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{most: 4}", Failures(4, timedelta(days=30), 12)),
        ("{most: 4, in_total: 4, per: 12 hours}", Failures(4, timedelta(hours=12), 4)),
        ("{per: 1day}", Failures(per=timedelta(days=1))),
        ("{per: 90 min}", Failures(per=timedelta(minutes=90))),
        ("{per: 3600}", Failures(per=timedelta(hours=1))),
    ],
)
def test_what_is_left_out_is_filled_in(text: str, expected: Failures) -> None:
    assert failures(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{most: 0}", "at least 1"),
        ("{most: 5, in_total: 4}", "at least 5"),
        ("{in_total: 9}", "at least 10"),
        ("{per: soon}", "such as 30 days"),
        ("{per: 0 days}", "such as 30 days"),
        ("{per: 1.5 days}", "such as 30 days"),
        ("{per: 3661 days}", "up to 3660 days"),
        ("{per: true}", "such as 30 days"),
        ("{mots: 3}", "mots"),
        ("5", "failures"),
    ],
)
def test_what_is_wrong_is_said(text: str, message: str) -> None:
    with pytest.raises(CannotOpen, match=message):
        failures(text)


def test_what_is_normalised_is_read_again() -> None:
    """A policy that is completed with the data's types is built of its own document."""
    written = good(KEY, f"{KEY}\nfailures: {{most: 3, per: 2 hours}}")
    assert Policy.from_dict(dict(written.document)).failures == written.failures == Failures(3, timedelta(hours=2), 9)


def test_it_makes_no_other_policy() -> None:
    """Stored answers stand under the hash, and so do summaries."""
    forms = [good(), *(good(KEY, f"{KEY}\nfailures: {s}") for s in ("{most: 1}", "{per: 1 day}", "{in_total: 99}"))]
    assert len({policy.hash for policy in forms}) == 1
