"""In a notebook without ipywidgets DuckDB has no bar, and refuses every statement about it."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import duckdb
import pytest

from dpsql.engines.duckdb.locked.connections import lock_down


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


WATCHED = """
from pathlib import Path
from dpsql.engines.duckdb import engine
import duckdb

def look(connection, *arguments):
    print(*(connection.execute(f"SELECT current_setting('{name}')").fetchone()[0] for name in NAMES))

NAMES = ("enable_progress_bar", "enable_progress_bar_print")
look(duckdb.connect())
engine.attach = look
for progress in (False, True):
    engine.DuckDBEngine.open(Path("shop.duckdb"), {}, Path("."), progress=progress).close()
"""


def test_no_bar_is_drawn_while_the_data_is_opened() -> None:
    """Where no file is run, as at Python's prompt, DuckDB has its bar on: it was drawn while a file was attached."""
    found = subprocess.run([sys.executable, "-c", WATCHED], capture_output=True, text=True, check=True)
    plain, opened, counting = found.stdout.split("\n")[:3]
    assert plain == "True True"
    assert opened.startswith("False") and counting == "True False"
