"""What every engine promises: exact results, one constant error, one snapshot, and that it can be stopped and closed.

A new engine inherits `EngineContract` and `FailureContract` and says how it is opened on a table
`numbers(i BIGINT, t VARCHAR)`, and how its SQL writes what no dialect is asked for (`Words`).
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from dpsql.core.engine import Engine, RawTable, engine_failed
from dpsql.core.ir.types import BIGINT, BOOLEAN, DATE, DOUBLE, HUGEINT, INTEGER, TIMESTAMP, VARCHAR, SqlType, decimal
from dpsql.diagnostics.errors import CannotOpen, EngineError
from dpsql.engines.public_facts import frequency
from tests.support.engines import CANARY


@dataclass(frozen=True)
class Words:
    """rows: so many rows as a relation `r(i)` of FROM, from 0. fail: an expression whose error quotes a text.

    long: a query that takes minutes. types: those of `numbers`, as the catalogue has them.
    failures: what goes wrong → a statement of it; over the relation `numbers`.
    """

    rows: Callable[[int], str]
    fail: Callable[[str], str]
    long: str
    types: tuple[str, str]
    failures: dict[str, Callable[[str], str]]


def one(engine: Engine, expression: str) -> object:
    return engine.fetch(f"SELECT {expression} AS x").columns[0][0]


def chain(error: BaseException) -> list[BaseException]:
    """Everything that can be reached from an exception as a cause or context."""
    found: list[BaseException] = []
    todo: list[BaseException | None] = [error]
    while todo:
        current = todo.pop()
        if current is not None and current not in found:
            found.append(current)
            todo += [current.__cause__, current.__context__]
    return found


def press_when_in(function: str, thread: int) -> None:
    """Ctrl-C, a moment after this thread has entered a function of this name."""
    found = False
    while not found:
        time.sleep(0.2)
        frame = sys._current_frames().get(thread)
        while frame is not None and not found:
            found, frame = frame.f_code.co_name == function, frame.f_back
    os.kill(os.getpid(), signal.SIGINT)


PLAIN: list[tuple[Any, SqlType]] = [
    (2**63 - 1, BIGINT), (127, INTEGER), (0.1, DOUBLE), (1e308, DOUBLE), (True, BOOLEAN), ("é'x", VARCHAR),
    ("", VARCHAR),
    (Decimal("12345678901234567890123456789012.123456"), decimal(38, 6)), (date(2024, 2, 29), DATE),
    (datetime(2024, 2, 29, 23, 59, 59, 999999), TIMESTAMP),
    *((None, t) for t in (BIGINT, VARCHAR, DOUBLE, BOOLEAN, decimal(9, 2))),
]  # fmt: skip


class EngineContract:
    """Quick."""

    @pytest.fixture
    def words(self) -> Words:
        raise AssertionError("an engine's tests say how it writes")

    def test_large_integers_are_exact(self, engine: Engine) -> None:
        d = engine.dialect
        edges = [e for p in (53, 62, 63, 64, 65, 100, 126) for e in (2**p - 1, 2**p, 2**p + 1)] + [2**127 - 1, 0]
        values = [*edges, *(-e for e in edges), -(2**127), None]
        rows = d.values(
            [f"{i}, {d.cast(d.constant(v, HUGEINT), HUGEINT)}" for i, v in enumerate(values)], ["i", "v"], "t"
        )
        table = engine.fetch(f"SELECT v AS h FROM {rows} ORDER BY i")
        assert table.columns[0] == values
        assert {type(v) for v in table.columns[0]} == {int, type(None)}
        beside_a_date = engine.fetch(f"SELECT v AS h, {d.constant(date(2024, 1, 1), DATE)} AS d FROM {rows} ORDER BY i")
        assert beside_a_date.columns[0] == values

    def test_every_type_arrives_as_the_plain_python_value(self, engine: Engine) -> None:
        written = [engine.dialect.constant(value, type_) for value, type_ in PLAIN]
        for expression, (value, _) in zip(written, PLAIN, strict=True):
            got = one(engine, expression)
            assert (type(got), got) == (type(value), value), expression
        together = engine.fetch("SELECT " + ", ".join(f"{expression} AS c{i}" for i, expression in enumerate(written)))
        assert [c[0] for c in together.columns] == [value for value, _ in PLAIN]

    def test_columns_keep_their_order_and_may_share_names(self, engine: Engine) -> None:
        d = engine.dialect
        for value in (d.constant(3, BIGINT), d.cast("3", HUGEINT), d.constant(date(2024, 1, 1), DATE)):
            names = [d.identifier(name) for name in ("b", "a", "z", "b", "A")]
            items = ", ".join(f"{item} AS {name}" for item, name in zip((2, 1, value, 4, 5), names, strict=True))
            table = engine.fetch(f"SELECT {items}")
            assert table.names == ("b", "a", "z", "b", "A")
            assert [c[0] for c in table.columns][:2] == [2, 1] and [c[0] for c in table.columns][3:] == [4, 5]

    def test_an_order_by_is_kept_and_no_rows_is_a_table_too(self, engine: Engine, words: Words) -> None:
        d = engine.dialect
        for type_ in (BIGINT, HUGEINT):
            term = d.cast("(CAST(i AS BIGINT) * 7919) % 100003", type_)
            sql = f"SELECT {term} AS x FROM {words.rows(100003)}"
            assert engine.fetch(f"{sql} ORDER BY x").columns == (list(range(100003)),)
            assert engine.fetch(f"SELECT * FROM ({sql}) AS q WHERE 1 = 0").columns == ([],)
        nothing = engine.fetch(f"SELECT 1 AS a, {d.constant(date(2024, 1, 1), DATE)} AS d WHERE 1 = 0")
        assert (nothing.names, nothing.columns) == (("a", "d"), ([], []))

    def test_a_raw_table_shows_nothing(self, engine: Engine) -> None:
        table = engine.fetch(f"SELECT i, t FROM {engine.table_sql('NUMBERS')} AS t0 ORDER BY i NULLS LAST")
        assert (repr(table), str(table), f"{table}") == ("<private>",) * 3
        assert table.height == 4 and next(table.rows()) == (0, f"x{CANARY}")

    def test_no_frame_of_a_failure_holds_a_value(self, engine: Engine, words: Words) -> None:
        """The same for tools that print the local variables of a traceback's frames."""
        sql = f"SELECT {words.fail('t')} AS failing FROM {engine.table_sql('numbers')} AS t0"
        with pytest.raises(EngineError) as caught:
            engine.fetch(sql)
        shown = "".join(traceback.TracebackException.from_exception(caught.value, capture_locals=True).format())
        assert "AS failing" in shown  # local variables are indeed captured
        assert str(CANARY) not in shown.replace("CANARY", "")

    def test_an_engine_works_on_after_a_failure(self, engine: Engine, words: Words) -> None:
        with pytest.raises(EngineError):
            engine.in_snapshot(lambda: engine.fetch(f"SELECT {words.fail(chr(39) + 'x' + chr(39))} AS x"))
        assert one(engine, "1 + 1") == 2
        with pytest.raises(ZeroDivisionError):
            engine.in_snapshot(lambda: 1 // 0)
        assert one(engine, "1 + 1") == 2

    def test_snapshots_may_be_nested(self, engine: Engine) -> None:
        def inside() -> tuple[int, int]:
            return engine.in_snapshot(lambda: frequency(engine, "numbers", ["i"])), frequency(engine, "numbers", ["t"])

        assert engine.in_snapshot(inside) == (1, 3)
        assert engine.in_snapshot(lambda: one(engine, "1")) == 1

    def test_interrupted_from_another_thread(self, engine: Engine, words: Words) -> None:
        ended = threading.Event()

        def interrupt() -> None:
            while not ended.wait(0.1):  # again and again: on a busy machine the first may come before the query
                engine.interrupt()

        other = threading.Thread(target=interrupt)
        other.start()
        try:
            with pytest.raises(EngineError) as caught:
                engine.fetch(words.long)
        finally:
            ended.set()
            other.join()
        assert str(caught.value) == str(engine_failed())
        assert one(engine, "1 + 1") == 2

    @pytest.mark.skipif(os.name == "nt", reason="signals")
    def test_interrupted_by_the_user(self, engine: Engine, words: Words) -> None:
        before = signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in a shell's background ignore it
        try:
            pressing = threading.Thread(target=press_when_in, args=("fetch", threading.get_ident()))
            pressing.start()
            with pytest.raises(KeyboardInterrupt) as caught:
                engine.fetch(words.long)
            pressing.join()
        finally:
            signal.signal(signal.SIGINT, before)
        assert chain(caught.value) == [caught.value]
        assert one(engine, "1 + 1") == 2

    def test_closing_twice_and_what_comes_after(self, engine: Engine) -> None:
        engine.close()
        engine.close()
        engine.interrupt()
        for attempt in (lambda: engine.fetch("SELECT 1"), lambda: engine.table_sql("numbers")):
            with pytest.raises(EngineError):
                attempt()
        with pytest.raises(CannotOpen, match="DP006"):
            engine.describe()
        with pytest.raises(EngineError):
            engine.in_snapshot(pytest.fail)

    def test_what_it_says_of_itself(self, engine: Engine, words: Words) -> None:
        assert engine.dialect.name and "." in engine.version
        assert all(isinstance(note, str) for note in engine.notes)
        table = engine.describe().table("numbers")
        assert table is not None
        assert [(c.name, c.type) for c in table.columns] == list(zip(("i", "t"), words.types, strict=True))

    # --- a second connection ------------------------------------------------------------------------------------------

    def test_a_sibling_reads_the_same_while_a_snapshot_is_held(self, engine: Engine) -> None:
        """Whoever plans need not wait for whoever runs: without a second connection this would wait for ever."""
        held, goes_on = threading.Event(), threading.Event()

        def hold() -> None:
            held.set()
            goes_on.wait()

        runner = threading.Thread(target=lambda: engine.in_snapshot(hold), daemon=True)
        runner.start()
        held.wait()
        sibling, found = engine.sibling(), list[object]()

        def look() -> None:
            found.append(sibling.table_sql("numbers"))
            rows = f"SELECT i FROM {sibling.table_sql('numbers')} AS t0 ORDER BY i NULLS LAST"
            found.append(sibling.fetch(rows).columns[0])

        reader = threading.Thread(target=look, daemon=True)
        reader.start()
        reader.join(60)
        goes_on.set()
        runner.join()
        assert found == [engine.table_sql("numbers"), [0, 1, 2, None]]

    def test_a_sibling_is_closed_with_the_engine(self, engine: Engine) -> None:
        sibling = engine.sibling()
        engine.close()
        with pytest.raises(EngineError):
            sibling.fetch("SELECT 1")


class FailureContract:
    """Slower: every failure, and threads that stop, close and take turns."""

    def test_every_failure_is_the_same_error(self, engine: Engine, words: Words) -> None:
        constant = engine_failed()
        for kind, statement in words.failures.items():
            with pytest.raises(EngineError) as caught:
                engine.fetch(statement(f"{engine.table_sql('numbers')} AS t0"))
            error = caught.value
            assert (str(error), repr(error), error.args) == (str(constant), repr(constant), constant.args), kind
            assert error.diagnostics == constant.diagnostics
            assert chain(error) == [error]
            assert getattr(error, "__notes__", []) == []
        assert one(engine, "1 + 1") == 2

    def test_threads_take_turns(self, engine: Engine) -> None:
        wrong: list[object] = []
        d = engine.dialect

        def work(number: int) -> None:
            for i in range(20):
                table: RawTable = engine.fetch(
                    f"SELECT {number} * 1000 + {i} AS x, {d.cast(str(number), HUGEINT)} AS y"
                )
                if table.columns != ([number * 1000 + i], [number]):
                    wrong.append(table.columns)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []

    def test_closing_stops_a_running_query(self, engine: Engine, words: Words) -> None:
        timer = threading.Timer(0.3, engine.close)
        timer.start()
        with pytest.raises(EngineError):
            engine.fetch(words.long)
        timer.join()


def failures(fail: Callable[[str], str]) -> dict[str, Callable[[str], str]]:
    """What goes wrong in any SQL → a statement of it, over `t`. fail: as in `Words`."""
    return {
        "conversion": lambda t: f"SELECT CAST(t AS INTEGER) AS x FROM {t}",
        "overflow": lambda t: f"SELECT i + 9223372036854775807 AS x FROM {t}",
        "raised by the query": lambda t: f"SELECT {fail('t')} AS x FROM {t}",
        "unknown table": lambda t: "SELECT * FROM nowhere",
        "unknown column": lambda t: f"SELECT t{CANARY} FROM {t}",
        "syntax": lambda t: f"SELEC {CANARY}",
        "empty": lambda t: "",
        "two statements": lambda t: f"SELECT 1; SELECT t FROM {t}",
        "not a query": lambda t: f"CREATE TABLE x AS SELECT t FROM {t}",
        "a query that writes": lambda t: (
            "WITH w AS (INSERT INTO numbers SELECT * FROM numbers RETURNING *) SELECT * FROM w"
        ),
    }
