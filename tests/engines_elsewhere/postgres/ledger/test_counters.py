"""Counters in a ledger on PostgreSQL: the same entries are taken, and of several gateways one gives a tick."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

import dpsql
from dpsql.answers.stored.store.postgres import PostgresAnswers
from dpsql.core.ledger.ledger import EntryKind, Ledger
from tests.core.ledger import test_counters as of_files
from tests.engines_elsewhere.postgres.ledger.conftest import Database
from tests.support.counted_trips import RIDES, day, make_trips

MADE = RIDES.format(rho="0.02")
ENTRIES = [
    of_files.test_it_is_charged_once_to_every_period_from_its_first_day_on,
    of_files.test_a_number_is_held_once_ticked_names_it_and_not_before,
    of_files.test_what_is_drawn_again_is_charged_what_one_tick_loses,
    of_files.test_of_two_who_tick_at_once_one_is_given,
    of_files.test_drop_gives_back_what_nobody_will_measure,
    of_files.test_another_account_receives_all_of_it_at_its_price,
    of_files.test_what_no_caller_should_make_is_not_taken,
    of_files.test_a_redraw_for_nothing_or_for_less_is_not_taken,
    of_files.test_the_history_says_what_each_entry_did,
]


@pytest.fixture
def ledger(database: Database) -> Iterator[Ledger]:
    with database.open(accountant="zcdp") as found:
        yield found


@pytest.mark.parametrize("entries", ENTRIES, ids=lambda test: test.__name__)
def test_as_in_a_file(entries: object, ledger: Ledger) -> None:
    assert callable(entries)
    entries(ledger)


@pytest.mark.parametrize("locked", [True, False])
def test_of_gateways_that_tick_at_once_one_is_given(
    database: Database, tmp_path: Path, locked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the name that they hold, too: then what was drawn besides is charged, or thrown away unseen."""
    trips = make_trips(tmp_path, ledger=database.url)
    trips.close(3)
    with dpsql.connect(trips.policy, analyst="ana") as con:
        con.counter_of(MADE).run()
    trips.close(7)
    if not locked:
        monkeypatch.setattr(PostgresAnswers, "alone", lambda own, names, action: action())
    told: list[object] = []

    def gateway() -> None:
        with dpsql.connect(trips.policy, analyst="ana") as con:
            for _ in range(20):
                if con.tick_counter("rides").through == day(7):
                    break
            told.append(con.sql("SELECT * FROM dpsql.rides").run().rows)

    threads = [Thread(target=gateway) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(told) == 3 and told.count(told[0]) == 3 and len(told[0]) == 12  # type: ignore[arg-type]
    with dpsql.connect(trips.policy, analyst="ana") as con:
        entries = [r.entry for r in con.ledger.history()]
    ticks = [e for e in entries if e.kind is EntryKind.TICK]
    assert len([e for e in entries if e.kind is EntryKind.TICKED]) == 6 == len([e for e in ticks if not e.charges])
    assert not locked or len(ticks) == 6
