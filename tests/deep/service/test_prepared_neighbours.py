"""Neighbouring databases are prepared, and their copies compared: they differ in the rows of the unit that differs."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import duckdb
import pytest

from dpsql.core.policy.policy import Policy
from dpsql.service.preparing import copy_sql
from dpsql.spelling.duckdb_functions import DUCKDB
from tests.support.prepared_worlds import (
    CARRYING,
    CHANGES,
    COLUMNS,
    OWNER,
    SHOP,
    WHOLE_IDS,
    Copies,
    Rows,
    broken,
    copying,
    world,
)


def prepared(rows: Rows, salt: int, of: Policy = SHOP) -> Copies:
    """The rows of all copies, as text."""
    with duckdb.connect(":memory:") as connection:
        for table, columns in (COLUMNS if of is SHOP else WHOLE_IDS).items():
            connection.execute(f"CREATE TABLE {table} ({columns})")
            if rows[table]:
                holes = ", ".join("?" * len(rows[table][0]))
                connection.executemany(f"INSERT INTO {table} VALUES ({holes})", rows[table])
        found = {}
        for table, sql in copying(of, DUCKDB, lambda name: f"copy_{name}", salt):
            connection.execute(f"CREATE TABLE copy_{table} AS {sql}")
            listed = f'SELECT CAST("{OWNER[table]}" AS VARCHAR), COLUMNS(*)::VARCHAR FROM copy_{table}'
            found[table] = Counter(connection.execute(listed).fetchall())
        return found


@pytest.mark.parametrize("of", [SHOP, CARRYING], ids=["alone", "carrying"])
def test_copies_of_neighbours_differ_in_the_rows_of_the_unit(of: Policy) -> None:
    rng = random.Random(19)
    for _ in range(25):
        rows, salt = world(rng), rng.randrange(2**62)
        assert not broken(lambda rows, salt=salt: prepared(rows, salt, of), rows)  # type: ignore[misc]


def test_the_order_in_which_rows_stand_decides_nothing() -> None:
    rng = random.Random(7)
    for _ in range(10):
        rows, salt = world(rng), rng.randrange(2**62)
        first = prepared(rows, salt)
        for each in rows.values():
            each.reverse()
        assert prepared(rows, salt) == first


@pytest.mark.parametrize("change", CHANGES)
def test_a_copy_that_is_made_otherwise_is_noticed(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[str], str]
) -> None:
    right, rng = copy_sql.copy_sql, random.Random(19)
    monkeypatch.setattr(copy_sql, "copy_sql", lambda *given: change(right(*given)))

    def noticed() -> bool:
        salt = rng.randrange(2**62)
        try:
            return bool(broken(lambda rows: prepared(rows, salt), world(rng)))
        except (TypeError, ValueError):  # an owner that is NULL
            return True

    assert any(noticed() for _ in range(40))
