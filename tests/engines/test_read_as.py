"""Types that policies do not have: an ENUM is its text, a timestamp of any unit one of microseconds."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow
import pytest

import dpsql
from dpsql.engines.duckdb.engine import DuckDBEngine
from dpsql.engines.duckdb.read_as import enum_values, read_as

SETUP = """
CREATE TYPE state AS ENUM ('open', 'it''s', 'a, b)', 'unused');
CREATE TABLE orders AS SELECT i AS id, (['open', 'it''s', 'a, b)'])[1 + i % 3]::state AS state,
    [('open')::state] AS states, TIMESTAMP_NS '2024-05-01 00:00:00.123456789' AS ns FROM range(6) t(i);
CREATE VIEW paid AS SELECT * FROM orders WHERE state <> 'open';
"""
POLICY = """
version: 1
name: shop
tables:
  {table}:
    unit: {{rows: 1}}
    columns:
      state: {{type: varchar, nullable: false, domain: [open, "it's", "a, b)", gone]}}
      ns: {{type: timestamp}}
ledger: ":memory:"
budgets: {{total: {{epsilon: 1000000}}}}
"""


def test_names_of_types() -> None:
    assert read_as("ENUM('a', 'it''s', 'x)', '')") == "VARCHAR" and read_as("ENUM('a')[][]") == "VARCHAR[][]"
    assert enum_values("ENUM('a', 'it''s', 'x)', '')") == ("a", "it's", "x)", "")
    assert read_as("TIMESTAMP_NS") == "TIMESTAMP"
    assert [read_as(t) for t in ("VARCHAR", "TIMESTAMP", "STRUCT(a ENUM('b'))", "MAP(ENUM('a'), INTEGER)")] == [
        None
    ] * 4
    assert enum_values("ENUM('a')[]") == enum_values("VARCHAR") == ()


@pytest.mark.parametrize("table", ["orders", "paid"])
def test_an_enum_is_grouped_compared_and_ordered_as_its_text(table: str) -> None:
    with duckdb.connect() as own:
        own.execute(SETUP)
        (raw,) = own.execute(f"SELECT count(*) FROM {table} WHERE state = 'it''s'").fetchall()
        with dpsql.connect(
            own, policy=dpsql.Policy.from_yaml(POLICY.format(table=table)), epsilon=10_000, optimizers="ours"
        ) as con:
            sql = f"SELECT state, COUNT(*) AS n FROM {table} WHERE ns < '2024-05-02' GROUP BY state ORDER BY state"
            expected = {"a, b)": 2, "gone": 0, "it's": 2, "open": 2 if table == "orders" else 0}
            assert dict(con.execute(sql).fetchall()) == expected
            assert con.execute(f"SELECT COUNT(*) FROM {table} WHERE state = 'it''s'").fetchall() == [raw]
            assert con.execute(f"SELECT COUNT(*) FROM {table} WHERE state = 'gone'").fetchall() == [(0,)]
            assert con.execute(f"SELECT COUNT(*) FROM {table} WHERE state < 'b'").fetchall() == [(2,)]  # not its place


def test_values_of_every_unit_of_time_without_an_error() -> None:
    far = pyarrow.table({"s": pyarrow.array([2**60, 0], pyarrow.timestamp("s"))})  # no TIMESTAMP reaches there
    with duckdb.connect() as own:
        own.execute(SETUP)
        own.register("given", far)
        own.execute("CREATE TABLE far AS SELECT * FROM given")
        engine = DuckDBEngine.wrap(own, optimizers="ours")
        orders, distant = engine.describe().table("orders"), engine.describe().table("far")
        assert orders is not None and [c.type for c in orders.columns] == [
            "BIGINT",
            "VARCHAR",
            "VARCHAR[]",
            "TIMESTAMP",
        ]
        assert distant is not None and distant.columns[0].nullable
        found = engine.fetch(f"SELECT ns, states[1] FROM {engine.table_sql('orders')} WHERE id = 1")
        assert [str(c[0]) for c in found.columns] == ["2024-05-01 00:00:00.123457", "open"]
        count = f"SELECT COUNT(*), COUNT(s) FROM {engine.table_sql('far')}"
        assert engine.fetch(count).columns == ([2], [1])
        assert engine.fetch(f"{count} WHERE s < TIMESTAMP '2020-01-01'").columns == ([1], [1])


def test_the_list_of_a_type_reaches_a_draft_and_nothing_else(tmp_path: Path) -> None:
    """What an ENUM lists may have been read from the rows."""
    with duckdb.connect() as own:
        own.execute(SETUP)
        (state,) = [
            c for t in DuckDBEngine.wrap(own, optimizers="ours").describe().tables for c in t.columns if c.enumerated
        ][:1]
        assert state.enumerated == ("open", "it's", "a, b)", "unused")
    package = Path(dpsql.__file__).parent
    readers = [p.relative_to(package) for p in package.rglob("*.py") if ".enumerated" in p.read_text()]
    assert [p.as_posix() for p in readers if p.parts[0] != "engines"] == ["policy/tools/draft.py"]


def test_what_is_rounded_is_no_key() -> None:
    """Two times of one microsecond are equal afterwards."""
    with duckdb.connect() as own:
        own.execute("CREATE TABLE ticks (moment TIMESTAMP_NS PRIMARY KEY, day TIMESTAMP_S UNIQUE, number INT UNIQUE)")
        ticks = DuckDBEngine.wrap(own, optimizers="ours").describe().table("ticks")
        assert ticks is not None and ticks.primary_key == () and ticks.unique == (("number",),)
