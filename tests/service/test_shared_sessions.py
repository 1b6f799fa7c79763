"""A session that several threads have: whatever one does at any moment of what another does."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from dpsql.diagnostics.errors import Rejected
from dpsql.policy.load import load_policy
from dpsql.service import privacy_settings as settings
from dpsql.service import service, session
from dpsql.service.service import Service
from dpsql.service.session import Session

FILES = (service.__file__, session.__file__, settings.__file__)


class Closable:
    """In place of an engine or a ledger."""

    def __init__(self) -> None:
        self.closed = False

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def opened(club_folder: Path) -> Callable[[], Session]:
    policy = load_policy(club_folder / "given.yaml")
    return lambda: Service(policy, Closable()).session()  # type: ignore[arg-type]


def acting(action: Callable[[], object], other: Callable[[], object], at: int) -> bool:
    """Act, and let `other` act at a call of dpsql's, counted as they are made; whether there was that call."""
    left = at

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal left
        if event in ("call", "return", "c_call", "c_return") and frame.f_code.co_filename in FILES:
            left -= 1
            if left == 0:
                other()

    sys.setprofile(count)
    try:
        action()
    finally:
        sys.setprofile(None)
    return left <= 0


def test_settings_of_two_threads_are_both_kept(opened: Callable[[], Session]) -> None:
    at, there = 0, True
    while there:
        at, session = at + 1, opened()
        other = threading.Thread(target=session.set, args=("delta", "1e-7"))

        def set_delta(other: threading.Thread = other) -> None:
            other.start()
            other.join(0.02)  # it may have to wait for this thread

        there = acting(lambda session=session: session.set("epsilon", "0.2"), set_delta, at)  # type: ignore[misc]
        if there:
            other.join(60)
            now = session.settings
            assert (now.epsilon, now.delta) == (Fraction(1, 5), Fraction(1, 10**7)), at
    assert at > 5


def test_a_ledger_that_is_opened_while_another_thread_closes_is_closed(
    opened: Callable[[], Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    ledgers: list[Closable] = []

    def open_ledger(*_: object) -> Any:
        ledgers.append(Closable())
        return ledgers[-1]

    monkeypatch.setattr(service, "open_ledger", open_ledger)
    at, there, refused = 0, True, 0
    while there:
        at, session = at + 1, opened()

        def use(session: Session = session) -> None:
            nonlocal refused
            try:
                session.ledger  # noqa: B018
            except Rejected as refusal:
                refused += 1
                assert refusal.diagnostics[0].code == "DP903"

        there = acting(use, session.service.close, at)
        session.service.close()
        assert all(ledger.closed for ledger in ledgers), at
    assert at > refused > 0 and len(ledgers) > 3
