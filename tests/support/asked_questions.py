"""Questions in files, what is asked in place of those that are refused, and whether answers are the engine's own."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from decimal import Decimal
from itertools import repeat
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pytest

import dpsql

FOLDER = Path(__file__).resolve().parents[1] / "deep" / "examples" / "questions"
MOST = 10**9
"""An ε with which noise is negligible."""


class Question(NamedTuple):
    """A query; refused: its code, if it is, and what may be asked instead."""

    sql: str
    refused: tuple[str, str] | None


class Data(NamedTuple):
    """Under protection, and as it is."""

    protected: dpsql.Connection
    plain: duckdb.DuckDBPyConnection


def questions(name: str) -> list[Question]:
    """Those of a file: a comment below one is its code and the repair."""
    found = []
    for text in re.split(r"\n(?=SELECT|WITH)", (FOLDER / f"{name}.sql").read_text(encoding="utf-8")):
        sql, _, rest = text.partition(";")
        repair = re.search(r"-- (DP\d+): (.*)", rest)
        found.append(Question(sql.strip(), None if repair is None else (repair[1], repair[2])))
    return found


def run_all(con: duckdb.DuckDBPyConnection, text: str, **places: object) -> None:
    """The statements of a script, each ended by a semicolon at the end of a line."""
    for statement in text.format(**places).split(";\n"):
        con.execute(statement)


def is_answered(data: Data, sql: str, quantiles: float = 2e-3) -> None:
    """The engine's own answer, but for groups that public lists add.

    quantiles: how far they may be off, as a share: one is the middle of a cell, and CONT may lie between two values.
    """
    ours = data.protected.sql(sql).run(epsilon=MOST, delta="1e-6").rows
    true = data.plain.execute(sql).fetchall()
    precision = quantiles if re.search("MEDIAN|QUANTILE|PERCENTILE", sql, re.IGNORECASE) else 1e-6
    rest = list(ours)
    for row in true:
        found = next((r for r in rest if all(map(_near, repeat(precision), r, row))), None)
        assert found is not None, (row, ours)
        rest.remove(found)
    assert all(map(_empty, rest)), rest


def is_refused(data: Data, sql: str, code: str) -> str:
    """All that its refusal says."""
    with pytest.raises(dpsql.Rejected) as refusal:
        data.protected.sql(sql).plan(epsilon=MOST, delta="1e-6")
    assert code in {d.code for d in refusal.value.diagnostics}
    return str(refusal.value)


def _near(precision: float, ours: Any, true: Any) -> bool:
    """Equal but for the noise; a DATE and the first moment of the day are."""
    match ours, true:
        case (list(), list()):
            return len(ours) == len(true) and all(map(_near, repeat(precision), ours, true))
        case (dt.date(), dt.datetime()) if not isinstance(ours, dt.datetime):
            return dt.datetime(ours.year, ours.month, ours.day) == true
        case (dt.timedelta(), dt.timedelta()):
            return abs(ours - true) <= dt.timedelta(seconds=precision * abs(true).total_seconds() + 1)
        case (bool() | str() | dt.date() | None, _) | (_, bool() | str() | dt.date() | None):
            return bool(ours == true)
        case _:
            least = 0.5 if isinstance(true, int) else 1e-3 if abs(true) < 10 else 0.02
            return abs(float(ours) - float(true)) <= least + precision * abs(float(true))


def _empty(row: Sequence[Any]) -> bool:
    """A group of a public list without any row: some number is 0."""
    return any(isinstance(v, int | Decimal) and not isinstance(v, bool) and v == 0 for v in row[1:])
