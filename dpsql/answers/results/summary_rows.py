"""What is shown of summaries: their list, and what making or dropping one gives."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dpsql.core.ir.types import BIGINT, BOOLEAN, VARCHAR, SqlType
from dpsql.core.privacy_loss import PrivacyLoss

Columns = tuple[tuple[str, SqlType], ...]

LISTED: Columns = (
    ("name", VARCHAR),
    ("on_table", VARCHAR),
    ("columns", VARCHAR),
    ("k", BIGINT),
    ("made_by", VARCHAR),
    ("made", VARCHAR),
    ("held", BOOLEAN),
    ("first_receipt", VARCHAR),
    ("state", VARCHAR),
)
MADE: Columns = (("summary", VARCHAR), ("price", VARCHAR))
DROPPED: Columns = (("summary", VARCHAR),)


def listed(summaries: Iterable[Any]) -> list[tuple[Any, ...]]:
    """A row for each `KnownSummary`."""
    return [
        (s.name, s.table, ", ".join(s.columns), s.k, s.analyst, None if s.made is None else s.made.isoformat(), s.held,
         "" if s.held or s.receipt == PrivacyLoss() else str(s.receipt), s.state or "used")
        for s in summaries
    ]  # fmt: skip


def made(name: str, cost: PrivacyLoss) -> list[tuple[Any, ...]]:
    """The one row that making a summary gives. cost: of all of it."""
    return [(name, str(cost))]
