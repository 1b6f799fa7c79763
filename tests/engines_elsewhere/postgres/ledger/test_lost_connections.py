"""Connections cut at each moment of a charge: what was not paid for never runs, and what is said is true."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from dpsql.core.ledger.chain.hash_chain import LedgerRow
from dpsql.core.ledger.chain.head import Head
from dpsql.core.ledger.ledger import Caps, Entry
from dpsql.core.ledger.postgres import StoredEntries
from dpsql.core.ledger.refusals import CHARGED, PERHAPS_CHARGED
from dpsql.diagnostics.errors import CannotOpen
from dpsql.diagnostics.note import NOTHING_RAN
from tests.engines_elsewhere.postgres.ledger.conftest import Cluster, Database, made
from tests.engines_elsewhere.postgres.ledger.proxy import Act, Plan, Proxy, between, is_commit

EVERY_VERSION = True
Charge = Callable[[object], Entry]


def once(act: Act, when: Callable[[bytes], bool]) -> Plan:
    """The first time that it applies, and never again."""
    left = [act]
    return lambda number, asked: left.pop() if left and when(asked) else "pass"


def armed(act: Act) -> tuple[list[bool], Plan]:
    """Cuts the first COMMIT after it was armed: opening a ledger commits, too."""
    on: list[bool] = []

    def plan(number: int, asked: bytes) -> Act:
        if on and is_commit(asked):
            on.clear()
            return act
        return "pass"

    return on, plan


def through(database: Database, proxy: Proxy) -> str:
    return database.cluster.url(database.name, folder=proxy.folder)


def entries(database: Database) -> int:
    return int(database.run("SELECT count(*) FROM dpsql.entries")[0][0])


@pytest.mark.parametrize("act", ["cut before", "cut after"])
def test_a_ledger_whose_making_was_cut_off_is_made_or_found_by_the_next(
    database: Database, charge: Charge, act: Act
) -> None:
    with between(database.cluster.folder, once(act, is_commit)) as proxy:
        with pytest.raises(CannotOpen, match="the connection was lost while it was made") as refusal:
            database.open(url=through(database, proxy))
        assert refusal.value.diagnostics[0].notes == (NOTHING_RAN,)
        with database.open(url=through(database, proxy)) as ledger:
            assert ledger.reserve(charge("a"), Caps()).sequence == 1


def test_where_the_answer_to_commit_is_lost_the_charge_is_found_and_stands(database: Database, charge: Charge) -> None:
    on, plan = armed("cut after")
    with between(database.cluster.folder, plan) as proxy, database.open(url=through(database, proxy)) as ledger:
        on.append(True)
        receipt = ledger.reserve(charge("a"), Caps())
        assert not on and (receipt.sequence, receipt.entry) == (1, charge("a"))
        assert ledger.history() == [receipt] and ledger.verify() == 1
        assert ledger.reserve(charge("a"), Caps()) == receipt
        assert ledger.reserve(charge("b"), Caps()).sequence == 2
    assert entries(database) == 2


@pytest.mark.parametrize("act", ["cut before", "keep from the server"])
def test_where_commit_never_came_nothing_is_charged_and_nothing_runs(
    database: Database, charge: Charge, act: Act
) -> None:
    """Also while the server still waits for it: the one that was lost is waited for, and ends."""
    on, plan = armed(act)
    with (
        between(database.cluster.folder, plan) as proxy,
        database.open(url=through(database, proxy), timeout=20 if act == "keep from the server" else 300) as ledger,
    ):
        on.append(True)
        with pytest.raises(CannotOpen, match="the charge was not made") as refusal:
            ledger.reserve(charge("a"), Caps())
        assert not on and refusal.value.diagnostics[0].notes == (NOTHING_RAN,)
        assert entries(database) == 0
        assert ledger.reserve(charge("a"), Caps()).sequence == 1
    assert entries(database) == 1


def test_a_commit_that_arrives_while_it_is_looked_up_is_waited_for(database: Database, charge: Charge) -> None:
    on, plan = armed("deliver late")
    with between(database.cluster.folder, plan) as proxy, database.open(url=through(database, proxy)) as ledger:

        def deliver() -> None:
            while not database.run("SELECT 1 FROM pg_locks WHERE NOT granted"):
                pass
            proxy.deliver()

        on.append(True)
        thread = threading.Thread(target=deliver, daemon=True)
        thread.start()
        receipt = ledger.reserve(charge("a"), Caps())
        thread.join(600)
        assert not on and receipt.sequence == 1 and ledger.history() == [receipt]


@pytest.mark.parametrize(("act", "made"), [("cut after", 1), ("cut before", 0)])
def test_where_nobody_can_look_it_fails_closed_and_says_the_same_whatever_happened(
    database: Database, charge: Charge, act: Act, made: int
) -> None:
    on, plan = armed(act)
    with (
        between(database.cluster.folder, plan) as proxy,
        database.open(url=through(database, proxy), timeout=0.5) as ledger,
    ):
        on.append(True)
        proxy.closed_for_new = True
        with pytest.raises(CannotOpen) as refusal:
            ledger.reserve(charge("a"), Caps())
        (diagnostic,) = refusal.value.diagnostics
        assert diagnostic.message == (
            f"ledger {through(database, proxy)}: the connection was lost while the charge was committed, and whether "
            "it was made could not be looked up"
        )
        assert diagnostic.notes == (PERHAPS_CHARGED,)
    assert entries(database) == made
    with database.open() as again:
        assert again.reserve(charge("a"), Caps()).sequence == 1
    assert entries(database) == 1


@pytest.mark.parametrize("act", ["cut before", "cut after"])
def test_a_connection_cut_at_each_moment_of_a_charge(database: Database, charge: Charge, act: Act) -> None:
    """A receipt stands for an entry; a refusal says that nothing was spent only where nothing was."""
    outcomes = []
    for moment in range(40):
        before = entries(database) if moment else 0
        start: list[int] = []

        def plan(number: int, asked: bytes, start: list[int] = start, moment: int = moment) -> Act:
            if start and number == start[0] + moment:
                start.append(number)
                return act
            return "pass"

        with between(database.cluster.folder, plan) as proxy, database.open(url=through(database, proxy)) as ledger:
            start.append(proxy.sent)
            try:
                receipt = ledger.reserve(charge(moment), Caps())
                outcomes.append("charged")
                assert receipt.sequence == before + 1
            except CannotOpen as refusal:
                outcomes.append("refused")
                assert refusal.diagnostics[0].notes == (NOTHING_RAN,)
            happened = len(start) > 1
        assert entries(database) == before + (outcomes[-1] == "charged"), moment
        if not happened:
            break
    else:
        raise AssertionError("it never came to its end")
    # BEGIN is sent again, over a new connection; then come the lock, the entries, the charge, and COMMIT.
    assert outcomes[0] == outcomes[-1] == "charged" and outcomes.count("refused") >= 3
    assert outcomes[-2] == ("charged" if act == "cut after" else "refused")


def test_a_connection_that_waited_and_was_lost_is_made_again(database: Database, charge: Charge) -> None:
    with database.open() as ledger:
        for i in range(3):
            ledger.reserve(charge(i), Caps())
            cut = "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE application_name = 'dpsql'"
            assert set(database.run(cut)) == {(True,)}
            assert ledger.spent("patient", "ana") == ledger.spent("patient")
            assert set(database.run(cut)) == {(True,)}
        assert [r.sequence for r in ledger.history()] == [1, 2, 3]


def test_a_gateway_that_vanished_keeps_the_others_no_longer_than_they_wait(database: Database, charge: Charge) -> None:
    def plan(number: int, asked: bytes) -> Act:
        return "keep from the server" if b"INSERT INTO dpsql.entries" in asked else "pass"

    with (
        between(database.cluster.folder, plan) as proxy,
        database.open(url=through(database, proxy), timeout=4) as lost,
        database.open(timeout=60) as other,
    ):
        with pytest.raises(CannotOpen) as refusal:
            lost.reserve(charge("a"), Caps())
        assert refusal.value.diagnostics[0].notes == (NOTHING_RAN,)
        assert other.reserve(charge("b"), Caps()).sequence == 1
    assert entries(database) == 1


def test_who_waits_in_vain_for_another_gateway_is_told(database: Database, charge: Charge) -> None:
    with database.open(timeout=0.3) as ledger, database.cluster.connected(database.name) as other:
        other.execute("BEGIN")
        other.execute("SELECT 1 FROM dpsql.head FOR UPDATE")
        with pytest.raises(CannotOpen, match=r"another gateway has kept it locked for 0\.3 s") as refusal:
            ledger.reserve(charge("a"), Caps())
        assert refusal.value.diagnostics[0].notes == (NOTHING_RAN,)
        other.execute("ROLLBACK")
        assert ledger.reserve(charge("a"), Caps()).sequence == 1


def test_a_transaction_that_the_server_took_back_is_no_charge(database: Database, charge: Charge) -> None:
    """COMMIT of a transaction that failed is answered ROLLBACK, and that is no error."""
    with database.open() as ledger:
        added = StoredEntries.add

        def fails(stored: StoredEntries, row: LedgerRow) -> bool:
            done = added(stored, row)
            with pytest.raises(CannotOpen):
                stored._session.rows("SELECT 1 / 0")
            return done

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(StoredEntries, "add", fails)
            with pytest.raises(CannotOpen, match="took the transaction back") as refusal:
                ledger.reserve(charge("a"), Caps())
        assert refusal.value.diagnostics[0].notes == (NOTHING_RAN,)
        assert entries(database) == 0
        assert ledger.reserve(charge("a"), Caps()).sequence == 1


def test_a_head_that_cannot_follow_is_told_and_the_charge_stays(database: Database, charge: Charge) -> None:
    with database.open() as ledger:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Head, "advance", lambda self, at_least, latest: Head(database.heads, 1).put(latest()))
            with pytest.raises(CannotOpen) as refusal:
                ledger.reserve(charge("a"), Caps())
        assert refusal.value.diagnostics[0].notes == (CHARGED,)
    assert entries(database) == 1


def test_a_head_that_cannot_be_flushed_keeps_the_answer_back(
    database: Database, charge: Charge, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    with database.open() as ledger:
        ledger.reserve(charge("a"), Caps())
        ledger.finish()
        monkeypatch.setattr("dpsql.core.ledger.chain.head.flush", broken)
        receipt = ledger.reserve(charge("b"), Caps())
        with pytest.raises(CannotOpen, match="Input/output error") as refusal:
            ledger.finish()
        assert "the answer is not shown, and the charge stays" in refusal.value.diagnostics[0].notes[0]
        monkeypatch.undo()
        assert ledger.history()[-1] == receipt


# --- the server itself ------------------------------------------------------------------------------------------------


def test_a_killed_server_keeps_what_it_said_it_had(own_cluster: Cluster, tmp_path: Path, charge: Charge) -> None:
    database = made(own_cluster, "spent", tmp_path)
    with database.open(timeout=1) as ledger:
        for i in range(5):
            ledger.reserve(charge(i), Caps())
        own_cluster.server.kill()
        with pytest.raises(CannotOpen) as refusal:
            ledger.reserve(charge("lost"), Caps())
        assert refusal.value.diagnostics[0].notes == (NOTHING_RAN,)
        with pytest.raises(CannotOpen, match="cannot be reached"):
            ledger.spent("patient")
        own_cluster.server.start()
        assert ledger.reserve(charge("after"), Caps()).sequence == 6
        assert ledger.verify() == 6
