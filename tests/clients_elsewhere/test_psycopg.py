"""psycopg 3: text and binary, prepared statements, pipelines, cursors, COPY, notices, cancelling, errors by class."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Iterator
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from dpsql.faces.server.statements import StatementSettings
from tests.support.answering import COLUMNS, Answers
from tests.support.served import PASSWORD, Served

psycopg = pytest.importorskip("psycopg")

ALL = ", ".join(COLUMNS)
ROW = {
    **{name: value for name, (_, value) in COLUMNS.items()},
    "huge": Decimal(2**70),
    "tz": dt.datetime(2025, 1, 2, tzinfo=dt.UTC),
    "u": UUID(int=7),
}

VALUES: list[Any] = [
    True, 1.5, Decimal("1.50"), dt.date(2025, 1, 2), dt.datetime(2025, 1, 2, 3), dt.timedelta(days=2, hours=-3),
    dt.datetime(2025, 1, 2, 3, tzinfo=dt.UTC), dt.time(1, 2), UUID(int=9), b"\x00", [1, None],
]  # fmt: skip


@pytest.fixture
def connection(served: Served) -> Iterator[Any]:
    with psycopg.connect(served.dsn, autocommit=True) as found:
        yield found


@pytest.mark.parametrize("binary", [False, True])
def test_every_type_in_text_and_in_bytes(connection: Any, binary: bool) -> None:
    cursor = connection.execute(f"SELECT {ALL} FROM numbers(2)", binary=binary)
    assert [c.name for c in cursor.description] == list(COLUMNS)
    assert cursor.fetchall() == [tuple(ROW.values())] * 2
    dec = cursor.description[list(COLUMNS).index("dec")]
    assert (dec.precision, dec.scale) == (10, 2)


def test_the_connection_is_under_tls(served: Served, connection: Any) -> None:
    assert connection.pgconn.ssl_in_use and connection.info.server_version == 150000
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(served.dsn.replace(PASSWORD, "wrong wrong"))
    with pytest.raises(psycopg.OperationalError, match='database "other" does not exist'):
        psycopg.connect(served.dsn, dbname="other")
    with pytest.raises(psycopg.OperationalError, match="channel binding"):
        psycopg.connect(served.dsn, channel_binding="require")


@pytest.mark.parametrize("value", [5, 70_000, 2**40])
def test_parameters_have_their_types(connection: Any, answers: Answers, value: int) -> None:
    connection.execute("SELECT n WHERE x = %s AND y = %s", [value, "a"])
    connection.execute("SELECT n WHERE x = %b AND y = %b", [value, "a"])
    assert [values for _, _, values, _ in answers.asked] == [(value, "a")] * 2


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_values_arrive_as_they_were_sent(connection: Any, answers: Answers, value: object) -> None:
    for mark in ("%t", "%b"):
        connection.execute(f"SELECT n WHERE x = {mark}", [value])
        assert answers.asked[-1][2] == (value,)


def test_a_prepared_statement_is_run_again(connection: Any, answers: Answers) -> None:
    for i in range(7):
        assert connection.execute("SELECT n WHERE x = %s", [i], prepare=True).fetchone() == (42,)
    assert [values for _, _, values, _ in answers.asked] == [(i,) for i in range(7)]


def test_a_pipeline_answers_all_that_came_before_an_error(connection: Any) -> None:
    with pytest.raises(psycopg.errors.UndefinedTable), connection.pipeline():
        first = connection.execute("SELECT n")
        connection.execute("SELECT n FROM nowhere")
    assert first.fetchone() == (42,)
    with connection.pipeline() as pipeline:
        cursors = [connection.execute("SELECT n WHERE x = %s", [i]) for i in range(4)]
        pipeline.sync()
    assert [c.fetchone() for c in cursors] == [(42,)] * 4


def test_a_named_cursor_fetches_in_pieces(connection: Any, answers: Answers) -> None:
    with connection.transaction(), connection.cursor("c") as cursor:
        cursor.itersize = 3
        cursor.execute("SELECT n FROM numbers(10) WHERE x = %s", [5])
        assert cursor.description[0].name == "n"
        assert sum(1 for _ in cursor) == 10
    with connection.cursor("scroll", scrollable=True, withhold=True) as cursor:
        cursor.execute("SELECT n FROM numbers(4)")
        assert len(cursor.fetchmany(3)) == 3
        cursor.scroll(1, mode="absolute")
        assert len(cursor.fetchall()) == 3
    assert len(answers.asked) == 2


def test_copy_to_text_and_bytes(connection: Any) -> None:
    with connection.cursor().copy("COPY (SELECT n, region FROM numbers(2)) TO STDOUT") as copy:
        assert b"".join(copy).decode() == "42\tnorð\n" * 2
    with connection.cursor().copy("COPY (SELECT n, region) TO STDOUT (FORMAT binary)") as copy:
        copy.set_types(["int8", "text"])
        assert list(copy.rows()) == [(42, "norð")]


def test_notices_and_warnings_are_told(connection: Any) -> None:
    told: list[tuple[str, str]] = []
    connection.add_notice_handler(lambda d: told.append((d.severity_nonlocalized, d.message_primary)))
    connection.execute("SELECT n")
    connection.execute("SET client_min_messages = warning")
    connection.execute("SELECT n")
    assert told == [("NOTICE", "spent ε 0.5")]


def test_errors_have_a_place_a_hint_and_a_class(connection: Any) -> None:
    with pytest.raises(psycopg.errors.UndefinedTable) as refused:
        connection.execute("SELECT 'ε', n FROM nowhere WHERE x = %s", [1])
    diag = refused.value.diag
    assert diag.statement_position == str("SELECT 'ε', n FROM nowhere".index("nowhere") + 1)
    assert diag.message_hint == "SELECT n" and diag.message_primary == "[DP102] unknown table"
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        connection.execute("INSERT INTO t VALUES (1)")


def test_transactions_have_the_state_that_the_client_expects(served: Served) -> None:
    with psycopg.connect(served.dsn) as connection:
        connection.execute("SET epsilon = 2")
        connection.rollback()
        assert connection.execute("SHOW epsilon").fetchone() == ("",)
        with pytest.raises(psycopg.errors.UndefinedTable):
            connection.execute("nonsense")
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.INERROR
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            connection.execute("SELECT n")
        connection.rollback()
        with connection.transaction(), connection.transaction():
            assert connection.execute("SELECT n").fetchone() == (42,)


def test_epsilon_may_come_with_the_connection(served: Served, answers: Answers) -> None:
    with psycopg.connect(served.dsn, options="-c dpsql.epsilon=0.5 -c delta=1e-9") as connection:
        connection.execute("SELECT n")
    assert answers.asked[0][3] == StatementSettings(epsilon="0.5", delta="1e-9")


def test_a_statement_is_cancelled(connection: Any, answers: Answers) -> None:
    answers.hold = True
    stopping = threading.Thread(target=lambda: answers.running.wait(60) and connection.cancel_safe(timeout=60))
    stopping.start()
    with pytest.raises(psycopg.errors.QueryCanceled):
        connection.execute("SELECT n")
    stopping.join(60)
    answers.hold = False
    assert connection.execute("SELECT n").fetchone() == (42,)


def test_a_batch_has_one_result_after_the_other(connection: Any) -> None:
    cursor = connection.execute("DP BATCH (SELECT n, region FROM numbers(2); SELECT i)")
    assert cursor.fetchall() == [(42, "norð")] * 2
    assert cursor.nextset() and cursor.fetchall() == [(-1,)] and [c.name for c in cursor.description] == ["i"]
    assert not cursor.nextset()
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="several answers"):
        connection.execute("DP BATCH (SELECT n; SELECT i)", prepare=True)
    assert connection.execute("SELECT n").fetchone() == (42,)
