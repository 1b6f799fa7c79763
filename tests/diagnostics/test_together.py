"""Several refusals at once."""

from __future__ import annotations

import pytest

from dpsql.diagnostics.diagnostic import Span
from dpsql.diagnostics.errors import BudgetExceeded, Rejected, TooLarge, reject, too_large
from dpsql.diagnostics.together import MOST, Followup, Together


def refuse(together: Together, message: str, at: int) -> None:
    with together.attempt():
        raise reject("DP103", message, span=Span(at, at + 1), help=["x"])


def told(together: Together) -> list[str]:
    with pytest.raises(Rejected) as refusal:
        together.settle()
    return [d.message for d in refusal.value.diagnostics]


def test_nothing_wrong() -> None:
    together = Together()
    with together.attempt():
        pass
    together.settle()
    assert not together.failed


def test_in_the_order_of_the_text() -> None:
    together = Together()
    refuse(together, "b", 7)
    refuse(together, "a", 3)
    assert told(together) == ["a", "b"]


def test_each_message_and_each_place_once() -> None:
    together = Together()
    for message, at in (("a", 1), ("a", 5), ("b", 1), ("c", 9)):
        refuse(together, message, at)
    assert told(together) == ["a", "c"]


def test_no_more_than_twenty() -> None:
    together = Together()
    with pytest.raises(Rejected) as refusal:
        for i in range(MOST + 5):
            refuse(together, str(i), i)
    assert [d.message for d in refusal.value.diagnostics] == [str(i) for i in range(MOST)]


def test_too_large_ends_it_at_once() -> None:
    together = Together()
    with pytest.raises(TooLarge), together.attempt():
        raise too_large("the query is too large", None, "x")
    assert not together.failed


def test_what_follows_says_nothing_of_its_own() -> None:
    together = Together()
    with together.attempt():
        raise Followup
    assert together.failed
    with pytest.raises(Followup):  # the refusal that it follows from is told further out
        together.settle()
    refuse(together, "a", 1)
    assert told(together) == ["a"]


@pytest.mark.parametrize("error", [ValueError("x"), BudgetExceeded([]), KeyboardInterrupt()])
def test_nothing_else_is_kept_back(error: BaseException) -> None:
    together = Together()
    with pytest.raises(type(error)), together.attempt():
        raise error
    together.settle()
