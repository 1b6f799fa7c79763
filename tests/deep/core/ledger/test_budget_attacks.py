"""Items 62 to 70, in many databases and in processes that race, fork and are killed."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import pickle
import shutil
import sqlite3
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

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
            "spent.sqlite.answers-wal",
            "spent.sqlite.answers-shm",
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


def test_item_63_what_was_reserved_is_kept_on_interrupts(make: Callable[..., Clinic]) -> None:
    """Ctrl-C, an engine failure and a failure of ours after the reservation all keep it."""
    clinic = make(policy=_policy("10"))
    for expected, failure in enumerate((KeyboardInterrupt(), MemoryError(), RuntimeError(CANARY), RecursionError()), 1):
        with clinic.connect() as con:
            plan = con.sql(COUNT).plan(epsilon=1)

            def broken(sql: str, failure: BaseException = failure) -> Any:
                raise failure

            con.service.engine.fetch = broken  # type: ignore[method-assign]
            with pytest.raises((dpsql.EngineError, KeyboardInterrupt)) as caught:
                con.run(plan)
            assert_silent(caught.value)
            assert con.budget["unit"].total_spent.epsilon == expected


def test_item_64_budgets_are_exact(make: Callable[..., Clinic]) -> None:
    """Ten tenths are one, and nothing more fits; three tenths fit into 0.3."""
    for budget, times in (("1", 10), ("0.3", 3)):
        with make(policy=_policy(budget)).connect() as con:
            for _ in range(times):
                con.execute(COUNT, epsilon=0.1, fresh=True)
            with pytest.raises(dpsql.BudgetExceeded):
                con.execute(COUNT, epsilon="1e-12", fresh=True)
            assert con.budget["unit"].total_spent.epsilon == Fraction(budget)


def test_item_65_an_old_ledger_is_refused(make: Callable[..., Clinic]) -> None:
    """Restoring a copy does not bring the budget back; neither does removing the file."""
    clinic = make(policy=_policy("3"))
    with clinic.connect() as con:
        con.execute(COUNT, epsilon=1)
    ledger = clinic.folder / "spent.sqlite"
    shutil.copy(ledger, clinic.folder / "copy")
    with clinic.connect() as con:
        con.execute(COUNT, epsilon=2)
    for damage in (lambda: shutil.copy(clinic.folder / "copy", ledger), ledger.unlink):
        for rest in clinic.folder.glob("spent.sqlite-*"):
            rest.unlink()
        damage()
        for _ in range(2):
            with clinic.connect() as con, pytest.raises(dpsql.Error) as caught:
                con.execute(COUNT, epsilon=1)
            assert "DP407" in str(caught.value)


def test_item_65_another_data_version_or_policy_text_resets_nothing(make: Callable[..., Clinic]) -> None:
    clinic = make(policy=_policy("3"))
    with clinic.connect() as con:
        con.execute(COUNT, epsilon=3)
    clinic.policy.write_text(clinic.policy.read_text().replace("version: 1\n", 'version: 1\ndata_version: "2"\n'))
    clinic.execute("DELETE FROM visits")
    with clinic.connect() as con, pytest.raises(dpsql.BudgetExceeded):
        con.execute(COUNT, epsilon="0.1")


def test_item_66_one_budget_for_all_tables_and_analysts(make: Callable[..., Clinic]) -> None:
    clinic = make(policy=_policy("2"))
    with clinic.connect(analyst="ana") as ana, clinic.connect(analyst="eve") as eve:
        ana.execute(COUNT, epsilon=1)
        eve.execute("SELECT COUNT(*) FROM visits", epsilon=1)
        for con in (ana, eve):
            with pytest.raises(dpsql.BudgetExceeded):
                con.execute("SELECT COUNT(*) FROM visits", epsilon="0.001", fresh=True)
        eve.execute("SELECT COUNT(*) FROM events", epsilon=2)  # another unit


SPELLINGS = (
    COUNT,
    "SELECT COUNT(1) AS n FROM patients",
    "SELECT COUNT(*) AS m, COUNT(*) AS n FROM patients AS p",
    "WITH p AS (SELECT * FROM patients) SELECT COUNT(*) FROM p",
    "SELECT COUNT(*) FROM (SELECT pid FROM patients)",
    "SELECT COUNT(*) FROM patients WHERE TRUE",
    "SELECT COUNT(*) FROM patients WHERE 1 = 1 AND 2 > 1",
    "SELECT n FROM (SELECT COUNT(*) AS n FROM patients) ORDER BY n LIMIT 1",
    "SELECT COUNT(*) + 0 FROM patients HAVING COUNT(*) IS NOT NULL",
    "SELECT SUM(1) FROM patients",
    "SELECT COUNT(*) FILTER (WHERE pid = pid OR pid IS NULL) FROM patients",
    "SELECT COUNT(*) FROM patients WHERE age > 5 OR age <= 5 OR age IS NULL",
)


def test_item_67_asking_again_in_other_words_never_averages_the_noise_away_for_nothing(
    make: Callable[..., Clinic],
) -> None:
    """A spelling is given a number that was released before, or pays: every different number has been paid for."""
    with make().connect() as con:
        seen: dict[object, Fraction] = {}
        for _ in range(3):
            for sql in SPELLINGS:
                answer = con.execute(sql, epsilon="0.1")
                value = answer.rows[0][-1]
                if answer.spent.epsilon:
                    seen[value] = answer.spent.epsilon
                assert value in seen, sql
        spent = con.budget["unit"].total_spent.epsilon
        assert spent >= sum(seen.values(), Fraction(0)) and spent <= Fraction(len(SPELLINGS), 10)
        assert len(seen) < len(SPELLINGS)


def test_item_67_what_is_stored_has_been_released(make: Callable[..., Clinic]) -> None:
    """The file holds noisy numbers and keys that were shown, of exactly the answers that the ledger names."""
    clinic = make()
    with clinic.connect() as con:
        answers = [con.execute(sql, epsilon=1, delta="1e-12") for sql in QUERIES[:6]]
        entries = con.ledger.history()
    stored = sqlite3.connect(clinic.folder / "spent.sqlite.answers")
    with contextlib.closing(stored):
        rows = stored.execute("SELECT id, numbers, shown FROM answers WHERE id NOT LIKE 'mark: %'").fetchall()
    assert {r[0] for r in rows} == {a for e in entries for a in e.entry.answers}
    released = {
        json.dumps(column, separators=(",", ":"))
        for answer in answers
        for noisy in answer.release._noisy
        for column in zip(*noisy.values, strict=True)
    }
    assert {r[1] for r in rows} <= released | {"[]"}
    for _, numbers, shown in rows:
        assert json.loads(shown)["height"] == len(json.loads(numbers)) if shown else True
        assert CANARY not in shown and MARKER not in shown


def test_item_67_a_stored_answer_of_another_ledger_is_worth_nothing(make: Callable[..., Clinic]) -> None:
    """Neither an older ledger with newer answers nor a copied file gives anything that this ledger has not charged."""
    rich, poor = make(policy=_policy("0.5")), make(policy=_policy("0.5"))
    with rich.connect() as con:
        con.execute(COUNT, epsilon="0.5")
    with poor.connect() as con:
        con.execute("SELECT COUNT(*) FROM visits", epsilon="0.5")
        shutil.copy(rich.folder / "spent.sqlite.answers", poor.folder / "spent.sqlite.answers")
        with pytest.raises(dpsql.BudgetExceeded):
            con.execute(COUNT, epsilon="0.5")
    with rich.connect() as con:  # the twin: where it was charged it is given
        assert con.execute(COUNT, epsilon="0.5").spent.epsilon == 0
