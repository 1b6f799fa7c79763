"""Values for `?`, `$1` and `$name`, from Python types to SQL constants."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from dpsql.api.connection import Connection
from dpsql.diagnostics.errors import Rejected

ROUGHLY = 10  # ε is 50 below, so that the noise is smaller and a wrong filter shows


def count(con: Connection, where: str, parameters: Any) -> int:
    (row,) = con.execute(f"SELECT COUNT(*) AS n FROM members WHERE {where}", parameters, epsilon=50)
    return int(row[0])


@pytest.mark.parametrize(
    ("where", "parameters", "expected"),
    [
        ("age < ?", [40], 1520),
        ("age < ? AND city = ?", [40, "Bonn"], 760),
        ("age < $1 AND id < $2 AND age < $1", [40, 800], 400),
        ("age < $top", {"top": 40}, 1520),
        ("age BETWEEN $a AND $b", {"a": 10, "b": 19}, 380),
        ("joined < ?", [dt.date(2020, 2, 1)], 279),
        ("joined < ?", [dt.datetime(2020, 2, 1, 12)], 288),
        ("joined + ? < DATE '2020-01-10'", [dt.timedelta(days=3)], 54),
        ("fee <= ?", [Decimal("99.50")], 800),
        ("fee <= ?", [99.5], 800),
        ("city = 'Bonn' AND ?", [True], 1500),
        ("city = 'Bonn' AND ?", [False], 0),
        ("city = ?", [None], 0),
        ("city IS NOT DISTINCT FROM ?", [None], 0),
        ("age < ?", [np.int64(40)], 1520),
        ("age < ?", [np.float64(39.5)], 1520),
        ("city = ?", ["Bonn' OR TRUE --"], 0),
        ("age < ?", ["40"], 1520),
        ("age IN (?, ?)", [1, 2], 76),
    ],
)
@pytest.mark.filterwarnings("ignore::dpsql.diagnostics.errors.UtilityWarning")  # of a value that is not listed
def test_values(shared: Connection, where: str, parameters: Any, expected: int) -> None:
    assert abs(count(shared, where, parameters) - expected) <= ROUGHLY < 3000 - expected


@pytest.mark.parametrize(
    ("where", "parameters"),
    [
        ("age < ?", []),
        ("age < ? OR age > ?", [1]),
        ("age < $2", [1]),
        ("age < $0", [1]),
        ("age < $top", {}),
        ("age < $top", [1]),
        ("age < ?", [1, 2]),
        ("age < $a", {"a": 1, "b": 2}),
        ("TRUE", [1]),
        ("age < ?", [float("nan")]),
        ("age < ?", [float("inf")]),
        ("age < ?", [Decimal("NaN")]),
        ("age < ?", [[1]]),
        ("age < ?", [{"a": 1}]),
        ("age < ?", [object()]),
        ("age < ?", [1 + 2j]),
        ("age < ?", [range(3)]),
        ("note = ?", ["a\0b"]),
    ],
)
def test_bad_values(shared: Connection, where: str, parameters: Any) -> None:
    with pytest.raises(Rejected) as refusal:
        shared.sql(f"SELECT COUNT(*) AS n FROM members WHERE {where}", parameters).plan(epsilon=1)
    (diagnostic,) = refusal.value.diagnostics
    assert diagnostic.code == "DP013" and diagnostic.span is not None and diagnostic.help
    assert "object at 0x" not in str(refusal.value)


def test_parameters_are_literals_for_the_analysis(con: Connection) -> None:
    """A bound from a parameter bounds; a list from parameters gives public keys."""
    assert con.sql("SELECT SUM(CLIP(fee, ?, ?)) FROM members", [0, 10]).cost(epsilon=1).epsilon == 1
    plan = con.sql("SELECT note, COUNT(*) AS n FROM members WHERE note IN (?, ?) GROUP BY note", ["n0", "n1"])
    assert plan.cost(epsilon=1).delta == 0
    with pytest.raises(Rejected) as refusal:
        con.sql("SELECT SUM(CLIP(fee, ?, ?)) FROM members", [0, None]).plan(epsilon=1)
    assert refusal.value.diagnostics[0].code in ("DP106", "DP115")


def test_different_values_are_different_plans(con: Connection) -> None:
    sql = "SELECT COUNT(*) FROM members WHERE age < ?"
    plans = [con.sql(sql, [v]).plan(epsilon=1) for v in (40, 41, 40.0, Decimal(40), "40")]
    hashes = [p.hash for p in plans]
    assert hashes[0] != hashes[1] and hashes[0] == con.sql(sql, [40]).plan(epsilon=1).hash
    assert hashes[4] == hashes[0]  # text compared with an integer is read as one
