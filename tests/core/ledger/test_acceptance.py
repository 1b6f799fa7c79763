"""What a custodian accepts leaves an entry in the chain."""

from __future__ import annotations

import shutil
from collections.abc import Callable

from dpsql.core.ledger.ledger import Caps, Entry, EntryKind
from dpsql.core.ledger.sqlite import accept_head
from tests.core.ledger.conftest import Place


def accept(place: Place) -> list[str]:
    """The statements of the entries that a ledger has once it was accepted."""
    accept_head(place.path, place.head)
    with place.open() as ledger:
        ledger.verify()
        return [r.entry.statement for r in ledger.history() if r.entry.kind is EntryKind.ACCEPTANCE]


def test_an_older_copy_says_after_which_entry_it_was_accepted(place: Place, charge: Callable[[object], Entry]) -> None:
    copy = place.path.with_name("copy")
    for i in range(3):
        with place.open() as ledger:
            ledger.reserve(charge(i), Caps())
        if i == 0:
            shutil.copy(place.path, copy)
    shutil.copy(copy, place.path)
    (said,) = accept(place)
    assert said.startswith("ACCEPT LEDGER after entry 1: its head remembered entry 3")
    assert accept(place) == [said]  # nothing was left to accept
    with place.open() as ledger:
        assert [a.spent for a in ledger.accounts()] == [charge(0).charges["patient"]] * 2


def test_a_lost_or_spoilt_head_is_said(place: Place, charge: Callable[[object], Entry]) -> None:
    with place.open() as ledger:
        ledger.reserve(charge(0), Caps())
    place.head.unlink()
    assert "after entry 1: its head was missing" in accept(place)[0]
    place.head.write_text("no head")
    assert "after entry 2: its head could not be read" in accept(place)[1]
