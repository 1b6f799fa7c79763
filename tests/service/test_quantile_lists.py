"""Several quantiles in one column: each is measured, and the list is made of the answers.

At ε 1000 the cell that a quantile lies in is chosen, but once in 10^20 runs.
"""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from dpsql.answers.results.cell_texts import plain
from dpsql.api.connection import Connection
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.diagnostics.errors import Rejected
from dpsql.faces.cli.json_text import dumps

SURE = 1000
AGES = "SELECT QUANTILE_CONT(age, [0.25, 0.5, 0.75]) AS q FROM members"
CALLS = [
    "QUANTILE_CONT(age, [0.25, 0.9])", "QUANTILE_DISC(age, [0.25, 0.9])", "QUANTILE(age, [0.25, 0.9])",
    "APPROX_QUANTILE(age, [0.25, 0.9])", "PERCENTILE_CONT(age, [0.25, 0.9])", "PERCENTILE_DISC(age, ARRAY[0.25, 0.9])",
    "PERCENTILE_CONT(ARRAY[0.25, 0.9]) WITHIN GROUP (ORDER BY age)",
    "PERCENTILE_DISC([0.75, 0.1]) WITHIN GROUP (ORDER BY age DESC)",
    "QUANTILE_DISC(age, [0.25, 0.9]) FILTER (WHERE age >= 0)",
]  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_a_list_and_its_parts(con: Connection, call: str) -> None:
    (row,) = con.sql(f"SELECT {call} AS q FROM members").run(epsilon=SURE).fetchall()
    assert row == ([19, 71],)
    for i, value in ((1, 19), (2, 71)):
        sql = f"SELECT {f'({call})'}[{i}] + 0 AS q FROM members"
        assert con.sql(sql).run(epsilon=SURE).fetchall() == [(value,)], sql
        (release,) = con.sql(sql).plan(epsilon=1).releases
        assert [m.loss.epsilon for m in release.measured.measurements] == [1], "the others are not measured"


@pytest.mark.parametrize("call", [c for c in CALLS if "WITHIN" not in c])
def test_an_index_without_brackets_around_the_call(con: Connection, call: str) -> None:
    assert con.sql(f"SELECT {call}[ 2 ] AS q FROM members").run(epsilon=SURE).fetchall() == [(71,)]


def test_an_index_of_postgres(con: Connection) -> None:
    call = "percentile_disc(ARRAY[0.25, 0.9]) WITHIN GROUP (ORDER BY age)"
    sql = f"SELECT ({call})[2], {call} FROM members"
    assert con.sql(sql, dialect="postgres").run(epsilon=SURE).fetchall() == [(71, [19, 71])]
    with pytest.raises(Rejected, match="DP119"):
        con.sql(f"SELECT ({call})[2] FROM members", dialect="spark").plan(epsilon=1)  # it would count from 0


def test_the_values_have_their_types(con: Connection) -> None:
    chosen = "QUANTILE_DISC(fee, [0.9, 0.5]) AS f, QUANTILE_CONT(joined, [0.5]) AS j"
    sql = f"SELECT city, {chosen}, COUNT(*) AS n FROM members"
    answer = con.sql(f"{sql} WHERE city = 'Bonn' GROUP BY city HAVING COUNT(*) > 5 ORDER BY n LIMIT 1").run(
        epsilon=SURE
    )
    ((city, fees, days, n),) = answer.fetchall()
    assert (city, n) == ("Bonn", 1500) and fees[0] > fees[1]
    assert all(isinstance(fee, Decimal) for fee in fees) and [type(day) for day in days] == [dt.date]
    assert [str(t) for t in answer.types] == ["VARCHAR", "DECIMAL(8,2)[]", "DATE[]", "BIGINT"]
    assert str(answer.arrow().schema.field("f").type) == "list<item: decimal128(8, 2)>"
    assert answer.df()["f"][0] is not None and answer.pl()["j"][0].to_list() == days
    assert json.loads(dumps(fees)) == [float(fee) for fee in fees] and plain(fees) == f"[{fees[0]}, {fees[1]}]"
    assert plain([dt.date(2020, 1, 2), None]) == "[2020-01-02, NULL]" and "Decimal" not in str(answer)
    assert answer.intervals()[0]["f"] is None
    assert sum("lies between" in note or "lie between" in note for note in answer.notes) == 3


def test_each_of_a_list_is_paid_once(con: Connection, ledger: MemoryLedger) -> None:
    sql = "SELECT QUANTILE_DISC(age, [0.25, 0.5, 0.25]) AS q, QUANTILE_DISC(age, 0.5) AS m, COUNT(*) AS n FROM members"
    (release,) = con.sql(sql).plan(epsilon=1).releases
    assert [m.loss.epsilon for m in release.measured.measurements] == [Fraction(1, 3)] * 3
    assert con.sql(sql).run(epsilon=1).spent.epsilon == 1 == ledger.spent("member").epsilon


def test_lists_pass_through_subqueries(con: Connection) -> None:
    sql = f"SELECT q AS again, (SELECT COUNT(*) FROM members) AS n FROM ({AGES}) AS t"
    assert con.sql(sql).run(epsilon=SURE).fetchall() == [([19.0, 39.0, 59.0], 3000)]


def test_of_no_rows_and_of_public_rows(con: Connection) -> None:
    assert con.sql(f"{AGES} WHERE FALSE").run(epsilon=1).fetchall() == [(None,)]
    public = con.sql("SELECT QUANTILE_DISC(length(city), [0.1, 0.5]) AS q FROM cities").run(epsilon=1)
    assert public.spent.epsilon == 0 and isinstance(public.fetchall()[0][0], list)


def test_parameters_are_read_once(con: Connection) -> None:
    sql = "SELECT QUANTILE_DISC(CLIP(age, ?, ?), [?, 0.9]) AS q, COUNT(*) > ? AS many FROM members"
    assert con.sql(sql, (30, 60, 0.25, 5)).run(epsilon=SURE).fetchall() == [([30, 60], True)]


@pytest.mark.parametrize(
    ("sql", "code", "help_"),
    [
        (f"{AGES} ORDER BY q", "DP101", "[0.25, 0.75])[1]"),
        (f"SELECT DISTINCT q FROM ({AGES}) AS t", "DP101", "a column for each"),
        (f"SELECT q, COUNT(*) FROM ({AGES}) AS t GROUP BY q", "DP101", "a column for each"),
        (f"SELECT COUNT(q) FROM ({AGES}) AS t", "DP101", "a column for each"),
        (f"SELECT MIN(q) FROM ({AGES}) AS t", "DP101", "a column for each"),
        (f"SELECT q FROM ({AGES}) AS t WHERE q IS NOT NULL", "DP101", "a column for each"),
        (f"{AGES} UNION ALL {AGES}", "DP101", "a column for each"),
        (f"SELECT COALESCE(q, q) FROM ({AGES}) AS t", "DP101", "a column for each"),
        ("SELECT CASE WHEN COUNT(*) > 3 THEN QUANTILE_CONT(age, [0.5]) END FROM members", "DP101", "a column for each"),
        ("SELECT QUANTILE_CONT(age, [0.5]) = QUANTILE_CONT(age, [0.6]) FROM members", "DP106", ""),
        ("SELECT COUNT(*) FROM members HAVING QUANTILE_CONT(age, [0.5]) IS NULL", "DP101", "a column for each"),
        (f"SELECT a.q FROM ({AGES}) AS a JOIN ({AGES}) AS b ON a.q IS NULL", "DP101", "a column for each"),
        (f"SELECT ROW_NUMBER() OVER (ORDER BY q) FROM ({AGES}) AS t", "DP101", "a column for each"),
        (f"SELECT unnest(q) FROM ({AGES}) AS t", "DP101", "UNNEST"),
        (f"SELECT q[1] FROM ({AGES}) AS t", "DP105", "QUANTILE_CONT(x, [0.25, 0.75])[1]"),
        (f"SELECT q + 1 FROM ({AGES}) AS t", "DP106", ""),
        ("SELECT QUANTILE_CONT(age, []) FROM members", "DP106", "[0.25, 0.5, 0.75]"),
        ("SELECT QUANTILE_CONT(age, [[0.5]]) FROM members", "DP101", "QUANTILE_CONT(age, 0.5)"),
        ("SELECT QUANTILE_CONT(age, [0.5, 1]) FROM members", "DP101", "QUANTILE_CONT(age, 0.99)"),
        ("SELECT QUANTILE_CONT(age, [0.5, age]) FROM members", "DP115", "pass p as a parameter"),
        ("SELECT QUANTILE_DISC(age, [0.5])[2] FROM members", "DP106", "[1]"),
        ("SELECT QUANTILE_DISC(age, [0.5])[0] FROM members", "DP106", "[1]"),
        ("SELECT QUANTILE_DISC(age, [0.5])[-1] FROM members", "DP106", "[1]"),
        ("SELECT QUANTILE_DISC(age, [0.5])[1:1] FROM members", "DP101", ""),
        ("SELECT QUANTILE_DISC(age, [0.5])[COUNT(*)] FROM members", "DP", ""),
        ("SELECT APPROX_QUANTILES(age, 4) FROM members", "DP101", "QUANTILE_DISC(age, [0.25, 0.5, 0.75])"),
        ("SELECT list_of(age, 0.5) FROM members", "DP105", ""),
    ],
)
def test_what_reads_a_list_is_refused(con: Connection, sql: str, code: str, help_: str) -> None:
    with pytest.raises(Rejected) as refusal:
        con.sql(sql).plan(epsilon=1)
    found = refusal.value.diagnostics[0]
    assert found.code.startswith(code) and help_ in " ".join(found.help), found


def test_a_repair_can_be_pasted(con: Connection) -> None:
    assert con.sql("SELECT QUANTILE_DISC(age, [0.25, 0.5, 0.75]) FROM members").plan(epsilon=1).columns


def test_ends_of_intervals_are_not_known(con: Connection) -> None:
    with pytest.raises(Rejected):
        con.sql("SELECT DP_INTERVAL_LOW(QUANTILE_DISC(age, [0.5])) FROM members").plan(epsilon=1)


def test_no_error_of_a_list_is_planned(con: Connection) -> None:
    wish: dict[str, Any] = {"max_error": {"q": 5}}
    with pytest.raises(Rejected, match="DP411"):
        con.sql(AGES).plan(**wish)
