"""What every engine promises: exact results, one constant error, one snapshot, and that it can be stopped and closed.

A new engine adds a function to `ENGINES` (tests/support/engines.py) and inherits the rest.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest

from dpsql.core.engine import Engine, engine_failed
from dpsql.diagnostics.errors import CannotOpen, EngineError
from dpsql.engines.duckdb.engine import DuckDBEngine
from dpsql.engines.public_facts import frequency
from tests.support.engines import CANARY, ENGINES

_LONG = "SELECT COUNT(*) FROM range(100000) a(i), range(400000) b(i) WHERE (a.i * b.i) % 7 = 3"


@pytest.fixture(params=ENGINES, ids=lambda make: make.__name__)
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    opened: Engine = request.param(tmp_path)
    yield opened
    opened.close()


def one(engine: Engine, expression: str) -> object:
    return engine.fetch(f"SELECT {expression} AS x").columns[0][0]


@pytest.mark.parametrize("type_", ["BIGINT", "HUGEINT"])
def test_integer_division_truncates_towards_zero(engine: Engine, type_: str) -> None:
    for a, b, quotient in ((-7, 2, -3), (7, -2, -3), (7, 2, 3), (-7, -2, 3), (-1, 2, 0), (-8, 2, -4)):
        assert one(engine, f"CAST({a} AS {type_}) // CAST({b} AS {type_})") == quotient


def test_large_integers_are_exact(engine: Engine) -> None:
    edges = [e for p in (53, 62, 63, 64, 65, 100, 126) for e in (2**p - 1, 2**p, 2**p + 1)] + [2**127 - 1, 0]
    values = [*edges, *(-e for e in edges), -(2**127), None]
    rows = ", ".join(f"({i}, " + ("NULL" if v is None else f"'{v}'") + ")" for i, v in enumerate(values))
    table = engine.fetch(f"SELECT CAST(v AS HUGEINT) AS h FROM (VALUES {rows}) t(i, v) ORDER BY i")
    assert table.columns[0] == values
    assert {type(v) for v in table.columns[0]} == {int, type(None)}
    beside_a_date = engine.fetch(
        f"SELECT CAST(v AS HUGEINT) AS h, DATE '2024-01-01' FROM (VALUES {rows}) t(i, v) ORDER BY i"
    )
    assert beside_a_date.columns[0] == values


def test_every_type_arrives_as_the_plain_python_value(engine: Engine) -> None:
    cases: list[tuple[str, object]] = [
        ("9223372036854775807::BIGINT", 2**63 - 1),
        ("18446744073709551615::UBIGINT", 2**64 - 1),
        ("127::TINYINT", 127),
        ("0.1::DOUBLE", 0.1),
        ("1e308::DOUBLE", 1e308),
        ("TRUE", True),
        ("'é''x'", "é'x"),
        ("''", ""),
        ("12345678901234567890123456789012.123456::DECIMAL(38,6)", Decimal("12345678901234567890123456789012.123456")),
        ("DATE '2024-02-29'", date(2024, 2, 29)),
        ("TIMESTAMP '2024-02-29 23:59:59.999999'", datetime(2024, 2, 29, 23, 59, 59, 999999)),
        ("NULL::BIGINT", None),
        ("NULL::VARCHAR", None),
        ("NULL::DOUBLE", None),
        ("NULL::BOOLEAN", None),
        ("NULL::DECIMAL(9,2)", None),
    ]
    for expression, value in cases:
        got = one(engine, expression)
        assert (type(got), got) == (type(value), value), expression
    together = engine.fetch("SELECT " + ", ".join(expression for expression, _ in cases))
    assert [c[0] for c in together.columns] == [value for _, value in cases]


def test_columns_keep_their_order_and_may_share_names(engine: Engine) -> None:
    for kind in ("BIGINT", "HUGEINT", "DATE"):
        value = "DATE '2024-01-01'" if kind == "DATE" else f"3::{kind}"
        table = engine.fetch(f"SELECT 2 AS b, 1 AS a, {value} AS z, 4 AS b, 5 AS A")
        assert table.names == ("b", "a", "z", "b", "A")
        assert [c[0] for c in table.columns][:2] == [2, 1] and [c[0] for c in table.columns][3:] == [4, 5]


def test_an_order_by_is_kept_and_no_rows_is_a_table_too(engine: Engine) -> None:
    for kind in ("BIGINT", "HUGEINT"):
        sql = f"SELECT CAST((i * 7919) % 100003 AS {kind}) AS x FROM range(100003) t(i)"
        assert engine.fetch(f"{sql} ORDER BY x").columns == (list(range(100003)),)
        assert engine.fetch(f"SELECT * FROM ({sql}) WHERE FALSE").columns == ([],)
    assert engine.fetch("SELECT 1 AS a, DATE '2024-01-01' AS d WHERE FALSE").columns == ([], [])


def test_a_raw_table_shows_nothing(engine: Engine) -> None:
    table = engine.fetch(f"SELECT i, t FROM {engine.table_sql('NUMBERS')} ORDER BY i NULLS LAST")
    assert (repr(table), str(table), f"{table}") == ("<private>",) * 3
    assert table.height == 4 and next(table.rows()) == (0, f"x{CANARY}")


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


def test_no_frame_of_a_failure_holds_a_value(engine: Engine) -> None:
    """The same for tools that print the local variables of a traceback's frames."""
    sql = f"SELECT error('canary ' || t) FROM {engine.table_sql('numbers')}"
    with pytest.raises(EngineError) as caught:
        engine.fetch(sql)
    shown = "".join(traceback.TracebackException.from_exception(caught.value, capture_locals=True).format())
    assert "SELECT error" in shown  # local variables are indeed captured
    assert str(CANARY) not in shown.replace("CANARY", "")


def test_an_engine_works_on_after_a_failure(engine: Engine) -> None:
    with pytest.raises(EngineError):
        engine.in_snapshot(lambda: engine.fetch("SELECT error('x')"))
    assert one(engine, "1 + 1") == 2
    with pytest.raises(ZeroDivisionError):
        engine.in_snapshot(lambda: 1 // 0)
    assert one(engine, "1 + 1") == 2


def test_snapshots_may_be_nested(engine: Engine) -> None:
    def inside() -> tuple[int, int]:
        return engine.in_snapshot(lambda: frequency(engine, "numbers", ["i"])), frequency(engine, "numbers", ["t"])

    assert engine.in_snapshot(inside) == (1, 3)
    assert engine.in_snapshot(lambda: one(engine, "1")) == 1


def test_a_snapshot_is_of_one_moment(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "d.duckdb")) as con:
        con.execute("CREATE TABLE pub AS SELECT 1 AS k")
        engine = DuckDBEngine.wrap(con)

        def inside() -> tuple[int, int]:
            before = frequency(engine, "pub", ["k"])
            con.execute("INSERT INTO pub VALUES (1)")
            return before, frequency(engine, "pub", ["k"])

        assert engine.in_snapshot(inside) == (1, 1)
        assert frequency(engine, "pub", ["k"]) == 2
        engine.close()


def test_interrupted_from_another_thread(engine: Engine) -> None:
    ended = threading.Event()

    def interrupt() -> None:
        while not ended.wait(0.1):  # again and again: on a busy machine the first may come before the query
            engine.interrupt()

    other = threading.Thread(target=interrupt)
    other.start()
    try:
        with pytest.raises(EngineError) as caught:
            engine.fetch(_LONG)
    finally:
        ended.set()
        other.join()
    assert str(caught.value) == str(engine_failed())
    assert one(engine, "1 + 1") == 2


def press_when_in(function: str, thread: int) -> None:
    """Ctrl-C, a moment after this thread has entered a function of this name."""
    found = False
    while not found:
        time.sleep(0.2)
        frame = sys._current_frames().get(thread)
        while frame is not None and not found:
            found, frame = frame.f_code.co_name == function, frame.f_back
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_interrupted_by_the_user(engine: Engine) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in a shell's background ignore it
    try:
        pressing = threading.Thread(target=press_when_in, args=("fetch", threading.get_ident()))
        pressing.start()
        with pytest.raises(KeyboardInterrupt) as caught:
            engine.fetch(_LONG)
        pressing.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert chain(caught.value) == [caught.value]
    assert one(engine, "1 + 1") == 2


def test_closing_twice_and_what_comes_after(engine: Engine) -> None:
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


def test_what_it_says_of_itself(engine: Engine) -> None:
    assert engine.dialect.name == "duckdb" and engine.version.count(".") >= 2
    assert all(isinstance(note, str) for note in engine.notes)
    table = engine.describe().table("numbers")
    assert table is not None and [(c.name, c.type) for c in table.columns] == [("i", "BIGINT"), ("t", "VARCHAR")]


# --- a second connection ----------------------------------------------------------------------------------------------


def test_a_sibling_reads_the_same_while_a_snapshot_is_held(engine: Engine) -> None:
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
        found.append(sibling.fetch(f"SELECT i FROM {sibling.table_sql('numbers')} ORDER BY i").columns[0])

    reader = threading.Thread(target=look, daemon=True)
    reader.start()
    reader.join(60)
    goes_on.set()
    runner.join()
    assert found == [engine.table_sql("numbers"), [0, 1, 2, None]]


def test_a_sibling_is_set_and_locked_as_the_engine_is(engine: Engine) -> None:
    settings = "SELECT name, value FROM duckdb_settings() ORDER BY name"
    assert engine.sibling().fetch(settings).columns == engine.fetch(settings).columns
    assert engine.sibling().notes == engine.notes and engine.sibling().version == engine.version


def test_a_sibling_is_closed_with_the_engine(engine: Engine) -> None:
    sibling = engine.sibling()
    engine.close()
    with pytest.raises(EngineError):
        sibling.fetch("SELECT 1")
