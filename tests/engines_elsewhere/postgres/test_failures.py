"""A server that is killed, cut off, cancelled, or out of space: one constant error, paid, and nothing leaked.

Every planted value is looked for in all that the session puts out, in log lines and in the files that it leaves
(tests/support/canary.py); the server's own log is the custodian's and no part of these.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import dpsql
from dpsql.core.engine import engine_failed
from dpsql.diagnostics.errors import CannotOpen, EngineError
from tests.engines_elsewhere.postgres.servers import Server
from tests.support.canary import MARKER, NUMBER, holds

SCRIPT = f"""
CREATE TABLE orders AS SELECT (i % 500)::bigint AS customer, CASE WHEN i = 7 THEN '{MARKER}' ELSE '1' END AS note,
  CASE WHEN i = 7 THEN {NUMBER} ELSE i END::bigint AS amount FROM generate_series(0, 19999) AS t(i);
CREATE VIEW slow AS SELECT o.* FROM orders AS o, generate_series(1, 100000000) AS g WHERE o.amount <> -g;
CREATE VIEW broken AS SELECT customer, CAST(note AS bigint) AS amount FROM orders;
"""
POLICY = """
version: 1
name: shop
database: ADDRESS
tables:
  orders: &rows
    unit: {of: customer, column: customer}
    max_rows_per_unit: 50
    columns: {customer: , amount: {bounds: [0, 100000]}}
  slow: *rows
  broken: *rows
budgets: {total: {epsilon: 100}}
"""
ACTIVE = """SELECT pid FROM pg_stat_activity
WHERE usename = 'reader' AND state = 'active' AND query LIKE '%SELECT%"slow"%'"""


@pytest.fixture
def policy(own_server: Server, tmp_path: Path) -> Iterator[Path]:
    if not own_server.answers:  # a test that failed has left it so
        own_server.start()
    name = own_server.new_database(SCRIPT)
    file = tmp_path / "shop.yaml"
    file.write_text(POLICY.replace("ADDRESS", own_server.address(name)), encoding="utf-8")
    yield file
    own_server.drop(name)


def database_of(policy: Path) -> str:
    return policy.read_text(encoding="utf-8").partition("reader@/")[2].partition("?")[0]


def when_it_runs(server: Server, policy: Path, action: Callable[[int], None]) -> threading.Thread:
    """Does something to the session that runs the slow query, as soon as there is one."""

    def wait() -> None:
        with server.admin() as admin:
            found = None
            while found is None:
                found = admin.execute(ACTIVE).fetchone()
        action(found[0])

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


def execute(server: Server, sql: str) -> None:
    with server.admin() as admin:
        admin.execute(sql)


ENDS: dict[str, Callable[[Server], Callable[[int], None]]] = {
    "the server is killed": lambda server: lambda pid: server.kill(),
    "its session is killed": lambda server: lambda pid: os.kill(pid, signal.SIGKILL),
    "the connection is cut": lambda server: lambda pid: execute(server, f"SELECT pg_terminate_backend({pid})"),
    "the query is cancelled": lambda server: lambda pid: execute(server, f"SELECT pg_cancel_backend({pid})"),
    "the server is stopped": lambda server: lambda pid: server.stop(),
}


@pytest.mark.parametrize("end", ENDS)
def test_a_query_that_is_ended_is_paid_and_says_nothing(
    own_server: Server, policy: Path, end: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with dpsql.connect(policy) as con:
        assert con.sql("SELECT COUNT(*) AS n FROM orders").run(epsilon=1).rows
        con.sql("SELECT COUNT(*) AS n FROM slow").explain(epsilon=1)
        ending = when_it_runs(own_server, policy, ENDS[end](own_server))
        with pytest.raises(EngineError) as caught:
            con.sql("SELECT COUNT(*) AS n FROM slow").run(epsilon=2)
        ending.join(300)
        assert not ending.is_alive()
        assert str(caught.value) == str(engine_failed()) and caught.value.__cause__ is caught.value.__context__ is None
        assert con.budget["customer"].spent.epsilon == 3
        if "server" in end:
            with pytest.raises(CannotOpen, match="cannot be reached"):  # nothing is begun, and nothing charged
                con.sql("SELECT SUM(amount) AS n FROM orders").run(epsilon=1)
            assert con.budget["customer"].spent.epsilon == 3
            own_server.start()
        elif end == "its session is killed":
            while not own_server.answers:  # every session is ended, and the server starts anew
                pass
        answer = con.sql("SELECT SUM(amount) AS n FROM orders").run(epsilon=1)
        assert answer.rows and con.budget["customer"].spent.epsilon == 4
        assert not any(holds(note) for note in answer.notes)
        # What failed was not stored: to ask it again is to pay again.
        with own_server.admin(database_of(policy)) as admin:
            admin.execute("CREATE OR REPLACE VIEW slow AS SELECT * FROM orders")
        assert con.sql("SELECT COUNT(*) AS n FROM slow").run(epsilon=2).rows
        assert con.budget["customer"].spent.epsilon == 6
    assert not holds(caplog.text)


def test_running_out_of_temporary_space(own_server: Server, policy: Path) -> None:
    name = database_of(policy)
    with own_server.admin() as admin:
        admin.execute(f"ALTER ROLE reader IN DATABASE {name} SET work_mem = '64kB'")
        admin.execute(f"ALTER ROLE reader IN DATABASE {name} SET temp_file_limit = '8kB'")
    with dpsql.connect(policy) as con:
        with pytest.raises(EngineError) as caught:
            con.sql("SELECT COUNT(DISTINCT amount) AS n FROM orders").run(epsilon=1)
        assert str(caught.value) == str(engine_failed()) and con.budget["customer"].spent.epsilon == 1
        assert con.sql("SELECT COUNT(*) AS n FROM orders").run(epsilon=1).rows
    assert "temporary file size exceeds temp_file_limit" in (own_server.folder / "log").read_text()


def test_a_value_that_the_server_quotes_is_shown_nowhere(
    own_server: Server, policy: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    with dpsql.connect(policy) as con:
        for sql in ("SELECT SUM(amount) AS n FROM broken", "SELECT COUNT(*) AS n FROM broken WHERE amount = 1"):
            with pytest.raises(EngineError) as caught:
                con.sql(sql).run(epsilon=1)
            assert str(caught.value) == str(engine_failed())
    shown = capfd.readouterr()
    assert not holds(caplog.text + shown.out + shown.err + repr(caught.value))
    assert holds((own_server.folder / "log").read_text())  # the server's own log says it: that is the custodian's
    assert not any(holds(path.read_bytes()) for path in policy.parent.iterdir())


def test_a_statement_timeout_of_the_custodian_is_the_constant_error(own_server: Server, policy: Path) -> None:
    with own_server.admin() as admin:
        admin.execute(f"ALTER ROLE reader IN DATABASE {database_of(policy)} SET statement_timeout = '300ms'")
    with dpsql.connect(policy) as con:
        with pytest.raises(EngineError) as caught:
            con.sql("SELECT COUNT(*) AS n FROM slow").run(epsilon=1)
        assert str(caught.value) == str(engine_failed()) and con.budget["customer"].spent.epsilon == 1


def test_the_data_changes_between_the_statements_of_one_run(own_server: Server, policy: Path) -> None:
    """A run that asks several times sees one moment: the second statement would see twice as many rows."""
    import dpsql.engines.postgres.engine as engine

    name, read, asked = database_of(policy), engine.read, list[str]()

    def reading(connection: object, sql: str, stop: object) -> object:
        found = read(connection, sql, stop)  # type: ignore[arg-type]
        asked.append(sql)
        with own_server.admin(name) as admin:
            admin.execute("INSERT INTO orders SELECT customer + 1000, note, 1 FROM orders WHERE customer < 1000")
        return found

    with pytest.MonkeyPatch.context() as patch, dpsql.connect(policy) as con:
        patch.setattr(engine, "read", reading)
        first, second = (f"SELECT COUNT(*) AS n FROM orders WHERE amount {more}" for more in (">= 0", "> -1"))
        answer = con.sql(f"{first} UNION ALL {second}").run(epsilon=90)
        assert len(asked) == 2
        with own_server.admin(name) as admin:
            assert admin.execute("SELECT count(*) > 39000 FROM orders").fetchone() == (True,)
        assert all(abs(n - 20000) < 2000 for (n,) in answer.rows)  # noise of more: 1e-17
