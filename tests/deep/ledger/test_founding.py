"""Two who open one ledger for the first time at one moment: whatever the order of their steps, both have it.

A thread is stopped after each call that it makes into C (where a file is looked at, made or locked); another one then
does all of it, or waits for the first one's lock; the first goes on.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from types import FrameType

import pytest

from dpsql.core.ledger import head as heads
from dpsql.core.ledger.ledger import Caps
from dpsql.core.ledger.sqlite import SqliteLedger, accept_head
from tests.core.ledger.test_ledger_contract import entry

PACKAGE = str(Path(heads.__file__).parent)
WAITING = 0.01
"""Seconds after which somebody who has not come to an end waits for a lock of the one that is stopped. Should he only
be slow, both go on at once, which is an order too."""


class Interleaved:
    """Runs `first`, and `other` in the middle of it: after its call number 0, 1, 2 …, in a folder of its own each."""

    def __init__(self, folder: Path, first: Callable[[Path], None], other: Callable[[Path], None]) -> None:
        self.folder, self.first, self.other = folder, first, other
        self.failures: list[tuple[str, BaseException]] = []

    def run(self) -> int:
        """Returns how many orders there were."""
        number = 0
        while self._stopped_after(number):
            number += 1
        return number

    def _stopped_after(self, number: int) -> bool:
        place = self.folder / str(number)
        place.mkdir()
        left, where = number, ""
        thread = threading.Thread(target=self._kept, args=("the other", self.other, place))

        def at(frame: FrameType, event: str, called: object) -> None:
            nonlocal left, where
            if event not in ("c_return", "c_exception") or not frame.f_code.co_filename.startswith(PACKAGE) or where:
                return
            if left:
                left -= 1
                return
            where = f"{frame.f_code.co_filename}:{frame.f_lineno} {called!r}"
            thread.start()
            thread.join(WAITING)

        sys.setprofile(at)
        try:
            self._kept("the first", self.first, place)
        finally:
            sys.setprofile(None)
        if not where:
            return False
        thread.join(600)
        assert not thread.is_alive(), where
        return True

    def _kept(self, who: str, action: Callable[[Path], None], place: Path) -> None:
        try:
            action(place)
        except BaseException as error:
            self.failures.append((f"{who} in {place.name}", error))


def found(place: Path) -> SqliteLedger:
    return SqliteLedger.open(place / "state" / "l.sqlite", place / "head" / "h.json", "shop", "approx_dp")


def charge(name: str, place: Path) -> None:
    (place / "state").mkdir(exist_ok=True)
    ledger = found(place)
    try:
        ledger.reserve(entry(name), Caps())
    finally:
        ledger.close()


charge_a, charge_b = partial(charge, "a"), partial(charge, "b")


def looked(place: Path) -> None:
    (place / "state").mkdir(exist_ok=True)
    SqliteLedger.look(place / "state" / "l.sqlite", place / "head" / "h.json", "shop", "approx_dp").close()


def accepted(place: Path) -> None:
    (place / "state").mkdir(exist_ok=True)
    accept_head(place / "state" / "l.sqlite", place / "head" / "h.json")


def entries(place: Path) -> list[str]:
    ledger = found(place)
    try:
        return sorted(receipt.entry.id for receipt in ledger.history())
    finally:
        ledger.close()


@pytest.fixture(scope="module")
def another_process() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        yield pool


OTHERS = {"charges": (charge_b, ["a", "b"]), "looks": (looked, ["a"]), "accepts the file": (accepted, ["a"])}


@pytest.mark.parametrize("where", ["thread", pytest.param("process", marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("other", OTHERS)
def test_both_have_it(tmp_path: Path, other: str, where: str, another_process: ProcessPoolExecutor) -> None:
    act, expected = OTHERS[other]

    def elsewhere(place: Path) -> None:
        another_process.submit(act, place).result(600)

    orders = Interleaved(tmp_path, charge_a, act if where == "thread" else elsewhere)
    number = orders.run()
    assert number > 100 and orders.failures == []
    assert [entries(tmp_path / str(at)) for at in range(number)] == [expected] * number
