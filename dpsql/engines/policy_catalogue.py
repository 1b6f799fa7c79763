"""A database of relations and functions that hold no data: what a policy says of itself, for clients that ask."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class CatalogueFunction:
    """A function that questions may call. arguments, result: types of the database. call: it may be given None."""

    name: str
    arguments: tuple[str, ...]
    result: str
    call: Callable[..., Any]


@dataclass(frozen=True, slots=True)
class CatalogueRelation:
    """A relation: its columns with their types, and its rows."""

    name: str
    columns: Mapping[str, str]
    rows: Sequence[Sequence[Any]]


class TooMuch(Exception):
    """A question took too long or too much memory."""


class DoesNotFit(Exception):
    """A question names a column that there is not, or its types do not fit: the column, "" if it is not that."""


class CatalogueDatabase(Protocol):
    """Relations and functions, and SELECTs over them. One question at a time, from any thread."""

    def fetch(self, sql: str) -> list[tuple[Any, ...]]:
        """All rows of one SELECT. Raises TooMuch, DoesNotFit."""
        ...

    def close(self) -> None:
        """Forget everything. Closing twice is allowed."""
        ...


def open_catalogue(relations: Sequence[CatalogueRelation], functions: Sequence[CatalogueFunction]) -> CatalogueDatabase:
    """Make one, in memory."""
    from dpsql.engines.duckdb.policy_catalogue import DuckDBCatalogue

    return DuckDBCatalogue(relations, functions)
