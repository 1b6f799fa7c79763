"""Wrong passwords cost time, and nobody keeps another one out. The clock is the test's own."""

from __future__ import annotations

from dpsql.faces.server.front.patience import FREE, FREE_OF_ADDRESS, LONGEST, Patience


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_five_failures_are_free_and_then_each_costs_more() -> None:
    patience = Patience(Clock())
    waits = [patience.try_begins("ana", "10.0.0.1") for _ in range(FREE + 8)]
    assert waits[:FREE] == [0] * FREE
    assert waits[FREE : FREE + 4] == [1, 2, 4, 8] and waits[-1] == LONGEST


def test_another_address_is_not_kept_out() -> None:
    patience = Patience(Clock())
    for _ in range(100):
        patience.try_begins("ana", "10.0.0.1")
    assert patience.try_begins("ana", "10.0.0.2") == 0


def test_many_names_from_one_address_wait_too() -> None:
    patience = Patience(Clock())
    waits = [patience.try_begins(f"name{i}", "2001:db8::1:2") for i in range(FREE_OF_ADDRESS)]
    assert waits == [0] * FREE_OF_ADDRESS
    assert patience.try_begins("another", "2001:db8::9:9") == 1  # the same network
    assert patience.try_begins("another", "2001:db8:0:1::1") == 0


def test_success_forgets_the_name_and_takes_its_own_try_back() -> None:
    patience = Patience(Clock())
    for _ in range(FREE_OF_ADDRESS * 3):
        patience.try_begins("ana", "::ffff:10.0.0.1")
        patience.try_succeeded("ana", "10.0.0.1")
    assert patience.try_begins("ana", "10.0.0.1") == 0


def test_failures_are_forgotten_after_an_hour() -> None:
    clock = Clock()
    patience = Patience(clock)
    for _ in range(FREE + 3):
        patience.try_begins("ana", "x")
    clock.now = 3601
    assert patience.try_begins("ana", "x") == 0


def test_it_keeps_a_bounded_number() -> None:
    patience = Patience(Clock())
    for i in range(12_000):
        patience.try_begins(f"n{i}", f"10.{i >> 16}.{i >> 8 & 255}.{i & 255}")
    assert len(patience._kept) <= 10_000
