"""Texts that are small to write and large to plan: the steps of each have a bound."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from random import Random

import pytest

import dpsql
from dpsql.core.ir import step_count as steps
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Rejected
from dpsql.frontend import parse
from dpsql.service.checks.check import static_plan
from tests.frontend.test_steps import checked
from tests.support.checked_files import policy
from tests.support.checklist_clinic import Attack
from tests.support.hostile_texts import text


class Unbounded(BaseException):
    """More functions were called than may be."""


def calls(action: Callable[[], object], most: int = 10_000_000) -> int:
    """How many functions are called meanwhile. Raises Unbounded as soon as there are more than `most`."""
    count = 0

    def profile(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")
        if count > most:
            raise Unbounded

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        action()
    finally:
        sys.setprofile(before)
    return count


def nested(first: str, step: str, levels: int, last: str) -> str:
    """WITH queries that each read the one before, `{}`."""
    queries = [f"t0 AS ({first})", *(f"t{i} AS ({step.format(f't{i - 1}')})" for i in range(1, levels + 1))]
    return f"WITH {', '.join(queries)} {last.format(f't{levels}')}"


DOUBLED = {
    "joined": ("SELECT 1 AS a", "SELECT l.a FROM {0} l JOIN {0} r ON l.a = r.a"),
    "crossed": ("SELECT 1 AS a", "SELECT l.a FROM {0} l, {0} r"),
    "united": ("SELECT 1 AS a", "SELECT a FROM {0} UNION ALL SELECT a FROM {0}"),
    "constants": ("VALUES (1)", "SELECT l.col0 FROM {0} l JOIN {0} r USING (col0)"),
}


@pytest.mark.parametrize(("first", "step"), DOUBLED.values(), ids=list(DOUBLED))
def test_probe_doubled_queries_take_time_by_their_leaves(first: str, step: str) -> None:
    """Joins were ordered again for every join above them: nine of these took half a minute, twelve would take hours."""
    texts = [nested(first, step, levels, "SELECT * FROM {}") for levels in (4, 5, 6, 7)]
    taken = [calls(partial(checked, sql)) for sql in texts]
    assert all(b < 2.5 * a for a, b in pairwise(taken)), taken


@pytest.mark.parametrize(("first", "step"), DOUBLED.values(), ids=list(DOUBLED))
@pytest.mark.parametrize("levels", [10, 12, 40])
def test_probe_doubled_queries_are_refused_by_their_leaves(attack: Attack, first: str, step: str, levels: int) -> None:
    sql = nested(first, step, levels, "SELECT * FROM {}")
    with pytest.raises(dpsql.Rejected) as refused:
        attack.con.sql(sql).run(epsilon=1)
    (diagnostic,) = refused.value.diagnostics
    assert diagnostic.code == "DP101" and "more than 1,000 relations" in diagnostic.message
    assert diagnostic.span is not None and sql[diagnostic.span.start : diagnostic.span.end] in first
    assert "use each of them fewer times" in diagnostic.help[0]


def planned(sql: str) -> str:
    """The code of the refusal; nothing if there is a plan."""
    try:
        static_plan(Source(sql), policy())
    except Rejected as refused:
        return refused.diagnostics[0].code
    return ""


PER_STEP, PER_NODE, FIXED = 100, 300, 50_000
"""Calls for a step of planning, for a syntax node that is read, and for any query."""


def bound(length: int, taken: int) -> int:
    """Most calls that planning a text of this length takes, with as many steps; there are never more than MOST.

    For each character a node may be made, and MOST_NODES besides.
    """
    return PER_STEP * taken + PER_NODE * (length + parse.MOST_NODES) + FIXED


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits that short texts reach: what holds for them holds for larger ones by the same rule."""
    monkeypatch.setattr(steps, "MOST", 10_000)
    monkeypatch.setattr(parse, "MOST_NODES", 200)
    for sql in (
        "SELECT region, COUNT(*), AVG(age) FROM patients GROUP BY region",
        "SELECT nothing FROM icd10",
        "SELECT (",
    ):
        planned(sql)  # what is imported and remembered at first is no part of a text


def within_bound(sql: str) -> None:
    """Refused or planned, within the bound; that a step be worth its calls is what keeps the counter honest."""
    most = bound(len(sql), steps.MOST)
    count = steps.StepCount()  # of all that is compiled for it
    with pytest.MonkeyPatch.context() as m:
        m.setattr(steps, "begin", lambda: steps._counting.set(count))
        taken = calls(partial(planned, sql), most)
    assert taken <= bound(len(sql), min(count.taken, steps.MOST)), (taken, count.taken, sql[:300])


QUICK, ALL = 400, 10_000


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("part", [0, *(pytest.param(p, marks=pytest.mark.exhaustive) for p in range(1, 4))])
def test_probe_any_text_ends_within_its_steps(part: int) -> None:
    for seed in range(part, QUICK, 4):
        within_bound(text(Random(seed), 40))


@pytest.mark.exhaustive
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("part", range(16))
def test_probe_ten_thousand_texts_end_within_their_steps(part: int) -> None:
    for seed in range(QUICK + part, ALL, 16):
        within_bound(text(Random(seed), 120))


@pytest.mark.usefixtures("small")
def test_probe_work_that_no_step_ends_breaks_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests above can fail: where steps may be taken without end, a doubled text takes more calls than it says."""
    sql = nested("SELECT age AS a FROM patients", "SELECT a * a AS a FROM {}", 11, "SELECT SUM(CLIP(a, 0, 1)) FROM {}")
    within_bound(sql)
    most = bound(len(sql), steps.MOST)
    monkeypatch.setattr(steps, "MOST", 10**9)
    with pytest.raises(Unbounded):
        calls(partial(planned, sql), most)


LONG = {
    "brackets read twice": "SELECT " + "ARRAY[" * 30 + "1" + "]" * 30,
    "types read twice": "SELECT " + "INT(" * 40 + "1" + ")" * 40,
    "powers of powers": "SELECT " + "pow(" * 30 + "CLIP(price, 0.1, 0.3)" + ", 64)" * 30 + " FROM items",
    "a cube": f"SELECT COUNT(*) FROM patients GROUP BY CUBE ({', '.join('1' * 15_000)})",
    "a rollup": f"SELECT COUNT(*) FROM patients GROUP BY ROLLUP ({', '.join('1' * 5_000)})",
    "queries that nothing reads": f"WITH {', '.join(f't{i} AS (SELECT 1)' for i in range(2_000))} SELECT 1",
    "columns that are no keys": f"SELECT {', '.join(['age'] * 5_000)} FROM patients GROUP BY region",
    "names that nothing has": f"SELECT {', '.join(['age'] * 3_000)} FROM patients ORDER BY {', '.join('x' * 3_000)}",
    "stars": f"SELECT {', '.join('*' * 5_000)} FROM visits",
    "stars of a pattern": f"SELECT lpad('', 1000, 'a') LIKE '{'%a' * 400}%b'",
}
"""Texts that planning did not end for, or that were no refusal."""


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("sql", LONG.values(), ids=list(LONG))
def test_probe_long_texts_end_within_their_steps(sql: str) -> None:
    within_bound(sql)
