"""What a tool is shown that asks for private rows: no rows, and in the first text column of one line why."""

from __future__ import annotations

from typing import Final

from dpsql.core.ir.types import Kind, SqlType
from dpsql.faces.server.asked import DIALECT
from dpsql.frontend.text.rows_wanted_by_tools import wants_no_row

WHY_EMPTY: Final = "rows are private: count or average instead"
"""At most 50 characters: of longer ones tools make a description, and hide the column."""


def why_empty(sql: str, columns: tuple[tuple[str, SqlType], ...]) -> tuple[tuple[str | None, ...], ...]:
    """One row; none where no column is a text, or where the statement asks for columns alone (LIMIT 0, WHERE 1 = 0)."""
    texts = [place for place, (_, type_) in enumerate(columns) if type_.kind is Kind.VARCHAR]
    if not texts or wants_no_row(sql, DIALECT):
        return ()
    return (tuple(WHY_EMPTY if place == texts[0] else None for place in range(len(columns))),)
