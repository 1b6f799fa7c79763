"""Statements that are no query, and the relations of a server as text."""

from __future__ import annotations

from pathlib import Path

import pytest

import dpsql
from dpsql.diagnostics.errors import Rejected
from dpsql.faces.server.account_relations import RELATIONS, named_in, with_no_rows, with_rows
from dpsql.faces.server.speech import spoken
from dpsql.faces.server.workers.ceilings import AccountSpending
from dpsql.faces.server.workers.own_account import rows_of
from tests.support.small_shop import make_shop


@pytest.mark.parametrize(
    ("sql", "form", "command"),
    [
        ("SELECT 1", None, "SELECT"),
        ("explain SELECT 1", "text", "EXPLAIN"),
        ("EXPLAIN (COST) SELECT 1", "cost", "EXPLAIN"),
        ("/* a */ EXPLAIN ( format\n json ) SELECT 1", "json", "EXPLAIN"),
        ("EXPLAIN (VERBOSE, FORMAT JSON) SELECT 1", "json", "EXPLAIN"),
        ("EXPLAIN (SELECT 1)", "text", "EXPLAIN"),
        ("SHOW budget", None, "SHOW"),
        (" show  DPSQL.Budget ; ", None, "SHOW"),
        ("SHOW budgets", None, "SELECT"),
        ("SELECT 'EXPLAIN (COST) x'", None, "SELECT"),
    ],
)
def test_what_a_statement_asks(sql: str, form: str | None, command: str) -> None:
    found = spoken(sql)
    assert (found.form, found.command) == (form, command)


@pytest.mark.parametrize(
    "sql", ["EXPLAIN SELECT nothing", "EXPLAIN (COST) SELECT nothing", "EXPLAIN(FORMAT JSON)SELECT nothing"]
)
def test_the_query_stays_where_it_was(sql: str) -> None:
    """So places in it are places in the statement."""
    found = spoken(sql)
    assert len(found.sql) == len(sql) and found.sql.index("nothing") == sql.index("nothing")


@pytest.mark.parametrize(
    ("sql", "code"),
    [("EXPLAIN (ANALYZE) SELECT 1", "DP906"), ("EXPLAIN ANALYZE SELECT 1", "DP906"),
     ("EXPLAIN (FORMAT XML) SELECT 1", "DP903"), ("EXPLAIN (COST, TIMING) SELECT 1", "DP903")],
)  # fmt: skip
def test_what_would_tell_of_a_run_is_refused(sql: str, code: str) -> None:
    with pytest.raises(Rejected, match=code):
        spoken(sql)


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("SELECT * FROM dpsql.budget", ("budget",)),
        ('SELECT * FROM "dpsql" . "BUDGET", dpsql.history h', ("budget", "history")),
        ("SELECT 'dpsql.budget' FROM t -- dpsql.history", ()),
        ("SELECT dpsql.tables.unit FROM dpsql.tables", ("tables",)),
        ("SELECT * FROM dpsql.secrets", ()),
        ("SELECT * FROM mydpsql.budget", ()),
        ("SELECT dpsql", ()),
    ],
)
def test_relations_are_found_by_name_and_not_in_texts(sql: str, names: tuple[str, ...]) -> None:
    assert named_in(sql) == names


@pytest.mark.parametrize(
    "sql", ['SELECT x FROM "dpsql"."budget" AS b WHERE y', "WITH a AS (SELECT 1) SELECT x FROM dpsql.budget WHERE y"]
)
def test_places_move_by_one_number(sql: str) -> None:
    made, parameters, moved = with_rows(sql, ["v"], {"budget": [("u", 1.0, None, 0.0, None, 0.0, None)]})
    assert made.endswith(sql[sql.index(" WHERE y") :])
    assert made.index("x FROM") - moved == sql.index("x FROM")
    assert parameters["1"] == "v" and set(parameters) == {"1", *(f"dpsql_{i}" for i in range(1, 8))}
    assert "'u'" not in made  # rows are values, and no text


def test_what_is_promised_is_what_is_given(tmp_path: Path) -> None:
    """A relation has as many columns as its rows have values."""
    with dpsql.connect(make_shop(tmp_path).policy, analyst="ana") as connection:
        connection.execute("SELECT COUNT(*) FROM orders", epsilon=0.1).fetchall()
        found = rows_of(connection.service.session("ana"), RELATIONS, AccountSpending(connection.service))
    assert list(found) == list(RELATIONS) and all(found[name] for name in ("budget", "history", "tables", "ledger"))
    for name, rows in found.items():
        assert {len(row) for row in rows} <= {len(RELATIONS[name])}, name
        assert f"dpsql_{name} AS (" in with_no_rows(f"SELECT * FROM dpsql.{name}", (), [name])[0]
