"""A cluster that is killed or whose query is cancelled: one constant error, paid, and nothing leaked.

Every planted value is looked for in all that the session puts out, in log lines and in the files that it leaves
(tests/support/canary.py); the cluster's own log is the custodian's and no part of these.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import dpsql
from dpsql.core.engine import engine_failed
from dpsql.core.release.noisy import exact_totals
from dpsql.diagnostics.errors import CannotOpen, EngineError
from tests.engines_elsewhere.spark.servers import Server, running, why_not
from tests.engines_elsewhere.spark.test_engine_contract import ENDLESS
from tests.support.canary import MARKER, NUMBER, holds

ORDERS = (
    f"SELECT id % 500 AS customer, CASE WHEN id = 7 THEN '{MARKER}' ELSE '1' END AS note, "
    f"CASE WHEN id = 7 THEN {NUMBER} ELSE id END AS amount FROM range(20000)"
)
pytestmark = pytest.mark.long_on_spark  # they have a cluster of their own
POLICY = """
version: 1
name: shop
database: ADDRESS
tables:
  orders:
    source: read_parquet('FOLDER/orders')
    unit: {of: customer, column: customer}
    max_rows_per_unit: 50
    columns: {customer: , amount: {bounds: [0, 100000]}, note: {type: varchar}}
budgets: {total: {epsilon: 100}}
"""
WORD = "quoted"
"""What a test may show."""


@pytest.fixture
def policy(own_cluster: Server, tmp_path: Path) -> Iterator[Path]:
    if own_cluster.watch is None:  # a test that failed has left it so
        own_cluster.start()
    with own_cluster.admin() as admin:
        admin.sql(ORDERS).write.mode("overwrite").parquet(str(tmp_path / "orders"))
    file = tmp_path / "shop.yaml"
    text = POLICY.replace("ADDRESS", own_cluster.address).replace("FOLDER", str(tmp_path))
    file.write_text(text, encoding="utf-8")
    yield file


@pytest.fixture
def slowly(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """The query of an amount of 12345 takes for ever; set as it begins."""
    import dpsql.engines.spark.engine as engine

    begun, read = threading.Event(), engine.read

    def reading(session: object, sql: str, stop: object) -> object:
        if "12345" in sql:
            begun.set()
            sql = ENDLESS
        return read(session, sql, stop)  # type: ignore[arg-type]

    monkeypatch.setattr(engine, "read", reading)
    return begun


def _cancel(cluster: Server, con: dpsql.Connection) -> None:
    """As an administrator of the cluster does: every operation of the session."""
    found: list[str] = []
    while not found:
        found = con.service.engine._session.interruptAll()  # type: ignore[attr-defined]


ENDS: dict[str, Callable[[Server, dpsql.Connection], None]] = {
    "the cluster is killed": lambda cluster, con: cluster.kill(),
    "the query is cancelled": _cancel,
}


@pytest.mark.parametrize("end", ENDS)
def test_a_query_that_is_ended_is_paid_and_says_nothing(
    own_cluster: Server, policy: Path, slowly: threading.Event, end: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with dpsql.connect(policy) as con:
        assert con.sql("SELECT COUNT(*) AS n FROM orders").run(epsilon=1).rows

        def wait() -> None:
            slowly.wait(300)
            ENDS[end](own_cluster, con)

        ending = threading.Thread(target=wait, daemon=True)
        ending.start()
        asked = con.sql("SELECT COUNT(*) AS n FROM orders WHERE amount < 12345")
        with pytest.raises(EngineError) as caught:
            asked.run(epsilon=2)
        ending.join(300)
        assert not ending.is_alive()
        assert str(caught.value) == str(engine_failed()) and caught.value.__cause__ is caught.value.__context__ is None
        assert con.budget["customer"].spent.epsilon == 3
        if "cluster" in end:
            with pytest.raises(CannotOpen, match="cannot be reached"):  # nothing is begun, and nothing charged
                con.sql("SELECT SUM(amount) AS n FROM orders").run(epsilon=1)
            assert con.budget["customer"].spent.epsilon == 3
            own_cluster.start()
        answer = con.sql("SELECT SUM(amount) AS n FROM orders").run(epsilon=1)
        assert answer.rows and con.budget["customer"].spent.epsilon == 4
        assert not any(holds(note) for note in answer.notes)
    assert not holds(caplog.text)


@pytest.fixture(scope="module")
def executors() -> Iterator[Server]:
    """A cluster whose tasks run in processes of their own."""
    if reason := why_not():
        pytest.skip(reason)
    if not Path("/proc/self").exists():
        pytest.skip("executors are found by /proc")
    with running({"spark.executor.memory": "512m"}, "local-cluster[2,1,512]") as cluster:
        yield cluster


def test_an_executor_that_is_lost_is_made_good(
    executors: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Its tasks are done again by another, and the numbers are the same."""
    import dpsql.engines.spark.engine as engine

    with executors.admin() as admin:
        admin.sql(ORDERS).repartition(4).write.parquet(str(tmp_path / "orders"))
    file, read, over, begun = tmp_path / "shop.yaml", engine.read, threading.Event(), False
    file.write_text(POLICY.replace("ADDRESS", executors.address).replace("FOLDER", str(tmp_path)), encoding="utf-8")

    def killing() -> None:
        while not over.wait(0.05):
            for process in executors.executors[:1]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
                    return

    def reading(session: object, sql: str, stop: object) -> object:
        if begun and "12345" in sql:
            threading.Thread(target=killing, daemon=True).start()
        try:
            return read(session, sql, stop)  # type: ignore[arg-type]
        finally:
            if begun:
                over.set()

    monkeypatch.setattr(engine, "read", reading)
    with dpsql.connect(file, epsilon=1) as con:
        asked = con.sql("SELECT COUNT(*) AS n, SUM(amount) AS s FROM orders WHERE amount < 12345")
        (release,) = asked.plan().releases
        right = exact_totals(release, con.service.engine, 7)
        begun = True
        assert exact_totals(release, con.service.engine, 7) == right and over.is_set()
        assert asked.run(epsilon=1).rows and con.budget["customer"].spent.epsilon == 1
    shown = capfd.readouterr()
    assert not holds(shown.out + shown.err)


def test_a_value_that_the_cluster_quotes_is_shown_nowhere(
    own_cluster: Server, policy: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """dpsql prints nothing that fails on a row; here a statement of its does."""
    import dpsql.engines.spark.engine as engine

    read, quoted = engine.read, list[str]()

    def failing(session: object, sql: str, stop: object) -> object:
        if "12345" in sql:
            table = sql[sql.index("`system`") :].partition(" ")[0]
            try:
                return read(session, f"SELECT CAST(note AS INT) AS x FROM {table}", stop)  # type: ignore[arg-type]
            except Exception as error:
                quoted.append(str(error))
                raise
        return read(session, sql, stop)  # type: ignore[arg-type]

    monkeypatch.setattr(engine, "read", failing)
    caplog.set_level(logging.DEBUG)
    with dpsql.connect(policy) as con, pytest.raises(EngineError) as caught:
        con.sql("SELECT COUNT(*) AS n FROM orders WHERE amount < 12345").run(epsilon=1)
    assert str(caught.value) == str(engine_failed())
    assert quoted and holds(quoted[0])  # the client was told, and its loggers are silent
    shown = capfd.readouterr()
    assert not holds(caplog.text + shown.out + shown.err + repr(caught.value))
    assert not any(holds(path.read_bytes()) for path in policy.parent.iterdir() if path.is_file())


def test_the_client_says_it_where_nobody_silences_it(own_cluster: Server, capfd: pytest.CaptureFixture[str]) -> None:
    """The twin of the one above: what the loggers would write."""
    from pyspark.logger import PySparkLogger

    from dpsql.engines.spark.connecting import silence

    logger = PySparkLogger.getLogger("SQLQueryContextLogger")
    before = logger.disabled, logger.level
    for handler in logger.handlers:
        if type(handler) is logging.StreamHandler:
            handler.setStream(sys.stderr)  # which was another's when the logger was made
    logger.disabled = False
    logger.setLevel(logging.INFO)
    with own_cluster.admin() as admin, pytest.raises(Exception, match=WORD):
        admin.sql(f"SELECT CAST('{WORD}' || id AS INT) FROM range(1)").toArrow()
    logger.error(WORD)
    assert WORD in capfd.readouterr().err
    silence()
    assert logger.disabled
    logger.error(WORD)
    assert WORD not in capfd.readouterr().err
    logger.disabled = before[0]
    logger.setLevel(before[1])
    silence()
