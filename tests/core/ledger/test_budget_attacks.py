"""Items 62 to 70: budget, ledger and leaks on the Python side, through the public API."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import io
import json
import multiprocessing
import shutil
import sqlite3
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

import dpsql
from dpsql.service.check import static_plan
from tests.support.checklist_clinic import CANARY, MARKER, POLICY, Clinic, assert_silent

COUNT = "SELECT COUNT(*) FROM patients"


def _policy(epsilon: str) -> str:
    return POLICY.replace("epsilon: 1000000000", f"epsilon: {epsilon}")


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


def test_item_64_a_third_is_never_charged_below_itself(make: Callable[..., Clinic]) -> None:
    with make(policy=_policy("1")).connect() as con:
        con.execute(COUNT, epsilon="1/3")
        assert Fraction(1, 3) <= con.budget["unit"].total_spent.epsilon <= Fraction(1, 3) + Fraction(1, 10**9)


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


def test_item_67_no_seed_anywhere(make: Callable[..., Clinic]) -> None:
    """No parameter of the public API makes noise repeat, and two runs of one plan differ."""
    for function in (
        dpsql.connect,
        dpsql.Connection.sql,
        dpsql.Connection.run,
        dpsql.Connection.execute,
        dpsql.Query.run,
    ):
        assert not {n for n in inspect.signature(function).parameters if "seed" in n or "random" in n}
    with make().connect() as con:
        plan = con.sql("SELECT SUM(income) FROM patients").plan(epsilon=1)
        assert len({con.run(plan, fresh=True).rows for _ in range(4)}) > 1  # four equal ones: less than once in 1e15


def test_item_67_new_noise_is_charged_and_a_plan_of_another_policy_refused(make: Callable[..., Clinic]) -> None:
    first, second = make(), make(policy=POLICY.replace("[0, 110]", "[0, 111]"))
    with first.connect() as con, second.connect() as other:
        plan = con.sql(COUNT).plan(epsilon=1)
        con.run(plan), con.run(plan, fresh=True)
        assert con.budget["unit"].total_spent.epsilon == 2
        with pytest.raises(dpsql.Rejected):
            other.run(plan)
        assert other.budget["unit"].total_spent.epsilon == 0
    with pytest.raises(dpsql.Error):
        con.run(plan)


@pytest.mark.parametrize("price", [{}, {"unit": dpsql.PrivacyLoss(epsilon=Fraction(1, 1000))}])
def test_item_67_a_plan_with_another_price_costs_what_its_mechanisms_cost(
    make: Callable[..., Clinic], price: dict[str, dpsql.PrivacyLoss]
) -> None:
    """A tampered plan is no way to cheap answers: the charge is taken from the mechanisms that draw the noise."""
    with make().connect() as con:
        cheap = dataclasses.replace(con.sql(COUNT).plan(epsilon=1), cost=price)
        con.run(cheap)
        assert con.budget["unit"].total_spent.epsilon == 1


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
        rows = stored.execute("SELECT id, numbers, shown FROM answers").fetchall()
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


def _child(con: Any, plan: Any, pipe: Any) -> None:
    try:
        pipe.send(con.run(plan).rows)
    except dpsql.Error as error:
        pipe.send(str(error))


@pytest.mark.processes
def test_item_68_forked_samplers_draw_different_noise() -> None:
    """Parent and children after fork: no shared generator state."""
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()

    def draw() -> None:
        from dpsql.core.noise.mechanisms import DiscreteLaplace

        queue.put(tuple(DiscreteLaplace(Fraction(10**9)).add_noise([0] * 8)))

    draw()
    children = [context.Process(target=draw) for _ in range(2)]
    for child in children:
        child.start()
    drawn = {queue.get() for _ in range(3)}
    for child in children:
        child.join()
    assert len(drawn) == 3


QUERIES = (
    COUNT,
    "SELECT diag, COUNT(*) n, SUM(income), AVG(age) FROM patients GROUP BY diag",
    "SELECT name, zip, COUNT(*) FROM patients GROUP BY name, zip",
    "SELECT DISTINCT name FROM patients",
    "SELECT kind, COUNT(*), SUM(value) FROM events GROUP BY kind",
    "SELECT p.name, SUM(v.amt) FROM visits v JOIN patients p USING (pid) GROUP BY 1",
    "SELECT COUNT(*) FROM patients WHERE zip LIKE '%mark%' AND big > 1",
    "SELECT diag, COUNT(*) n FROM patients GROUP BY diag HAVING n > 1 ORDER BY n",
    "SELECT SUM(big) FROM patients",
    "SELECT zip FROM patients",
    "SELECT MAX(big) FROM patients",
    "SELECT COUNT(*) FROM patients WHERE CAST(zip AS INTEGER) = 5 OR big / (big - big) > 1",
    "SELECT error(zip) FROM patients",
    "SELECT COUNT(*) FROM patients p JOIN patients q ON p.zip = q.zip",
)


def test_item_69_the_canary_is_really_there(make: Callable[..., Clinic]) -> None:
    """The twin: the planted values are in the data, and an unprotected look finds them."""
    with make().connect() as con:
        raw = con.service.engine.fetch(
            f"SELECT zip, big, income FROM {con.service.engine.table_sql('patients')} WHERE pid = 2"
        )
        assert repr(raw) == "<private>" and str(raw) == "<private>"
        ((zip_code, big, income),) = raw.rows()
        assert CANARY in zip_code and MARKER in zip_code and str(big) == CANARY and int(income) == int(CANARY)


def test_item_69_the_ledger_holds_what_was_asked_not_what_was_answered(make: Callable[..., Clinic]) -> None:
    clinic = make()
    with clinic.connect() as con:
        answer = con.execute("SELECT SUM(income) AS s FROM patients", epsilon="0.5")
    stored = sqlite3.connect(clinic.folder / "spent.sqlite")
    with contextlib.closing(stored):
        text = io.StringIO()
        for line in stored.iterdump():
            text.write(line)
    assert "SUM(income)" in text.getvalue()
    assert str(answer.rows[0][0]) not in text.getvalue() and CANARY not in text.getvalue()


PROBES = (
    *QUERIES,
    "SELECT u.label, COUNT(*) FROM patients p JOIN grid u ON p.age = u.age GROUP BY 1",
    "SELECT COUNT(*) FROM patients p JOIN pub u ON p.diag = u.diag",
    "SELECT amt > 10, AVG(amt) FROM visits GROUP BY 1",
    "SELECT no_such FROM patients",
    "SELECT COUNT(*) FROM nowhere",
    "SELECT COUNT(* FROM",
)


def test_item_70_notes_and_intervals_depend_on_public_things_alone(make: Callable[..., Clinic]) -> None:
    """Widths of counts and sums are functions of the plan; notes are the same whatever was found."""
    sql = "SELECT diag, COUNT(*) n, SUM(age) s FROM patients GROUP BY diag"
    widths, notes = [], []
    for private in (False, True):
        with make(private=private).connect() as con:
            answer = con.execute(sql, epsilon=1)
            notes.append(answer.notes)
            widths.append([{k: round(v[1] - v[0], 6) for k, v in row.items() if v} for row in answer.intervals()])
    assert widths[0] == widths[1] and notes[0] == notes[1]


def test_item_70_the_static_plan_is_a_preview_that_reads_nothing(make: Callable[..., Clinic]) -> None:
    from dpsql.diagnostics.diagnostic import Source
    from dpsql.policy.load import load_policy

    plan = static_plan(Source(COUNT), load_policy(make().policy))
    assert plan.loss.epsilon == 1 and "SELECT" in plan.releases[0].statements[0].sql
