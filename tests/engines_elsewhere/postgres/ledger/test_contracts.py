"""The contracts that SQLite's ledger and store keep, kept by PostgreSQL's."""

from __future__ import annotations

import gzip
import json
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dpsql.answers.stored.store.postgres import PostgresAnswers
from dpsql.answers.stored.store.stored_rows import hash_of
from dpsql.core.ledger import postgres_schema as schema
from dpsql.core.ledger.ledger import Caps, Entry, Ledger
from dpsql.core.ledger.postgres import PostgresLedger
from dpsql.core.ledger.postgres_server import LedgerServer
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.diagnostics.errors import CannotOpen
from tests.answers.stored.test_store_contract import StoreContract, answer
from tests.core.ledger.test_ledger_contract import LedgerContract, entry, loss
from tests.engines_elsewhere.postgres.ledger.conftest import Database

EVERY_VERSION = True
Make = Callable[..., Any]


class TestPostgresLedger(LedgerContract):
    @pytest.fixture
    def make(self, database: Database) -> Iterator[Make]:
        with ExitStack() as stack:

            def open_ledger(accountant: str = "approx_dp") -> Ledger:
                return stack.enter_context(database.open(accountant=accountant))

            yield open_ledger

    def test_a_second_opening_knows_everything(self, make: Make) -> None:
        with_first = make()
        with_first.reserve(entry("a", "0.1", "patient", "doctor", delta="1e-9"), Caps())
        again = make()
        assert again.history() == with_first.history()
        assert again.accounts() == with_first.accounts()
        assert again.salt == with_first.salt
        again.reserve(replace(entry("b", "0.2"), received={"doctor": loss(1)}, answers=("n",)), Caps())
        assert with_first.spent("patient") == loss("0.3", "1e-9")
        assert with_first.received("ana") == {"n"}
        assert with_first.spent("doctor", "ana") == loss("1.1", "1e-9")

    def test_a_long_chain_is_read_in_parts(self, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
        ledger = make()
        for i in range(10):
            ledger.reserve(entry(str(i)), Caps())
        for at_once in (2, 3, 5, 9, 10, 11):
            monkeypatch.setattr("dpsql.core.ledger.postgres._AT_ONCE", at_once)
            again = make()
            assert [r.entry.id for r in again.history()] == [str(i) for i in range(10)]
            assert again.verify() == 10 and again.spent("patient") == loss(1)

    def test_the_same_id_is_charged_once_where_it_would_still_fit(self, make: Make) -> None:
        first, other = make(), make()
        receipt = first.reserve(entry("a"), Caps(total={"patient": loss(1)}))
        assert other.reserve(entry("a"), Caps(total={"patient": loss(1)})) == receipt
        assert len(first.history()) == 1

    def test_one_that_is_closed_says_so(self, make: Make) -> None:
        ledger = make()
        ledger.close()
        ledger.close()
        with pytest.raises(CannotOpen, match="it is closed"):
            ledger.spent("patient")
        with pytest.raises(CannotOpen, match="it is closed"):
            ledger.reserve(entry("a"), Caps())


OLD_TABLES = schema.TABLES.replace(
    """,
    kind text COLLATE "C" NOT NULL DEFAULT '',
    about text COLLATE "C" NOT NULL DEFAULT '{}'""",
    "",
)
FIXTURES = Path(__file__).parents[3] / "core" / "ledger"


@pytest.fixture(params=["pure_dp", "approx_dp", "zcdp"])
def old(database: Database, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A ledger of format 2, as a gateway of that version left it; its accountant. Of the entries that SQLite's has."""
    file = tmp_path / "old.sqlite"
    with gzip.open(FIXTURES / f"format2.{request.param}.sqlite.gz") as stored:
        file.write_bytes(stored.read())
    with closing(sqlite3.connect(file)) as connection:
        identity = dict(connection.execute("SELECT name, value FROM identity"))
        rows = connection.execute("SELECT * FROM entries ORDER BY sequence").fetchall()
    database.run(OLD_TABLES)
    with database.cluster.connected(database.name) as connection:
        for row in rows:
            connection.execute(f"INSERT INTO dpsql.entries VALUES ({', '.join(['%s'] * len(row))})", row)
        connection.execute(
            "INSERT INTO dpsql.head (format, dataset, accountant, salt, nonce, last_sequence, last_hash) "
            "VALUES (2, %s, %s, %s, %s, %s, %s)",
            (identity["dataset"], identity["accountant"], identity["salt"], identity["nonce"], len(rows), rows[-1][8]),
        )
    database.head().write_text(json.dumps({"sequence": len(rows), "hash": rows[-1][8]}))
    return str(request.param)


def test_a_ledger_of_format_2_is_brought_up_to_date_and_no_entry_changes(database: Database, old: str) -> None:
    loss = PrivacyLoss(rho=Fraction(1, 9)) if old == "zcdp" else PrivacyLoss(Fraction(1, 9))
    with database.open(accountant=old) as ledger:
        before = ledger.history()
        assert ledger.verify() == 7 and [e.id for e in ledger.definitions()] == ["d", "g"]
        ledger.reserve(Entry("h", "ana", {"patient": loss}, "p", "q"), Caps())
    with database.open(accountant=old) as ledger:
        assert ledger.verify() == 8 and list(ledger.history())[:7] == list(before)
    assert database.run("SELECT format FROM dpsql.head") == [(3,)]


def test_where_the_role_may_not_its_owner_is_told_how(database: Database, old: str) -> None:
    database.run(
        "DROP ROLE IF EXISTS payer", "CREATE ROLE payer LOGIN", "GRANT USAGE ON SCHEMA dpsql TO payer",
        "GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA dpsql TO payer",
        "GRANT UPDATE (last_sequence, last_hash) ON dpsql.head TO payer",
    )  # fmt: skip
    url = database.cluster.url(database.name, "payer")
    with pytest.raises(CannotOpen, match="this role may not bring them up to date") as refusal:
        database.open(accountant=old, url=url)
    (help,) = refusal.value.diagnostics[0].help
    database.run(help.removeprefix("its owner:  "))
    with database.open(accountant=old, url=url) as ledger:
        assert ledger.verify() == 7
    database.run("DROP OWNED BY payer", "DROP ROLE payer")


def test_a_gateway_of_format_2_finds_other_tables_than_it_made(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.open().close()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schema, "_EXPECTED", schema._EXPECTED_OF_2)  # what it expects
        patch.setattr(schema, "_is_older", lambda session: False)  # there was none
        with pytest.raises(CannotOpen, match="not as dpsql makes them"):
            database.open()
    monkeypatch.setattr(schema, "FORMAT", 2)
    with pytest.raises(CannotOpen, match=r"a newer dpsql wrote it \(format 3; this version reads 2\)"):
        database.open()


class TestPostgresAnswers(StoreContract):
    @pytest.fixture
    def beside(self, database: Database) -> Iterator[LedgerServer]:
        """The server of a store that is not the ledger's own."""
        with database.open():
            found = LedgerServer(database.url)
            yield found
            found.close()

    @pytest.fixture
    def make(self, beside: LedgerServer) -> Make:
        # A lock whose connection was closed by a Ctrl-C is let go when the server notices, a moment later.
        return lambda patience=60: PostgresAnswers(beside, patience=patience or 60)

    def test_another_gateway_finds_what_was_added(self, make: Make, database: Database) -> None:
        make().add([answer()])
        other = LedgerServer(database.url)
        assert list(PostgresAnswers(other).find(["a"])["a"]) == [answer()]
        other.close()

    def test_all_or_none(self, make: Make) -> None:
        make().add([answer()])
        with pytest.raises(CannotOpen, match="SQLSTATE 23505"):
            make().add([answer("n2"), answer("n1")])  # an id is given once
        assert [a.id for a in make().find(["a"])["a"]] == ["n1"]

    @pytest.mark.parametrize("column", ["id", "numbers", "losses", "made_at", "hash"])
    def test_a_row_that_does_not_fit_its_hash_is_a_refusal(self, make: Make, database: Database, column: str) -> None:
        make().add([answer()])
        database.run(f"UPDATE dpsql.answers SET {column} = replace({column}, '1', '2')")
        with pytest.raises(CannotOpen, match="is damaged"):
            make().find(["a"])

    @pytest.mark.parametrize(("column", "value"), [("numbers", "[1, 2.5]"), ("parameter", "1/0"), ("losses", "[]")])
    def test_a_damaged_answer_is_a_refusal(self, make: Make, database: Database, column: str, value: str) -> None:
        make().add([answer()])
        database.run(f"UPDATE dpsql.answers SET {column} = '{value}'")
        ((*row, _),) = database.run(
            "SELECT id, address, numbers, mechanism, parameter, losses, conversion, made_at, shown, hash "
            "FROM dpsql.answers"
        )
        database.run(f"UPDATE dpsql.answers SET hash = '{hash_of(row)}'")
        with pytest.raises(CannotOpen, match="is damaged"):
            make().find(["a"])

    def test_who_has_lost_the_connection_lets_go_and_goes_on(self, make: Make, database: Database) -> None:
        """Whoever asks next pays for noise of his own: nothing is free, and nobody waits for the dead."""

        def cut() -> str:
            terminated = database.run(
                "SELECT pg_terminate_backend(pid, 60000) FROM pg_locks WHERE locktype = 'advisory' AND granted"
            )
            assert terminated == [(True,)]
            return str(make().alone(["x"], lambda: "another"))

        assert make().alone(["x"], cut) == "another"
        assert make().alone(["x"], lambda: 1) == 1

    @pytest.mark.processes
    def test_a_killed_holder_lets_go(self, make: Make, database: Database) -> None:
        program = _PROGRAM + (
            "PostgresAnswers(Server(sys.argv[1])).alone(['x'], lambda: (print('held', flush=True), time.sleep(600)))"
        )
        with _child(program, database.url) as child:
            assert child.stdout is not None and child.stdout.readline() == "held\n"
            with pytest.raises(CannotOpen):
                make(0.1).alone(["x"], pytest.fail)
            child.send_signal(signal.SIGKILL)
            child.wait()
            assert make(600).alone(["x"], lambda: 1) == 1

    @pytest.mark.processes
    def test_processes_take_turns(self, database: Database, beside: LedgerServer, tmp_path: Path) -> None:
        (tmp_path / "count").write_text("0")
        program = _PROGRAM + (
            "count = Path(sys.argv[2]); store = PostgresAnswers(Server(sys.argv[1]))\n"
            "def one_more():\n"
            "    number = int(count.read_text()); count.write_text(''); count.write_text(str(number + 1))\n"
            "for _ in range(40):\n"
            "    store.alone(['x'], one_more)\n"
        )
        with ExitStack() as stack:
            children = [stack.enter_context(_child(program, database.url, tmp_path / "count")) for _ in range(4)]
            assert [c.wait(1200) for c in children] == [0] * 4
        assert (tmp_path / "count").read_text() == "160"

    @pytest.mark.processes
    def test_a_forked_child_has_connections_of_its_own(self, database: Database, beside: LedgerServer) -> None:
        program = _PROGRAM + (
            "import os\n"
            "store = PostgresAnswers(Server(sys.argv[1]))\n"
            "assert store.find(['a']) == {}\n"
            "def fork():\n"
            "    child = os.fork()\n"
            "    if child == 0:\n"
            "        status = 1\n"
            "        try:\n"
            "            status = store.alone(['y'], lambda: len(store.find(['a'])))\n"
            "        finally:\n"
            "            os._exit(status)\n"
            "    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])\n"
            "assert store.alone(['x'], fork) == 0\n"
            "assert store.find(['a']) == {}\n"
        )
        with _child(program, database.url) as child:
            assert child.wait(600) == 0

    def test_the_ledger_closes_what_its_answers_use(self, database: Database) -> None:
        from dpsql.answers.stored.analyst_account import answers_beside

        ledger = database.open()
        assert isinstance(ledger, PostgresLedger)
        store = answers_beside(ledger)
        store.add([answer()])
        ledger.close()
        mine = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'dpsql'"
        while database.run(mine) != [(0,)]:
            pass


_PROGRAM = (
    "import sys, time; from pathlib import Path\n"
    "from dpsql.answers.stored.store.postgres import PostgresAnswers; "
    "from dpsql.core.ledger.postgres_server import LedgerServer as Server\n"
)


@contextmanager
def _child(program: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", program, *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
