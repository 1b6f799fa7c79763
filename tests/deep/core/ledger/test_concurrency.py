"""Races for the last of a budget, refusals that touch nothing, failures after the charge, and threads."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

import dpsql
from dpsql.core.ledger.ledger import Receipt
from dpsql.diagnostics.errors import BudgetExceeded, CannotOpen, EngineError, Error, Rejected
from tests.support.small_shop import COUNT, MEANS, PRICE, Nursery, Shop, answers, make_shop

pytestmark = pytest.mark.processes


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return make_shop(tmp_path / "shop", epsilon="1")


# Races ----------------------------------------------------------------------------------------------------------------


def test_eight_processes_get_exactly_as_many_answers_as_the_budget_holds(nursery: Nursery, tmp_path: Path) -> None:
    shop = make_shop(tmp_path / "shop", epsilon="4.05")
    _, outputs = nursery.start(shop, 8, sql=MEANS, copies=8)
    assert nursery.wait() == [0] * 8, [o.with_suffix(".txt.err").read_text() for o in outputs]
    assert answers(outputs) == [PRICE] * 40
    lines = "".join(o.read_text() for o in outputs).splitlines()
    assert lines.count("refused DP403") == 24 and len(lines) == 64
    assert shop.entries() == 40
    assert shop.spent() == 4


def test_threads_of_eight_sessions_get_exactly_as_many_answers_as_the_budget_holds(shop: Shop) -> None:
    outcomes: list[str] = []
    gate = threading.Barrier(8)

    def work() -> None:
        with dpsql.connect(shop.policy) as con:
            gate.wait()
            for _ in range(3):
                try:
                    con.execute(COUNT, epsilon="0.1", fresh=True)
                    outcomes.append("answer")
                except BudgetExceeded:
                    outcomes.append("refused")

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(1200)
    assert (outcomes.count("answer"), outcomes.count("refused")) == (10, 14)
    assert shop.spent() == 1


def test_one_session_in_many_threads_runs_one_query_after_the_other(shop: Shop) -> None:
    found: list[object] = []
    with dpsql.connect(shop.policy) as con:

        def work(sql: str, height: int) -> None:
            for _ in range(5):
                try:
                    rows = con.execute(sql, epsilon="0.01", fresh=True).rows
                    found.append(len(rows) == height or rows)
                except Error as error:  # a clean refusal would do as well
                    found.append(error)

        threads = [threading.Thread(target=work, args=a) for a in [(COUNT, 1), (MEANS, 3)] * 3]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(1200)
    assert found == [True] * 30
    assert shop.spent() == Fraction(30, 100)


def test_a_session_closed_by_another_thread_fails_cleanly(shop: Shop) -> None:
    con = dpsql.connect(shop.policy)
    done: list[Error] = []

    def work() -> None:
        try:
            while True:
                con.execute(COUNT, epsilon="0.001", fresh=True)
        except Error as error:
            done.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    while shop.entries() < 2:
        pass
    con.close()
    thread.join(600)
    assert [d.code for error in done for d in error.diagnostics] in (["DP903"], ["DP901"], ["DP407"])


# Order ----------------------------------------------------------------------------------------------------------------


def test_private_data_is_read_after_the_receipt_and_never_before(shop: Shop) -> None:
    with shop.watched() as (con, events):
        con.execute(MEANS, epsilon="0.1")
        first = events.copy()
        con.sql(MEANS).explain(epsilon="0.1")
        con.sql(MEANS).cost(epsilon="0.1")
        con.sql(MEANS).accuracy(epsilon="0.1")
        assert len(con.budget) == 1
        looking = events[len(first) :]
    assert first[first.index("reserve") :] == ["reserve", "private"]
    assert set(first[: first.index("reserve")]) <= {"public"}
    assert "private" not in looking and "reserve" not in looking


class Refusing:
    """A ledger on a disk that is full, or otherwise unable: reserving raises."""

    salt = 1

    def __init__(self, error: Exception) -> None:
        self.error = error

    def reserve(self, *_: object) -> Receipt:
        raise self.error

    def received(self, *_: object) -> frozenset[str]:
        return frozenset()

    def close(self) -> None:
        pass


REFUSED: dict[str, tuple[str, object, type[Error], set[str]]] = {
    "more than is left": (MEANS, "1.01", BudgetExceeded, {"DP403"}),
    "no epsilon": (COUNT, None, Rejected, {"DP401"}),
    "no such epsilon": (COUNT, -1, Rejected, {"DP406"}),
    "not SQL": ("SELECT COUNT(* FROM orders", 1, Rejected, {"DP010"}),
    "private rows": ("SELECT * FROM orders", 1, Rejected, {"DP110"}),
    "no bounds": ("SELECT SUM(customer) FROM orders", 1, Rejected, {"DP201"}),
    "private keys without delta": ("SELECT note, COUNT(*) FROM orders GROUP BY note", 1, Rejected, {"DP402"}),
    "two statements": ("SELECT COUNT(*) FROM orders; SELECT 1", 1, Rejected, {"DP011"}),
    "writing": ("DELETE FROM orders", 1, Rejected, {"DP012"}),
    "unknown table": ("SELECT COUNT(*) FROM customers", 1, Rejected, {"DP102"}),
    "private subquery": ("SELECT COUNT(*) FROM orders WHERE 3 > (SELECT MAX(amount) FROM orders)", 1, Rejected, set()),
    "volatile": ("SELECT COUNT(*) FROM orders WHERE random() < amount", 1, Rejected, set()),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_refusal_reads_no_private_row_and_charges_nothing(shop: Shop, case: str) -> None:
    sql, epsilon, kind, codes = REFUSED[case]
    with shop.watched() as (con, events):
        with pytest.raises(kind) as refusal:
            con.execute(sql, epsilon=epsilon)  # type: ignore[arg-type]
        assert not codes or {d.code for d in refusal.value.diagnostics} == codes
        assert set(events) <= {"public"}
    assert shop.entries() == 0


def test_an_exhausted_budget_says_so_and_runs_nothing(shop: Shop) -> None:
    with shop.watched() as (con, events):
        con.execute(COUNT, epsilon="0.95")
        del events[:]
        with pytest.raises(BudgetExceeded) as refusal:
            con.execute(COUNT, epsilon="0.1", fresh=True)
        assert events == []
        con.execute(COUNT, epsilon="0.05", fresh=True)
    text = str(refusal.value)
    assert "DP403" in text and "0.05" in text and "nothing was run and nothing was spent" in text
    assert shop.spent() == 1


# Ledgers that cannot be used ------------------------------------------------------------------------------------------


def test_a_locked_ledger_is_a_refusal_and_nothing_runs(shop: Shop) -> None:
    assert shop.entries() == 0  # make it
    other = sqlite3.connect(shop.folder / "shop.ledger.sqlite", isolation_level=None)
    with closing(other), shop.watched(shop.ledger(timeout=0.2)) as (con, events):
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(CannotOpen) as refusal:
            con.execute(COUNT, epsilon="0.1")
        other.execute("ROLLBACK")
        assert "private" not in events
        con.execute(COUNT, epsilon="0.1")
    assert [d.code for d in refusal.value.diagnostics] == ["DP407"]
    assert shop.spent() == PRICE


def test_a_full_disk_is_a_refusal_and_nothing_runs(nursery: Nursery, shop: Shop) -> None:
    full = """
import resource, dpsql.core.ledger.sqlite
from dpsql.engines.duckdb.engine import DuckDBEngine
def fill():
    limit = os.path.getsize(os.path.dirname(job["policy"]) + "/shop.ledger.sqlite-wal")
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
def shout():
    print("read", flush=True)
# After the ledger has been opened, at the first reservation, no file may grow any more.
wrap(dpsql.core.ledger.sqlite.SqliteLedger, "reserve", before=fill)
wrap(DuckDBEngine, "fetch", before=shout)
"""
    _, outputs = nursery.start(shop, 2, prepare=full)
    assert nursery.wait() == [0], outputs[0].with_suffix(".txt.err").read_text()
    assert outputs[0].read_text().splitlines() == ["failed DP407"] * 2
    assert shop.entries() == 0
    _, outputs = nursery.start(shop, 1, prepare=full.replace("before=fill", ""))
    assert nursery.wait() == [0]
    assert [line.split()[0] for line in outputs[0].read_text().splitlines()] == ["read", "1/10"]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), MemoryError()])
def test_whatever_stops_a_reservation_stops_the_query(shop: Shop, error: Exception) -> None:
    with shop.watched(Refusing(error)) as (con, events):
        with pytest.raises(type(error)):
            con.execute(COUNT, epsilon="0.1")
        assert "private" not in events


def a_folder(shop: Shop) -> Path:
    path = shop.folder / "ledger"
    path.mkdir()
    return path


def no_such_folder(shop: Shop) -> Path:
    return shop.folder / "nowhere" / "l.sqlite"


def another_file(shop: Shop) -> Path:
    return shop.policy


def read_only(shop: Shop) -> Path:
    if os.geteuid() == 0:
        pytest.skip("root may write anything")
    folder = shop.folder / "sealed"
    folder.mkdir(mode=0o500)
    return folder / "l.sqlite"


@pytest.mark.parametrize("place", [a_folder, no_such_folder, another_file, read_only])
def test_a_ledger_that_cannot_be_written_is_a_refusal_and_nothing_runs(
    shop: Shop, place: Callable[[Shop], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    fetched: list[str] = []
    from dpsql.engines.duckdb.engine import DuckDBEngine

    monkeypatch.setattr(DuckDBEngine, "fetch", lambda self, sql: fetched.append(sql))
    with dpsql.connect(shop.policy, ledger=place(shop)) as con, pytest.raises(CannotOpen) as refusal:
        con.execute(COUNT, epsilon="0.1")
    assert [d.code for d in refusal.value.diagnostics] == ["DP407"]
    assert fetched == []


# Failures after the charge --------------------------------------------------------------------------------------------


def damaged(shop: Shop) -> None:
    """Move `orders` to a Parquet file whose schema can be read and whose rows cannot."""
    path = shop.folder / "orders.parquet"
    with duckdb.connect(str(shop.folder / "shop.duckdb")) as connection:
        connection.execute(f"COPY orders TO '{path}' (FORMAT parquet, COMPRESSION zstd)")
    content = bytearray(path.read_bytes())
    content[40:2000] = b"\xff" * 1960
    path.write_bytes(content)
    text = shop.policy.read_text()
    shop.policy.write_text(text.replace("  orders:\n", "  orders:\n    source: read_parquet('orders.parquet')\n"))


def test_an_engine_failure_after_the_charge_is_one_constant_error_and_keeps_the_charge(shop: Shop) -> None:
    damaged(shop)
    texts = set()
    with dpsql.connect(shop.policy) as con:
        for sql in ("SELECT SUM(amount) FROM orders", "SELECT city, AVG(amount) FROM orders GROUP BY city"):
            with pytest.raises(EngineError) as failure:
                con.execute(sql, epsilon="0.1")
            assert failure.value.__cause__ is None and failure.value.__context__ is None
            texts.add(str(failure.value))
        assert len(texts) == 1 and "DP901" in texts.pop()
        assert shop.spent() == 2 * PRICE
        assert con.budget.spent.epsilon == 2 * PRICE
    assert shop.spent() == 2 * PRICE
