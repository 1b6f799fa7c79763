"""In a notebook without ipywidgets DuckDB has no bar, and refuses every statement about it."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

from dpsql.engines.duckdb.connections import lock_down


class Refusing:
    """A connection as it is in such a notebook. on: what it says of its bar."""

    def __init__(self, on: bool) -> None:
        self.own = duckdb.connect()
        self.own.execute(f"SET SESSION enable_progress_bar = {on}")

    def execute(self, sql: str, *parameters: Any) -> Any:
        if sql.startswith("SET") and "progress_bar" in sql:
            raise duckdb.InvalidInputException("required package 'ipywidgets' is missing")
        return self.own.execute(sql, *parameters)


@pytest.mark.parametrize("progress", [False, True])
def test_it_is_locked_all_the_same(progress: bool) -> None:
    connection = Refusing(on=False)
    lock_down(connection, (), progress)  # type: ignore[arg-type]
    assert connection.own.execute("SELECT current_setting('lock_configuration')").fetchall() == [(True,)]
    with pytest.raises(duckdb.Error):
        connection.own.execute("SET enable_external_access = true")


def test_a_bar_that_cannot_be_switched_off_is_not_accepted() -> None:
    """It would tell how long a query takes on private rows."""
    with pytest.raises(duckdb.InvalidInputException):
        lock_down(Refusing(on=True), ())  # type: ignore[arg-type]
