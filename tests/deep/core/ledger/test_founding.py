"""Two who open one ledger for the first time at one moment: whatever the order of their steps, both have it.

A thread is stopped after each call that it makes into C (where a file is looked at, made or locked); another one then
does all of it, or waits for the first one's lock; the first goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import pytest

from dpsql.core.ledger.ledger import Caps
from dpsql.core.ledger.sqlite import SqliteLedger, accept_head
from tests.core.ledger.test_ledger_contract import entry
from tests.support.interleaved import Interleaved, found


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


def charged(place: Path) -> list[str]:
    """Without one acceptance: whether it finds the charge depends on who is faster, where both go on at once."""
    ids = entries(place)
    return ids[:1] if len(ids) == 2 and ids[1].startswith("accepted ") else ids


@pytest.fixture(scope="module")
def another_process() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        yield pool


OTHERS = {
    "charges": (charge_b, entries, ["a", "b"]),
    "looks": (looked, entries, ["a"]),
    "accepts the file": (accepted, charged, ["a"]),
}


@pytest.mark.parametrize("where", ["thread", pytest.param("process", marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("other", OTHERS)
def test_both_have_it(tmp_path: Path, other: str, where: str, another_process: ProcessPoolExecutor) -> None:
    act, kept, expected = OTHERS[other]

    def elsewhere(place: Path) -> None:
        another_process.submit(act, place).result(600)

    orders = Interleaved(tmp_path, charge_a, act if where == "thread" else elsewhere)
    number = orders.run()
    assert number > 50 and orders.failures == []
    assert [kept(tmp_path / str(at)) for at in range(number)] == [expected] * number


def test_an_empty_ledger_is_accepted_while_somebody_makes_it(tmp_path: Path) -> None:
    """Who accepts is stopped between looking and forgetting: a charge in between keeps its head."""
    orders = Interleaved(tmp_path, accepted, charge_a)
    number = orders.run()
    assert number > 3 and orders.failures == []
    assert [charged(tmp_path / str(at)) for at in range(number)] == [["a"]] * number
