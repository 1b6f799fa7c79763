"""Texts as dates and timestamps: what DuckDB reads them as, or no constant."""

from __future__ import annotations

import duckdb
import pytest

from dpsql.core.ir.types import DATE, TIMESTAMP, SqlType
from dpsql.frontend.bind.literals import from_text


@pytest.mark.parametrize("target", [DATE, TIMESTAMP], ids=str)
@pytest.mark.parametrize(
    "text",
    [
        "1995-4-10", "1995-04-10", "1995/4/10", "1995 4 10", "95-4-10", " 1995-4-10", "1995-4/10", "19950410",
        "1995-W15-1", "1995-4-010", "1995-4-31", "1995-13-1", "1995-4-10 8:05", "1995-4-10T08:05:3", "1995-4-10 8",
        "1995-4-10 08:05:03.12", "1995-04-10 08:05:03.1234569", "1995-04-10 08:65", "1995-04-10 23:59:59", "soon", "",
    ],
)  # fmt: skip
def test_dates_are_what_duckdb_reads(text: str, target: SqlType) -> None:
    try:
        (read,) = duckdb.execute("SELECT CAST(? AS " + str(target) + ")", [text]).fetchall()[0]
    except duckdb.ConversionException:
        read = None
    found = from_text(text, target, None)
    assert (None if found is None else found.value) == read
