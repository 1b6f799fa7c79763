"""Items 62 to 70: budget, ledger and leaks on the Python side, through the public API."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import io
import multiprocessing
import sqlite3
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

import dpsql
from dpsql.service.checks.check import static_plan
from tests.support.checklist_clinic import CANARY, MARKER, POLICY, Clinic

COUNT = "SELECT COUNT(*) FROM patients"


def _policy(epsilon: str) -> str:
    return POLICY.replace("epsilon: 1000000000", f"epsilon: {epsilon}")


def test_item_64_a_third_is_never_charged_below_itself(make: Callable[..., Clinic]) -> None:
    with make(policy=_policy("1")).connect() as con:
        con.execute(COUNT, epsilon="1/3")
        assert Fraction(1, 3) <= con.budget["unit"].total_spent.epsilon <= Fraction(1, 3) + Fraction(1, 10**9)


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
            widths.append(
                [{k: round(v[1] - v[0], 6) for k, v in row.items() if v} for row in answer.intervals(bounded=True)]
            )
    assert widths[0] == widths[1] and notes[0] == notes[1]


def test_item_70_the_static_plan_is_a_preview_that_reads_nothing(make: Callable[..., Clinic]) -> None:
    from dpsql.diagnostics.diagnostic import Source
    from dpsql.policy.load import load_policy

    plan = static_plan(Source(COUNT), load_policy(make().policy))
    assert plan.loss.epsilon == 1 and "SELECT" in plan.releases[0].statements[0].sql
