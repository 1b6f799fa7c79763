"""Item 19: dates and keys that Python cannot hold."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import dpsql
from tests.support.checklist_clinic import Clinic


@pytest.mark.parametrize("date", ["infinity", "-infinity", "9999-12-31", "294000-01-01", "0044-03-15 (BC)"])
def test_item_19_far_dates_never_fail(make: Callable[..., Clinic], date: str) -> None:
    clinic = make(f"UPDATE patients SET ts = '{date}', day = '{date}' WHERE pid = 2")
    with clinic.connect() as con:
        for predicate in (
            "ts + INTERVAL 1 DAY > ts",
            "day + 1 > day",
            "ts - INTERVAL 9999 DAY < ts",
            "year(ts) > 0",
            "date_trunc('month', ts) > TIMESTAMP '2024-01-01'",
            "CAST(ts AS DATE) > day",
            "day - DATE '2024-01-01' > 0",
            "date_diff('day', DATE '2024-01-01', day) > 0",
            "epoch(ts) > 0",
            "strftime(ts, '%Y') = '2024'",
            "last_day(day) > day",
            "ts + INTERVAL 3 MONTH > ts",
            "CAST(day AS TIMESTAMP) > ts",
            "CAST(ts AS VARCHAR) > 'a'",
        ):
            con.execute(f"SELECT COUNT(*) FROM patients WHERE {predicate}", epsilon=1)
    with pytest.raises(dpsql.Rejected), clinic.connect() as con:
        con.execute("SELECT COUNT(*) FROM patients WHERE ts + to_years(999999999) > ts", epsilon=1)


@pytest.mark.parametrize(
    ("column", "table", "hidden", "kept"),
    [
        ("day", "events", "DATE 'infinity'", "DATE '9999-12-31'"),
        ("day", "events", "DATE '-infinity'", "DATE '0001-01-01'"),
        ("day", "events", "DATE '0044-03-15 (BC)'", "DATE '2024-01-01'"),
        ("day", "events", "DATE '20000-01-01'", "DATE '2024-01-01'"),
        ("seen", "events", "TIMESTAMP 'infinity'", "TIMESTAMP '9999-12-31 23:59:59.999999'"),
        ("seen", "events", "TIMESTAMP '20000-01-01'", "TIMESTAMP '2024-01-01'"),
        ("clock", "events", "TIME '24:00:00'", "TIME '00:00:00'"),
    ],
)
def test_item_19_a_key_python_cannot_hold_moves_no_other_key(
    make: Callable[..., Clinic], column: str, table: str, hidden: str, kept: str
) -> None:
    """One row with `infinity` used to replace the count of 9999-12-31 (both arrive as the same Python date), and a
    date outside of Python's years to end the query with a traceback."""
    answers = []
    for extra in (0, 1):
        clinic = make(
            f"DELETE FROM {table}",
            f"INSERT INTO {table} ({column}) SELECT {hidden} FROM range({extra})",
            f"INSERT INTO {table} ({column}) SELECT {kept} FROM range(1000)",
            f"INSERT INTO {table} ({column}) SELECT {hidden} FROM range({extra})",
        )
        with clinic.connect() as con:
            answers.append(
                con.execute(f"SELECT {column}, COUNT(*) FROM {table} GROUP BY 1", epsilon=100, delta=1e-12).rows
            )
    assert answers[0] == answers[1] and len(answers[0]) == 1 and answers[0][0][1] == 1000
