"""Items 62 to 70 of the checklist where the ledger is a database: races, forks, edited answers, nothing that tells."""

from __future__ import annotations

import contextlib
import logging
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable

import pytest

import dpsql
from dpsql.answers.stored.store.stored_rows import hash_of
from tests.core.ledger.test_budget_attacks import COUNT, QUERIES
from tests.core.ledger.test_edited_answers import BY_NAME, CAPPED, EDITS, PLENTY
from tests.engines_elsewhere.postgres.ledger.conftest import Database
from tests.support.checklist_clinic import CANARY, MARKER, POLICY, Clinic, assert_silent, make

__all__ = ["make"]
pytestmark = pytest.mark.filterwarnings("ignore::dpsql.UtilityWarning")  # of a threshold that may hide all
Make = Callable[..., Clinic]


@pytest.fixture
def clinic_of(make: Make, database: Database) -> Make:
    """A clinic whose ledger is the database."""

    def build(*statements: str, policy: str = POLICY) -> Clinic:
        return make(*statements, policy=policy.replace("ledger: spent.sqlite", f"ledger: {database.url}"))

    return build


def edit(database: Database, *statements: str) -> None:
    """Change the stored answers, and the hashes of their rows, which have no key."""
    before = database.run("TABLE dpsql.answers")
    database.run("SET search_path = dpsql", *statements)
    assert database.run("TABLE dpsql.answers") != before
    columns = "id, address, numbers, mechanism, parameter, losses, conversion, made_at, shown"
    for number, *row in database.run(f"SELECT number, {columns} FROM dpsql.answers"):
        database.run(f"UPDATE dpsql.answers SET hash = '{hash_of(row)}' WHERE number = {number}")


def test_item_62_racing_sessions_never_overspend(clinic_of: Make) -> None:
    clinic = clinic_of(policy=POLICY.replace("epsilon: 1000000000", "epsilon: 3"))
    with contextlib.ExitStack() as stack:
        sessions = [stack.enter_context(clinic.connect()) for _ in range(8)]
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
            thread.join(1200)
        assert sum(o is not None for o in outcomes) == 3 and len(outcomes) == 8
        assert sessions[0].budget["unit"].total_spent.epsilon == 3


def test_item_64_a_third_is_never_charged_below_itself(clinic_of: Make) -> None:
    with clinic_of(policy=POLICY.replace("epsilon: 1000000000", "epsilon: 1")).connect() as con:
        for _ in range(3):
            con.execute(COUNT, epsilon="1/3", fresh=True)
        assert con.budget["unit"].total_spent.epsilon == 1


@pytest.mark.processes
def test_item_68_a_forked_session_cannot_spend_twice(clinic_of: Make) -> None:
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
    command = [sys.executable, "-c", program, str(clinic_of().policy)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["7", "2"], done.stderr


@pytest.mark.parametrize("sql", [COUNT, BY_NAME])
@pytest.mark.parametrize("change", EDITS)
def test_item_67_an_edited_price_is_not_the_price(clinic_of: Make, database: Database, change: str, sql: str) -> None:
    """ana buys; the table then says that it costs eve nothing: she pays what it cost, or buys noise of her own."""
    clinic = clinic_of(PLENTY, policy=CAPPED)
    with clinic.connect(analyst="ana") as ana, clinic.connect(analyst="eve") as eve:
        unit = next(iter(ana.sql(sql).plan(epsilon=1, delta="1e-12").cost))
        ana.execute("SELECT COUNT(*) FROM visits", epsilon="1/1000")  # number 1: a cheap one
        ana.execute(sql, epsilon=2, delta="1e-12")
        edit(database, *(s.replace('"unit"', f'"{unit}"') + " WHERE number > 1" for s in EDITS[change]))
        before = ana.budget[unit].total_spent
        answer = eve.execute(sql, epsilon=2, delta="1e-12")
        assert answer.spent.epsilon == 2 and not any("answered from" in n for n in answer.notes)
        assert ana.budget[unit].total_spent.epsilon == before.epsilon + 2
        with pytest.raises(dpsql.BudgetExceeded):
            eve.execute(sql, epsilon="0.1", delta="1e-12", fresh=True)


@pytest.mark.parametrize("sql", [COUNT, BY_NAME])
def test_item_67_an_answer_that_nobody_edited_is_received(clinic_of: Make, sql: str) -> None:
    """The twin: for its price in her account, and for nothing in the total."""
    clinic = clinic_of(PLENTY, policy=CAPPED)
    with clinic.connect(analyst="ana") as ana, clinic.connect(analyst="eve") as eve:
        bought = ana.execute(sql, epsilon=2, delta="1e-12")
        before = str(ana.budget)
        answer = eve.execute(sql, epsilon=2, delta="1e-12")
        assert answer.rows == bought.rows and answer.spent.epsilon == 2 and str(ana.budget) == before


def test_item_67_an_answer_that_no_entry_names_is_not_given(clinic_of: Make, database: Database) -> None:
    """Somebody adds a row of his own, with a right hash: the ledger has not been charged for it."""
    clinic = clinic_of()
    with clinic.connect() as con:
        con.execute(COUNT, epsilon=1)
        edit(database, "UPDATE answers SET id = replace(id, '.0.', '.1.'), numbers = '[1234567]'")
        answer = con.execute(COUNT, epsilon=1)
        assert answer.spent.epsilon == 1 and answer.rows != ((1234567,),)
        assert con.budget["unit"].total_spent.epsilon == 2


def test_item_69_the_canary_sings_nowhere(
    clinic_of: Make, database: Database, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Planted values are in no table of the ledger's database, no line of its server's log, and no message of ours."""
    caplog.set_level(logging.DEBUG)
    database.run(f"ALTER DATABASE {database.name} SET log_statement = 'all'")
    with clinic_of().connect() as con:
        for sql in QUERIES:
            try:
                con.execute(sql, epsilon=1, delta="1e-12")
            except dpsql.Error as error:
                assert_silent(error)
    texts = [str(database.run(f"TABLE dpsql.{table}")) for table in ("head", "entries", "answers")]
    assert all(len(text) > 200 for text in texts[1:])
    streams = capfd.readouterr()
    for text in (*texts, database.cluster.log, streams.out, streams.err, caplog.text):
        assert CANARY not in text and MARKER not in text
    assert "SELECT id, address" in database.cluster.log  # the twin: it does log what it is asked
