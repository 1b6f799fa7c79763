"""What every store of released answers must do. A new store inherits StoreContract and gives `make`."""

from __future__ import annotations

import datetime as dt
import errno
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from dpsql.answers.stored.store.memory import MemoryAnswers
from dpsql.answers.stored.store.sqlite import SqliteAnswers, _insert
from dpsql.answers.stored.store.store import AnswerStore
from dpsql.answers.stored.store.stored_rows import hash_of, row_of
from dpsql.core.ledger.losses.regions import LossSpan
from dpsql.core.ledger.released import ShownKeys, StoredAnswer
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.diagnostics.errors import CannotOpen
from tests.support.interrupts import stopped_at_each

Make = Callable[..., AnswerStore]
NOON = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC)
LOSSES = {"person": PrivacyLoss(Fraction(1, 3), Fraction(1, 10**9)), "till": PrivacyLoss(rho=Fraction(1, 7))}
KEYS = (
    ("x", 1, True, Decimal("1.50"), 0.1, b"\0\xff", None),
    ("it's", -(2**70), False, Decimal("-0"), -0.0, b"", None),
    ("", 0, None, Decimal("1E+5"), float("inf"), None, dt.date(2024, 2, 29)),
    ("é", 7, None, None, 5e-324, None, dt.datetime(2024, 2, 29, 1, 2, 3, 4)),
    (None, None, None, None, None, dt.time(23, 59, 59, 999999), dt.timedelta(days=-3, microseconds=1)),
)


def answer(name: str = "n1", address: str = "a", values: tuple[int, ...] = (1, -(2**90))) -> StoredAnswer:
    return StoredAnswer(name, address, values, "laplace", Fraction(10, 3), LOSSES, Fraction(1, 10**7), NOON)


def store_keys(path: Path, **other: object) -> None:
    """Two keys in place of what is stored, with something else in them."""
    stored = {"threshold": 1, "r": 1, "g": 1, "delta": "0", "height": 2, "columns": [[["int"], ["1", "2"]]]}
    _execute(path, f"UPDATE answers SET shown = '{json.dumps({**stored, **other})}'")


def test_the_hash_of_a_row_is_that_of_its_json() -> None:
    """Earlier versions made it so: what they stored is found."""
    row = (*row_of(answer(values=tuple(range(20_000))))[:-1], 'é🙂"\\\n\0')
    assert hash_of(row) == sha256(json.dumps(list(row)).encode()).hexdigest()


class StoreContract:
    @pytest.fixture
    def make(self, tmp_path: Path) -> Make:
        raise AssertionError("a store's tests say how to make it")

    def test_what_was_added_is_found_by_its_address_oldest_first(self, make: Make) -> None:
        store = make()
        assert store.find(["a"]) == {} and store.find([]) == {}
        store.add([answer("n1"), answer("n2", "b")])
        store.add([answer("n3", values=(5,))])
        store.add([])
        assert {k: list(v) for k, v in store.find(["a", "b", "c"]).items()} == {
            "a": [answer("n1"), answer("n3", values=(5,))],
            "b": [answer("n2", "b")],
        }
        assert list(store.find(["b"])) == ["b"]

    def test_keys_of_every_type_come_back_as_they_were(self, make: Make) -> None:
        store = make()
        shown = ShownKeys(KEYS, 15, 1, 2, Fraction(1, 3 * 10**9))
        store.add([replace(answer(), shown=shown, values=tuple(range(len(KEYS))))])
        (found,) = store.find(["a"])["a"]
        assert found.shown == shown
        assert repr(found.shown) == repr(shown)  # True is not 1, and 1.50 is not 1.5

    def test_what_each_period_lost_comes_back_as_it_was(self, make: Make) -> None:
        store = make()
        spans = (
            LossSpan(None, dt.date(2026, 11, 3), PrivacyLoss(Fraction(1, 3))),
            LossSpan(dt.date(2026, 11, 5), None, PrivacyLoss(Fraction(1, 7))),
        )
        by_period = replace(answer(), losses={"patient": PrivacyLoss(Fraction(1, 3))}, regions={"patient": spans})
        store.add([by_period])
        assert list(store.find(["a"])["a"]) == [by_period]

    def test_many_addresses_at_once(self, make: Make) -> None:
        store = make()
        store.add([answer(f"n{i}", f"a{i}") for i in range(1200)])
        assert len(store.find([f"a{i}" for i in range(2000)])) == 1200

    def test_whoever_asks_after_it_was_closed_opens_it_again(self, make: Make) -> None:
        store = make()
        store.close()
        store.add([answer()])
        store.close()
        store.close()
        assert list(store.find(["a"])["a"]) == [answer()]

    def test_a_mark_stands_after_what_was_stored_before_it(self, make: Make) -> None:
        store = make()
        assert store.before("x") == {}
        store.add([answer("n1"), answer("n2", "b")])
        assert store.mark("x") and not store.mark("x") and store.mark("y")
        store.add([answer("n3")])
        assert store.before("x") == store.before("y") == {"n1": NOON, "n2": NOON}
        assert store.before("z") == {} and store.before("x", or_all=True) == store.before("x")
        assert sorted(store.before("z", or_all=True)) == ["n1", "n2", "n3"] and list(store.find(["a", "x"])) == ["a"]
        store.close()
        assert not store.mark("x") and store.before("x") == {"n1": NOON, "n2": NOON}

    def test_a_name_is_held_by_one_thread_at_a_time(self, make: Make) -> None:
        inside: list[int] = []
        most: list[int] = []

        def enter() -> None:
            inside.append(1)
            most.append(len(inside))
            time.sleep(0.001)
            inside.pop()

        def work() -> None:
            for _ in range(10):
                make().alone(["x", "y"], enter)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(600)
        assert len(most) == 40 and max(most) == 1

    def test_other_names_are_free(self, make: Make) -> None:
        store = make(0.2)
        assert store.alone(["x"], lambda: make(0.2).alone(["y", "z"], lambda: 1)) == 1
        assert store.alone(["x"], lambda: store.alone([], lambda: 2)) == 2

    def test_the_wait_ends_with_a_refusal_that_says_what_to_do(self, make: Make) -> None:
        store = make(0.05)
        with pytest.raises(CannotOpen) as refusal:
            store.alone(["x"], lambda: store.alone(["w", "x"], pytest.fail))
        text = str(refusal.value)
        assert "DP407" in text and "--fresh" in text and "nothing was spent" in text
        assert store.alone(["w", "x"], lambda: 1) == 1  # nothing of the refused wait is left

    def test_names_are_let_go_by_exceptions(self, make: Make) -> None:
        store = make(0.05)
        with pytest.raises(ZeroDivisionError):
            store.alone(["x"], lambda: 1 // 0)
        assert store.alone(["x"], lambda: 1) == 1

    def test_whoever_wants_the_same_names_in_another_order_does_not_wait_for_ever(self, make: Make) -> None:
        done: list[int] = []

        def work(names: list[str]) -> None:
            for _ in range(30):
                make().alone(names, lambda: done.append(1))

        threads = [threading.Thread(target=work, args=(n,)) for n in (["x", "y", "z"], ["z", "x"], ["y", "z", "x"])]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(600)
        assert len(done) == 90

    def test_ctrl_c_is_heard_while_waiting(self, make: Make) -> None:
        store = make(3600)
        waiting = threading.get_ident()

        def press() -> None:
            """Once the thread waits inside of the store: it raises there at the next moment that Python looks."""
            found = False
            while not found:
                time.sleep(0.1)
                frame = sys._current_frames().get(waiting)
                while frame is not None and frame.f_code.co_filename != __file__ and not found:
                    found, frame = f"dpsql{os.sep}answers" in frame.f_code.co_filename, frame.f_back
            signal.raise_signal(signal.SIGINT)

        pressing = threading.Thread(target=press, daemon=True)
        began = time.monotonic()
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            with pytest.raises(KeyboardInterrupt):
                store.alone(["x"], lambda: (pressing.start(), store.alone(["x"], pytest.fail)))
        finally:
            signal.signal(signal.SIGINT, before)
        assert time.monotonic() - began < 600, "it has waited until it was refused"

    def test_ctrl_c_at_any_moment_leaves_no_name_held(self, make: Make) -> None:
        store = make(0)
        for at in stopped_at_each(lambda: store.alone(["x", "y"], lambda: None), __file__):
            assert store.alone(["x", "y"], lambda: 1) == 1, at


class TestMemoryAnswers(StoreContract):
    @pytest.fixture
    def make(self, tmp_path: Path) -> Make:
        found: list[MemoryAnswers] = []

        def once(patience: float = 60) -> MemoryAnswers:
            if not found:
                found.append(MemoryAnswers(patience))
            return found[0]

        return once


class TestSqliteAnswers(StoreContract):
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        return tmp_path / "l.sqlite.answers"

    @pytest.fixture
    def make(self, path: Path) -> Make:
        return lambda patience=60: SqliteAnswers(path, timeout=0.3, patience=patience)

    def test_looking_makes_no_file_and_names_leave_none(self, make: Make, path: Path) -> None:
        assert make().find(["a"]) == {}
        assert make().alone(["x"], (path.parent / "l.sqlite.answers.running" / "x").exists)
        assert list(path.parent.iterdir()) == []

    def test_files_are_for_their_owner_only(self, make: Make, path: Path) -> None:
        before = os.umask(0)
        try:
            make().add([answer()])
            running = path.parent / "l.sqlite.answers.running"
            modes = make().alone(["x"], lambda: [p.stat().st_mode & 0o077 for p in (running, running / "x")])
            assert modes == [0, 0]
        finally:
            os.umask(before)
        assert path.stat().st_mode & 0o777 == 0o600

    def test_another_object_finds_what_was_added(self, make: Make) -> None:
        make().add([answer()])
        assert list(make().find(["a"])["a"]) == [answer()]

    def test_one_connection_serves_all_calls(self, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
        made: list[object] = []
        connect = sqlite3.connect
        monkeypatch.setattr(sqlite3, "connect", lambda *given, **named: made.append(1) or connect(*given, **named))
        for _ in range(2):  # a new file, and one that is there
            store = make()
            for i in range(3):
                store.find(["a"])
                store.add([answer(f"{len(made)}.{i}")])
            store.close()
        assert len(made) == 2

    def test_a_file_that_was_removed_meanwhile_is_made_anew(self, make: Make, path: Path) -> None:
        """What the custodian is told to do with a damaged one, while sessions go on."""
        store = make()
        store.add([answer("n1")])
        path.unlink()
        assert store.find(["a"]) == {}
        store.add([answer("n2")])
        assert [a.id for a in make().find(["a"])["a"]] == ["n2"]

    def test_what_a_killed_process_left_in_the_log_is_found(self, make: Make, path: Path) -> None:
        program = (
            "import os, sys; from pathlib import Path; from dpsql.answers.stored.store.sqlite import SqliteAnswers\n"
            "from tests.answers.stored.test_store_contract import answer\n"
            "store = SqliteAnswers(Path(sys.argv[1])); store.add([answer()]); os.kill(os.getpid(), 9)"
        )
        with _child(program, path) as child:
            assert child.wait(600) == -signal.SIGKILL
        assert path.with_name(path.name + "-wal").stat().st_size > 0
        assert list(make().find(["a"])["a"]) == [answer()]

    def test_a_log_whose_file_was_removed_is_no_part_of_a_new_one(self, make: Make, path: Path, tmp_path: Path) -> None:
        store = make()
        store.add([answer("n1")])
        log = path.with_name(path.name + "-wal")
        left = log.read_bytes()
        store.close()
        path.unlink()
        log.write_bytes(left)  # as after a kill
        assert make().find(["a"]) == {}
        make().add([answer("n2")])
        assert [a.id for a in make().find(["a"])["a"]] == ["n2"]

    def test_an_older_file_gets_a_log_and_an_older_dpsql_goes_on_in_it(self, make: Make, path: Path) -> None:
        """Older ones kept a journal, opened the file for each call, and waited for the disk."""

        def older(*rows: StoredAnswer) -> list[str]:
            with closing(sqlite3.connect(path, isolation_level=None)) as connection:
                connection.execute("PRAGMA synchronous=FULL")
                connection.execute("BEGIN IMMEDIATE")
                _insert(connection, [row_of(a) for a in rows])
                connection.execute("COMMIT")
                return [name for (name,) in connection.execute("SELECT id FROM answers ORDER BY number")]

        make().add([answer("n1")])
        _execute(path, "PRAGMA journal_mode=DELETE")
        assert older(answer("n2")) == ["n1", "n2"]
        new = make()
        assert [a.id for a in new.find(["a"])["a"]] == ["n1", "n2"]
        for i in range(3, 20, 2):
            new.add([answer(f"n{i}")])
            assert older(answer(f"n{i + 1}"))[-2:] == [f"n{i}", f"n{i + 1}"]
            assert [a.id for a in new.find(["a"])["a"]][-2:] == [f"n{i}", f"n{i + 1}"]
        new.close()
        assert older(answer("n21"))[:20] == [f"n{i}" for i in range(1, 21)]

    def test_an_older_dpsql_in_the_middle_of_its_transaction_is_waited_for(self, make: Make, path: Path) -> None:
        make().add([answer("n1")])
        _execute(path, "PRAGMA journal_mode=DELETE")
        with closing(sqlite3.connect(path, isolation_level=None)) as older:
            older.execute("BEGIN EXCLUSIVE")
            with pytest.raises(CannotOpen, match=r"kept it locked for 0\.3 s"):
                make().find(["a"])
            older.execute("ROLLBACK")
        assert len(make().find(["a"])["a"]) == 1

    @pytest.mark.parametrize("act", ["find", "add"])
    def test_ctrl_c_at_any_moment_leaves_the_file_free(self, make: Make, path: Path, act: str) -> None:
        store, others = make(), make()
        others.add([answer("first")])
        new = iter([answer(f"n{i}") for i in range(1000)])
        action = {"find": lambda: store.find(["a"]), "add": lambda: store.add([next(new)])}[act]
        for at in stopped_at_each(action, __file__):
            others.add([answer(f"after {at}", f"b{at}")])
            assert list(store.find([f"b{at}"])) == [f"b{at}"]

    def test_all_or_none(self, make: Make, path: Path) -> None:
        make().add([answer()])
        with pytest.raises(CannotOpen):
            make().add([answer("n2"), answer("n1")])  # an id is given once
        assert [a.id for a in make().find(["a"])["a"]] == ["n1"]

    def test_a_writer_waits_for_another_and_then_says_so(self, make: Make, path: Path) -> None:
        make().add([answer()])
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            with pytest.raises(CannotOpen) as refusal:
                make().add([answer("n2")])
            assert "kept it locked for 0.3 s" in str(refusal.value)
            assert [a.id for a in make().find(["a"])["a"]] == ["n1"]  # who only reads waits for nobody
            other.execute("ROLLBACK")
        make().add([answer("n2")])

    @pytest.mark.parametrize(
        "damage",
        [
            lambda path: path.write_text("no database " * 100),
            lambda path: path.write_bytes(path.read_bytes()[:100] + b"\xff" * 4000),
            lambda path: _execute(path, "DROP TABLE answers"),
            lambda path: _execute(path, "PRAGMA user_version=3"),
            lambda path: _execute(path, "PRAGMA application_id=5"),
            lambda path: _execute(path, "UPDATE answers SET numbers = '[1, 2.5]'"),
            lambda path: _execute(path, "UPDATE answers SET numbers = '[[['"),
            lambda path: _execute(path, "UPDATE answers SET parameter = '1/0'"),
            lambda path: _execute(path, 'UPDATE answers SET losses = \'{"person": ["-1", "0", "0"]}\''),
            lambda path: _execute(path, "UPDATE answers SET parameter = '1e9999999999'"),
            lambda path: _execute(path, "UPDATE answers SET conversion = '0.1'"),
            lambda path: _execute(path, "UPDATE answers SET losses = '[]'"),
            lambda path: _execute(path, 'UPDATE answers SET losses = \'{"person": ["1e9999999999", "0", "0"]}\''),
            lambda path: store_keys(path, threshold="x"),
            lambda path: store_keys(path, height=3),
            lambda path: store_keys(path, height=1 << 60, columns=[]),
            lambda path: store_keys(path, columns=[[["int"], ["x", "1"]]]),
            lambda path: _execute(path, "UPDATE answers SET made_at = 'yesterday'"),
            lambda path: _execute(path, "UPDATE answers SET shown = '{}'"),
            lambda path: (path.unlink(), path.mkdir()),
        ],
    )
    def test_a_damaged_file_is_a_refusal(self, make: Make, path: Path, damage: Callable[[Path], Any]) -> None:
        make().add([answer()])
        damage(path)
        with pytest.raises(CannotOpen) as refusal:
            make().find(["a"])
        assert "DP407" in str(refusal.value) and "nothing was spent" in str(refusal.value)

    @pytest.mark.parametrize("column", ["id", "numbers", "losses", "made_at", "hash"])
    def test_a_row_that_does_not_fit_its_hash_is_a_refusal(self, make: Make, path: Path, column: str) -> None:
        make().add([answer()])
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(f"UPDATE answers SET {column} = replace({column}, '1', '2')")
        with pytest.raises(CannotOpen, match="is damaged"):
            make().find(["a"])

    def test_an_empty_file_is_a_store(self, make: Make, path: Path) -> None:
        """What a process leaves that was killed while it made the file."""
        path.touch()
        assert make().find(["a"]) == {}
        make().add([answer()])
        assert len(make().find(["a"])["a"]) == 1

    def test_a_file_in_place_of_the_folder_of_names_is_a_refusal(self, make: Make, path: Path) -> None:
        path.with_name(path.name + ".running").touch()
        with pytest.raises(CannotOpen):
            make().alone(["x"], pytest.fail)

    @pytest.mark.parametrize("code", [errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL])
    def test_without_locks_nobody_waits(self, make: Make, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
        def flock(*_: object) -> None:
            raise OSError(code, os.strerror(code))

        monkeypatch.setattr("fcntl.flock", flock)
        assert make(0.1).alone(["x"], lambda: make(0.1).alone(["x"], lambda: 1)) == 1

    def test_a_missing_folder_is_a_refusal(self, tmp_path: Path) -> None:
        store = SqliteAnswers(tmp_path / "nowhere" / "f")
        with pytest.raises(CannotOpen):
            store.add([answer()])
        with pytest.raises(CannotOpen):
            store.alone(["x"], pytest.fail)

    @pytest.mark.processes
    def test_a_killed_holder_lets_go(self, path: Path, make: Make) -> None:
        program = (
            "import sys, time; from pathlib import Path; from dpsql.answers.stored.store.sqlite import SqliteAnswers\n"
            "SqliteAnswers(Path(sys.argv[1])).alone(['x'], lambda: (print('held', flush=True), time.sleep(600)))"
        )
        with _child(program, path) as child:
            assert child.stdout is not None and child.stdout.readline() == "held\n"
            with pytest.raises(CannotOpen):
                make(0.1).alone(["x"], pytest.fail)
            child.kill()
            child.wait()
            assert make(600).alone(["x"], lambda: 1) == 1
        assert list(path.parent.iterdir()) == []

    @pytest.mark.processes
    @pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
    def test_a_child_forked_meanwhile_keeps_nobody_waiting(self, path: Path) -> None:
        """Not even itself: it has inherited what its parent holds, and asks for it before that is let go."""
        program = (
            "import os, sys, time; from pathlib import Path; from dpsql.answers.stored.store.sqlite import "
            "SqliteAnswers\n"
            "store, (waiting, told), sleep = SqliteAnswers(Path(sys.argv[1]), patience=60), os.pipe(), time.sleep\n"
            "def fork():\n"
            "    child = os.fork()\n"
            "    if child == 0:\n"
            "        status = 1\n"
            "        time.sleep = lambda seconds: (os.write(told, b'.'), sleep(seconds))\n"
            "        try:\n"
            "            status = store.alone(['x'], lambda: 0)\n"
            "        finally:\n"
            "            os._exit(status)\n"
            "    os.close(told)\n"
            "    assert os.read(waiting, 1) == b'.'\n"
            "    return child\n"
            "sys.exit(os.waitstatus_to_exitcode(os.waitpid(store.alone(['x'], fork), 0)[1]))\n"
        )
        with _child(program, path) as child:
            assert child.wait(600) == 0

    @pytest.mark.processes
    @pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
    def test_a_forked_child_may_not_use_what_its_parent_has_open(self, path: Path) -> None:
        program = (
            "import os, sys; from pathlib import Path; from dpsql.answers.stored.store.sqlite import SqliteAnswers\n"
            "from dpsql.diagnostics.errors import CannotOpen; from tests.answers.stored.test_store_contract import "
            "answer\n"
            "store, child = SqliteAnswers(Path(sys.argv[1])), None\n"
            "def refused(one):\n"
            "    try:\n"
            "        one.find(['a'])\n"
            "    except CannotOpen as refusal:\n"
            "        return 'when this process was forked' in refusal.diagnostics[0].message\n"
            "    return False\n"
            "store.add([answer()])\n"
            "child = os.fork()\n"
            "if child == 0:\n"
            "    os._exit(0 if refused(store) and refused(SqliteAnswers(Path(sys.argv[1]))) else 1)\n"
            "status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])\n"
            "sys.exit(status or len(store.find(['a'])['a']) - 1)\n"
        )
        with _child(program, path) as child:
            assert child.wait(600) == 0

    @pytest.mark.processes
    def test_processes_take_turns(self, path: Path) -> None:
        """The file that all of them count in is never read by two between reading and writing."""
        (path.parent / "count").write_text("0")
        program = (
            "import sys; from pathlib import Path; from dpsql.answers.stored.store.sqlite import SqliteAnswers\n"
            "path = Path(sys.argv[1]); count = path.parent / 'count'\n"
            "def one_more():\n"
            "    number = int(count.read_text()); count.write_text(''); count.write_text(str(number + 1))\n"
            "for _ in range(40):\n"
            "    SqliteAnswers(path).alone(['x'], one_more)\n"
        )
        with ExitStack() as stack:
            children = [stack.enter_context(_child(program, path)) for _ in range(4)]
            assert [c.wait(1200) for c in children] == [0] * 4
        assert (path.parent / "count").read_text() == "160"


def _execute(path: Path, statement: str) -> None:
    """Change the file, and the hashes of its rows: what is damaged is not only seen from them."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)
        if statement.startswith("UPDATE"):
            for number, *row, _ in connection.execute("SELECT * FROM answers").fetchall():
                connection.execute("UPDATE answers SET hash = ? WHERE number = ?", (hash_of(row), number))


@contextmanager
def _child(program: str, path: Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
