"""`serve:`: what may stand there, and that it is no part of what is measured."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dpsql.core.policy.serving import Serving
from dpsql.diagnostics.errors import CannotOpen
from dpsql.policy.policy import Policy
from tests.policy.policies import good

KEY = "name: good"


def serving(text: str) -> Serving:
    return good(KEY, f"{KEY}\nserve: {text}").serving


def test_without_it_answers_leave_at_one_moment() -> None:
    assert good().serving == Serving() and len(Serving().answers_at) == 1


def test_moments_are_exact_seconds() -> None:
    assert serving("{answers_at: [200ms, 1, 2min]}").answers_at == (Fraction(1, 5), Fraction(1), Fraction(120))
    assert serving("{workers: 2, memory: 2GB, threads: 3, rows: 5}") == Serving(
        workers=2, memory="2GB", threads=3, rows=5
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{answers_at: []}", "list of times"),
        ("{answers_at: 5s}", "list of times"),
        ("{answers_at: [5, soon]}", "such as 0.2s"),
        ("{answers_at: [0s]}", "such as 0.2s"),
        ("{answers_at: [1s, 1000ms]}", "must ascend"),
        ("{answers_at: [25000min]}", "up to a day"),
        ("{workers: 0}", "at least 1"),
        ("{answer_at: [1s]}", "answers_at"),
    ],
)
def test_what_is_wrong_is_said(text: str, message: str) -> None:
    with pytest.raises(CannotOpen, match=message):
        serving(text)


def test_what_is_normalised_is_read_again() -> None:
    """A policy that is completed with the data's types is built of its own document."""
    written = good(KEY, f"{KEY}\nserve: {{answers_at: [200ms, 1s], queue: 3}}")
    assert Policy.from_dict(dict(written.document)).serving == written.serving


def test_no_moment_and_no_limit_makes_another_policy() -> None:
    """Stored answers stand under the hash, and so does what was spent: a change of `serve:` frees and loses nothing."""
    forms = [good(), *(good(KEY, f"{KEY}\nserve: {s}") for s in ("{answers_at: [1s]}", "{rows: 7}", "{queue: 1}"))]
    assert len({policy.hash for policy in forms}) == 1
