"""Scalar texts in DuckDB's dialect give what DuckDB gives, or are refused by name."""

from __future__ import annotations

import duckdb

from tests.support.dialect_texts import MADE, compared


def test_none_means_something_else_than_in_duckdb() -> None:
    with duckdb.connect() as own:
        own.execute(f"SET TimeZone = 'UTC'; {MADE}")
        same, _, different = compared("duckdb", lambda query: [v for (v,) in own.execute(query).fetchall()])
    assert different == []
    assert len(same) >= 349
