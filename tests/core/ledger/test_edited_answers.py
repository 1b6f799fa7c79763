"""Item 67, the stored form: who edits the file of answers buys nothing with it, for himself or for others."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Callable

import pytest

import dpsql
from dpsql.answers.stored.store.stored_rows import hash_of
from dpsql.core.ledger.paid import draw_of, unchanged
from tests.support.checklist_clinic import POLICY, Clinic

pytestmark = pytest.mark.filterwarnings("ignore::dpsql.UtilityWarning")  # of a threshold that may hide all

COUNT = "SELECT COUNT(*) AS n FROM patients"
BY_NAME = "SELECT kind, COUNT(*) AS n FROM events GROUP BY kind"
PARTS = "SELECT COUNT(*) FILTER (WHERE age < 35) a, COUNT(*) FILTER (WHERE age >= 35) b FROM patients"
CAPPED = POLICY.replace(
    "delta: 0.9}}", "delta: 0.9}, analysts: {ana: {epsilon: 100, delta: 0.5}, eve: {epsilon: 2, delta: 0.5}}}"
)
PLENTY = "INSERT INTO events (kind, value) SELECT 'k' || i % 3, 1 FROM range(3000) r(i)"


def _edit(clinic: Clinic, *statements: str) -> int:
    """Change the file of answers, and the hashes of its rows, which have no key; how many rows were changed."""
    with contextlib.closing(sqlite3.connect(clinic.folder / "spent.sqlite.answers")) as file, file:
        file.execute("DELETE FROM answers WHERE id LIKE 'mark: %'")  # lines that are no answers
        changed = sum(file.execute(statement).rowcount for statement in statements)
        for number, *row, _ in file.execute("SELECT * FROM answers").fetchall():
            file.execute("UPDATE answers SET hash = ? WHERE number = ?", (hash_of(row), number))
        return changed


EDITS = {
    "a lower price": ('UPDATE answers SET losses = \'{"unit": ["1/1000", "0", "0"]}\'',),
    "a price of nothing": ('UPDATE answers SET losses = \'{"unit": ["0", "0", "0"]}\'',),
    "no unit that pays": ("UPDATE answers SET losses = '{}'",),
    "another unit that pays": ('UPDATE answers SET losses = \'{"nobody": ["1", "0", "0"]}\'',),
    "a price without noise": (
        'UPDATE answers SET losses = \'{"unit": ["1/1000", "0", "0"]}\', parameter = \'1/1000\'',
    ),
    "another mechanism": ("UPDATE answers SET mechanism = 'gaussian'",),
    "the price of another answer": (
        "UPDATE answers SET losses = (SELECT losses FROM answers WHERE number = (SELECT MIN(number) FROM answers)), "
        "parameter = (SELECT parameter FROM answers WHERE number = (SELECT MIN(number) FROM answers))",
    ),
    "an id of the old form": ("UPDATE answers SET id = substr(id, 1, 32), losses = '{}'",),
    "an id without its hash": ("UPDATE answers SET id = substr(id, 1, 34), losses = '{}'",),
    "an id that says too much": ("UPDATE answers SET id = id || '0', losses = '{}'",),
}
SOME = ("a lower price", "a price without noise", "an id of the old form")


@pytest.mark.parametrize(
    ("edit", "sql"),
    [*((EDITS[e], COUNT) for e in SOME), (EDITS["a lower price"], BY_NAME)],
    ids=[*SOME, "a lower price of keys"],
)
def test_item_67_an_edited_price_is_not_the_price(make: Callable[..., Clinic], edit: tuple[str, ...], sql: str) -> None:
    not_the_price(make, edit, sql)


def not_the_price(make: Callable[..., Clinic], edit: tuple[str, ...], sql: str) -> None:
    """ana buys; the file then says that it costs eve nothing: she pays what it cost, or buys noise of her own."""
    clinic = make(PLENTY, policy=CAPPED)
    with clinic.connect(analyst="ana") as ana, clinic.connect(analyst="eve") as eve:
        unit = next(iter(ana.sql(sql).plan(epsilon=1, delta="1e-12").cost))
        ana.execute("SELECT COUNT(*) FROM visits", epsilon="1/1000")  # the first: a cheap one
        ana.execute(sql, epsilon=2, delta="1e-12")
        assert (
            _edit(
                clinic,
                *(s.replace('"unit"', f'"{unit}"') + " WHERE number > (SELECT MIN(number) FROM answers)" for s in edit),
            )
            == 1
        )
        before = ana.budget[unit].total_spent
        answer = eve.execute(sql, epsilon=2, delta="1e-12")
        assert answer.spent.epsilon == 2 and not any("answered from" in n for n in answer.notes)
        assert ana.budget[unit].total_spent.epsilon == before.epsilon + 2  # noise of her own, paid in full
        with pytest.raises(dpsql.BudgetExceeded):
            eve.execute(sql, epsilon="0.1", delta="1e-12", fresh=True)


@pytest.mark.parametrize("sql", [COUNT, BY_NAME])
def test_item_67_an_answer_that_nobody_edited_is_received(make: Callable[..., Clinic], sql: str) -> None:
    """The twin: for its price in her account, and for nothing in the total."""
    clinic = make(PLENTY, policy=CAPPED)
    with clinic.connect(analyst="ana") as ana, clinic.connect(analyst="eve") as eve:
        bought = ana.execute(sql, epsilon=2, delta="1e-12")
        before = str(ana.budget)
        answer = eve.execute(sql, epsilon=2, delta="1e-12")
        assert answer.rows == bought.rows and answer.spent.epsilon == 2 and str(ana.budget) == before
        with pytest.raises(dpsql.BudgetExceeded):
            eve.execute(sql, epsilon="0.1", delta="1e-12", fresh=True)


def test_item_67_answers_of_several_draws_are_not_one_parallel_group(make: Callable[..., Clinic]) -> None:
    """Two disjoint counts cost the larger of both only when they were drawn together: the ids tell, not the clock."""
    clinic = make(policy=CAPPED)
    with clinic.connect(analyst="ana") as ana, clinic.connect(analyst="eve") as eve:
        for part in ("< 35) a", ">= 35) b"):
            ana.execute(f"SELECT COUNT(*) FILTER (WHERE age {part} FROM patients", epsilon=1)
        together = eve.sql(PARTS).plan(epsilon=1)
        assert len(together.releases[0].measured.parallel_groups) == 1
        _edit(clinic, "UPDATE answers SET made_at = '2026-01-01T00:00:00+00:00'")
        answer = eve.execute(PARTS, epsilon=1, allow_dearer=True)
        assert answer.spent.epsilon == 2 and sum("new to this account" in n for n in answer.notes) >= 1


def test_item_67_what_an_id_says_is_what_the_mechanism_says(make: Callable[..., Clinic]) -> None:
    """Every stored answer fits its id; the ledger's chain holds the ids."""
    clinic = make(PLENTY)
    with clinic.connect() as con:
        for sql in (COUNT, BY_NAME, PARTS, "SELECT diag, AVG(age), VAR_POP(income) FROM patients GROUP BY diag"):
            con.execute(sql, epsilon=1, delta="1e-12")
        named = [a for e in con.ledger.history() for a in e.entry.answers]
        rows = sqlite3.connect(clinic.folder / "spent.sqlite.answers")
        with contextlib.closing(rows):
            addresses = [a for (a,) in rows.execute("SELECT address FROM answers WHERE id NOT LIKE 'mark: %'")]
        store = con.service.account(con.analyst).store
        found = [a for answers in store.find(addresses).values() for a in answers]
    assert sorted(a.id for a in found) == sorted(named) and len(found) >= 8
    assert all(unchanged(a) for a in found)
    assert len({draw_of(a.id) for a in found}) == 8  # no two of them are slices of one set; a count decides on keys


@pytest.mark.parametrize("kinds", [["str"], ["str", "int"]], ids=["the same text", "one key for the engine"])
def test_item_67_a_key_that_is_written_twice_is_not_measured_twice(
    make: Callable[..., Clinic], kinds: list[str]
) -> None:
    """Each stored key gets noise of its own for numbers that are new: two hundred of one, and the mean is exact."""
    clinic = make("INSERT INTO events (kind, value) SELECT '7', 1 FROM range(3000) r(i)", policy=CAPPED)
    with clinic.connect(analyst="ana") as ana:
        bought = ana.execute(BY_NAME, epsilon=2, delta="1e-12")
        assert [row[0] for row in bought.rows] == ["7"]
        with contextlib.closing(sqlite3.connect(clinic.folder / "spent.sqlite.answers")) as file:
            number, shown, numbers = file.execute(
                "SELECT number, shown, numbers FROM answers WHERE id NOT LIKE 'mark: %'"
            ).fetchone()
        many = 200 if kinds == ["str"] else len(kinds)
        keys = json.dumps(json.loads(shown) | {"height": many, "columns": [[kinds, ["7"] * many]]})
        values = json.dumps(json.loads(numbers) * many, separators=(",", ":"))
        assert _edit(clinic, f"UPDATE answers SET shown = '{keys}', numbers = '{values}' WHERE number = {number}") == 1
        answer = ana.execute(
            "SELECT kind, COUNT(*) AS n, SUM(value) AS v FROM events GROUP BY kind", epsilon=4, delta="1e-12"
        )
    assert [row[0] for row in answer.rows] == ["7"] and not any("answered from" in n for n in answer.notes)
