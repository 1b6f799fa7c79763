"""Types of DuckDB that policies do not have, and what is read in their place: a function of the value alone, total.

An ENUM is read as its text. What it lists may have been made of the rows (`CREATE TYPE … AS ENUM (SELECT DISTINCT …)`,
a category of pandas), so nobody looks at the list but whoever drafts a policy.
"""

from __future__ import annotations

import re

from dpsql.core.printing.dialects.duckdb import quoted

_VALUE = r"'(?:[^']|'')*'"
_ENUM = re.compile(rf"ENUM\(({_VALUE}(?:, {_VALUE})*)?\)((?:\[\])*)")
_TIMES = frozenset({"TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"})
"""Timestamps of other units: those of microseconds, rounded; NULL where they reach farther."""


def read_as(type_: str) -> str | None:
    """The type in whose place `type_` is not known to policies; None for all others, which are read as they are."""
    enum = _ENUM.fullmatch(type_)
    if enum is not None:
        return f"VARCHAR{enum[2]}"
    return "TIMESTAMP" if type_ in _TIMES else None


def may_become_null(type_: str) -> bool:
    """Whether reading it may give NULL for a value that is not."""
    return type_ in _TIMES - {"TIMESTAMP_NS"}


def enum_values(type_: str) -> tuple[str, ...]:
    """The values that an ENUM lists, in its order; nothing of another type."""
    enum = _ENUM.fullmatch(type_)
    if enum is None or enum[2]:
        return ()
    return tuple(value[1:-1].replace("''", "'") for value in re.findall(_VALUE, enum[1] or ""))


def relation_sql(place: str, casts: tuple[tuple[str, str], ...]) -> str:
    """A relation in FROM. casts: the columns that are read as another type, and as which."""
    if not casts:
        return place
    items = ", ".join(f"TRY_CAST({quoted(name)} AS {type_}) AS {quoted(name)}" for name, type_ in casts)
    return f"(SELECT * REPLACE ({items}) FROM {place})"
