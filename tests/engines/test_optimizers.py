"""In every database that dpsql opens, no optimizer works but those of the list, from before anything is in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

import dpsql
from dpsql.diagnostics.errors import CannotOpen
from dpsql.engines.duckdb.engine import DuckDBEngine
from dpsql.engines.duckdb.locked import connections, optimizers
from dpsql.engines.duckdb.locked.optimizers import ALLOWED, disable, disabled, holds, restricted, unwanted
from dpsql.engines.duckdb.policy_catalogue import DuckDBCatalogue
from dpsql.engines.duckdb.scratch import Scratch
from dpsql.engines.duckdb.synthetic import SyntheticEngine
from dpsql.engines.open import csv_options, frame_types, make_database
from tests.engines.test_clips_stay import MADE, POLICY

AS_SET = "SELECT current_setting('disabled_optimizers') AS s"


def names(connection: duckdb.DuckDBPyConnection) -> frozenset[str]:
    return frozenset(name for (name,) in connection.execute("SELECT name FROM duckdb_optimizers()").fetchall())


def test_every_optimizer_that_this_duckdb_names_is_off_but_for_the_list() -> None:
    with restricted({}) as connection:
        every = names(connection)
        assert len(every) > 40 and every >= ALLOWED == {
            "filter_pushdown", "join_order", "unused_columns", "column_lifetime", "build_side_probe_side",
            "cte_inlining", "materialized_cte", "in_clause",
        }  # fmt: skip
        assert disabled(connection) == every - ALLOWED
        assert holds(connection)


def test_one_that_a_later_version_adds_is_off_too(monkeypatch: pytest.MonkeyPatch) -> None:
    later = "SELECT name FROM duckdb_optimizers() UNION ALL SELECT 'clairvoyance'"
    monkeypatch.setattr(optimizers, "_NAMES", later)
    with duckdb.connect() as connection:
        assert "clairvoyance" in unwanted(connection)
        disable(connection, unwanted(connection) - {"clairvoyance"})
        assert not holds(connection)
        with pytest.raises(duckdb.Error):  # which this version does not know
            restricted({})


def test_where_it_names_none_nothing_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimizers, "_NAMES", "SELECT name FROM duckdb_optimizers() WHERE false")
    with pytest.raises(CannotOpen, match="DP006"):
        restricted({})


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What was said to each database that was started, in order."""
    said: list[str] = []
    original = optimizers.restrict

    def noted(connection: duckdb.DuckDBPyConnection) -> None:
        (empty,) = connection.execute("SELECT COUNT(*) FROM duckdb_tables() WHERE NOT internal").fetchall()
        (alone,) = connection.execute("SELECT COUNT(*) FROM duckdb_databases() WHERE NOT internal").fetchall()
        original(connection)
        said.append(f"{empty[0]} {alone[0]} {holds(connection)}")

    monkeypatch.setattr(optimizers, "restrict", noted)
    yield said
    assert said and set(said) == {"0 1 True"}


def test_the_policys_data_and_what_stands_beside_it(tmp_path: Path, opened: list[str]) -> None:
    make_database(tmp_path / "m.duckdb", MADE)
    policy = POLICY.replace("    max_rows_per_unit: 5\n", "    max_rows_per_unit: 5\n    prepared: true\n")
    (tmp_path / "m.yaml").write_text(policy)
    dpsql.prepare(tmp_path / "m.yaml")
    assert len(opened) >= 2
    with dpsql.connect(tmp_path / "m.yaml") as con:
        engine = con.service.engine
        assert isinstance(engine, DuckDBEngine)
        for each in (engine, engine.sibling()):
            off = {*each.fetch(AS_SET).columns[0][0].split(",")}
            assert off == names(each._connection) - ALLOWED
            for text in ("SET disabled_optimizers = ''", "RESET disabled_optimizers", "PRAGMA disable_optimizer"):
                with pytest.raises(duckdb.Error):
                    each._connection.execute(text)
        assert con.sql("SELECT SUM(x) AS s FROM log").run(epsilon=1e20).rows == ((50,),)


def test_public_numbers_made_up_rows_catalogues_and_guesses_of_files(tmp_path: Path, opened: list[str]) -> None:
    (tmp_path / "c.csv").write_text("a;b\n1;2\n")
    assert csv_options(str(tmp_path / "c.csv"))
    with closing(Scratch()) as scratch:
        assert scratch.fetch(AS_SET)[0].columns[0][0].count(",") > 30
    with closing(SyntheticEngine()) as made:
        assert made.fetch(AS_SET).columns[0][0].count(",") > 30
    with closing(DuckDBCatalogue([], [])) as catalogue:
        assert catalogue.fetch(AS_SET)[0][0].count(",") > 30
    assert frame_types({}) == {}
    assert len(opened) >= 5


def test_no_other_place_of_dpsql_starts_one() -> None:
    package = Path(dpsql.__file__).parent
    starts = re.compile(r"(?<![\w.])duckdb\.(connect\((?!…)|default_connection|execute|sql\(|query\(|read_|from_)")
    own = [p for p in package.rglob("*.py") if "kit" not in p.parts]  # the kit's harnesses are programs of their own
    found = [p.name for p in own if starts.search(p.read_text(encoding="utf-8"))]
    assert found == ["optimizers.py"] and connections.restricted is optimizers.restricted


# --- what the others would do ----------------------------------------------------------------------------------------

TABLE = """
CREATE TABLE p AS SELECT i AS id, CASE WHEN i = 3 THEN 2147483645 ELSE i::INTEGER END AS a,
  CASE WHEN i = 3 THEN '300000-01-01' ELSE '2024-01-01' END AS s,
  CASE WHEN i = 3 THEN 9223372036854775807 ELSE i END AS b FROM range(5000) AS t(i);
CREATE TABLE large AS SELECT 1 AS code, 2305843009213693952 AS w FROM range(8);
CREATE TABLE q AS SELECT i AS code, 5 AS title FROM range(3) AS t(i);
"""
BREAKS = {
    "expression_rewriter": (
        "SELECT SUM((a + 1) + (CASE WHEN id = 3 THEN -3 ELSE 0 END + 2)) FROM p",
        "SELECT COUNT(*) FROM p WHERE TRY(CAST(CAST(s AS DATE) AS TIMESTAMP) > TIMESTAMP '2024-06-01')",
    ),
    "statistics_propagation": (
        "SELECT LEAST(SUM(w), 20) FROM large LEFT JOIN q ON q.code = large.code AND q.title > 90",
    ),
    "aggregate_function_rewriter": ("SELECT SUM(a + 3) FROM p WHERE id < 4",),
}
"""Optimizer → statements over rows of people, whose value or failure it changes."""


@pytest.mark.parametrize("name", BREAKS)
def test_an_optimizer_that_is_not_on_the_list_changes_values_or_failures(name: str) -> None:
    with restricted({}) as ours, duckdb.connect() as theirs:
        disable(theirs, unwanted(theirs) - {name})
        found = []
        for connection in (ours, theirs):
            connection.execute(TABLE)
            found.append([_outcome(connection, sql) for sql in BREAKS[name]])
        assert found[0] != found[1]


def _outcome(connection: duckdb.DuckDBPyConnection, sql: str) -> str:
    try:
        return repr(connection.execute(sql).fetchall())
    except duckdb.Error:
        return "fails"
