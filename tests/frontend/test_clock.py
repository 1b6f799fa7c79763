"""CURRENT_DATE and NOW(): one constant for a query, whatever it is called, and no function of a row."""

from __future__ import annotations

import datetime as dt

import pytest

from dpsql.core.ir.expressions import Literal
from dpsql.core.ir.nodes import Project
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Rejected
from dpsql.frontend.bind.expressions.clock import may_ask
from dpsql.frontend.bind.statement import bind
from dpsql.frontend.parse import parse
from tests.support.planning import policy

TABLES = policy("t:\n  public: true\n  columns: {d: {type: date}, today: {type: integer}}\n")
ASKED = dt.datetime(2026, 11, 23, 18, 45, 1)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("current_date", ASKED.date()), ("CURRENT_DATE", ASKED.date()), ("today()", ASKED.date()), ("now()", ASKED),
        ("current_timestamp", ASKED), ("get_current_timestamp()", ASKED), ("transaction_timestamp()", ASKED),
        ("localtimestamp", ASKED),
    ],
)  # fmt: skip
def test_one_constant(written: str, value: object) -> None:
    found = bind(parse(Source(f"SELECT {written} AS x, {written} AS y")), TABLES, asked=ASKED)
    assert isinstance(found.root, Project)
    assert [i.expr.value for i in found.root.items if isinstance(i.expr, Literal)] == [value, value]
    (note,) = found.notes
    assert note.startswith(written.lower().rstrip("()") + " is 2026-11-23") and may_ask(written)


def test_a_column_of_that_name_comes_first() -> None:
    assert not bind(parse(Source("SELECT today FROM t")), TABLES, asked=ASKED).notes


@pytest.mark.parametrize("written", ["current_time", "now(1)", "current_date('UTC')", "get_current_time()"])
def test_no_constant(written: str) -> None:
    with pytest.raises(Rejected) as refusal:
        bind(parse(Source(f"SELECT {written}")), TABLES)
    assert refusal.value.diagnostics[0].code in ("DP101", "DP105", "DP114")
