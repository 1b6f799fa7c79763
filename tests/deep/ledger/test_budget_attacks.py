"""Items 62 to 70, in many databases and in processes that race, fork and are killed."""

from __future__ import annotations

import io
import logging
import os
import pickle
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

import dpsql
from tests.core.ledger.test_budget_attacks import COUNT, PROBES, QUERIES, _policy
from tests.support.checklist_clinic import CANARY, MARKER, Clinic, assert_silent


def test_item_62_racing_sessions_never_overspend(make: Callable[..., Clinic]) -> None:
    """Eight threads with a session each, a budget for three answers."""
    clinic = make(policy=_policy("3"))
    sessions = [clinic.connect() for _ in range(8)]
    plans = [con.sql(COUNT).plan(epsilon=1) for con in sessions]
    barrier, outcomes = threading.Barrier(8), []

    def run(at: int) -> None:
        barrier.wait()
        try:
            outcomes.append(sessions[at].run(plans[at], fresh=True).rows)
        except dpsql.BudgetExceeded:
            outcomes.append(None)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(o is not None for o in outcomes) == 3 and len(outcomes) == 8
    assert sessions[0].budget["unit"].total_remaining == dpsql.core.privacy_loss.PrivacyLoss(delta=Fraction(9, 10))  # type: ignore[attr-defined]
    for con in sessions:
        con.close()


@pytest.mark.processes
def test_item_63_a_killed_run_is_charged(make: Callable[..., Clinic]) -> None:
    """SIGKILL between the reservation and the answer: the charge is on disk."""
    clinic = make(policy=_policy("10"))
    program = textwrap.dedent(
        """
        import os, signal, sys, dpsql
        con = dpsql.connect(sys.argv[1])
        plan = con.sql("SELECT COUNT(*) FROM patients").plan(epsilon=2)
        con.service.engine.fetch = lambda sql: os.kill(os.getpid(), signal.SIGKILL)
        con.run(plan)
        """
    )
    done = subprocess.run([sys.executable, "-c", program, str(clinic.policy)], capture_output=True, check=False)
    assert done.returncode == -9
    with clinic.connect() as con:
        assert con.budget["unit"].total_spent.epsilon == 2


@pytest.mark.processes
def test_item_68_a_forked_session_cannot_spend_twice(make: Callable[..., Clinic]) -> None:
    """A child of fork has the parent's ledger handle: it is refused instead of writing into the parent's chain."""
    program = textwrap.dedent(
        """
        import os, sys, dpsql
        con = dpsql.connect(sys.argv[1])
        con.execute("SELECT COUNT(*) FROM patients", epsilon=1)
        plan = con.sql("SELECT COUNT(*) FROM patients").plan(epsilon=1)
        child = os.fork()
        if not child:
            try:
                con.run(plan, fresh=True)
            except dpsql.Error as error:
                os._exit(7)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        con.run(plan, fresh=True)
        print(os.waitstatus_to_exitcode(status), con.budget["unit"].total_spent.epsilon)
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(make().policy)], capture_output=True, text=True, check=False
    )
    assert done.stdout.split() in (["7", "2"], ["0", "3"]), done.stderr


def test_item_69_the_canary_sings_nowhere(
    make: Callable[..., Clinic], capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Planted values appear in no answer, message, plan, note, log line, file or output stream."""
    caplog.set_level(logging.DEBUG)
    clinic = make()
    before = set(clinic.folder.rglob("*"))
    kept: list[str] = []
    spill = ""
    with clinic.connect(memory_limit="64MB", threads=1) as con:
        for sql in QUERIES:
            query = con.sql(sql)
            try:
                for shape in ("text", "json"):
                    kept.append(query.explain(1, 1e-3, format=shape, engine_sql=True))
                plan = query.plan(1, 1e-12)
                answer = con.run(plan)
            except dpsql.Error as error:
                assert_silent(error)
                continue
            kept += [
                repr(plan),
                repr(answer),
                str(answer),
                repr(answer._noisy),
                str(answer.notes),
                repr(answer.intervals()),
            ]
            kept += [
                repr(query),
                str(answer.to_dict()),
                pickle.dumps(plan).decode("latin-1"),
                repr(vars(con.service.facts)),
            ]
        kept += [repr(con), repr(con.budget), repr(con.service.engine.fetch("SELECT 1"))]
        spill = str(con.service.engine._connection.execute("SELECT current_setting('temp_directory')").fetchall()[0][0])  # type: ignore[attr-defined]
        for sql in QUERIES:
            kept.append(repr(dpsql.check(sql, clinic.policy)))
        files = [p for p in clinic.folder.rglob("*") if p.is_file() and p.name != "d.duckdb"]
        files += [p for p in Path(spill).rglob("*") if p.is_file()]
        assert {p.name for p in files} - {p.name for p in before} <= {
            "spent.sqlite",
            "spent.head",
            "spent.head.lock",
            "spent.sqlite-wal",
            "spent.sqlite-shm",
            "spent.sqlite-journal",
            "spent.sqlite.answers",
        }
        kept += [p.read_bytes().decode("latin-1") for p in files]
    kept += [p.read_bytes().decode("latin-1") for p in clinic.folder.rglob("*") if p.is_file() and p.name != "d.duckdb"]
    assert not os.path.exists(spill)
    streams = capfd.readouterr()
    kept += [streams.out, streams.err, caplog.text]
    assert len(kept) > 60
    for text in kept:
        assert CANARY not in text and MARKER not in text


def test_item_70_the_check_and_the_plan_are_the_same_for_every_database(make: Callable[..., Clinic]) -> None:
    """Empty, full, and full of other people: byte for byte the same findings, plans, prices and notes."""
    shown = []
    for clinic in (
        make(private=False),
        make(),
        make("INSERT INTO patients (pid, name, diag) SELECT i, 'x' || i, 'new' || i FROM range(10, 900) r(i)"),
    ):
        text = io.StringIO()
        for sql in PROBES:
            print([str(d) for d in dpsql.check(sql, clinic.policy)], file=text)
            with clinic.connect() as con:
                try:
                    plan = con.sql(sql).plan(1, 1e-12)
                    print(
                        con.sql(sql).explain(1, 1e-3, engine_sql=True), plan.cost, plan.notes, plan.columns, file=text
                    )
                    print(con.sql(sql).accuracy(1, 1e-3), file=text)
                except dpsql.Error as error:
                    print(error, file=text)
        shown.append(text.getvalue())
    assert shown[0] == shown[1] == shown[2] and len(shown[0]) > 5000


def test_item_70_the_check_opens_no_data(make: Callable[..., Clinic]) -> None:
    """Neither the file nor the engine is needed: in a fresh process duckdb is not even imported."""
    clinic = make()
    (clinic.folder / "d.duckdb").unlink()
    program = "import sys, dpsql; print(dpsql.check(sys.argv[1], sys.argv[2])); assert 'duckdb' not in sys.modules"
    for sql in (COUNT, "SELECT name FROM patients"):
        done = subprocess.run(
            [sys.executable, "-c", program, sql, str(clinic.policy)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert (done.stdout.strip() == "[]") == (sql == COUNT)
