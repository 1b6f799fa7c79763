"""Types of DuckDB that policies do not have, and what is read in their place: a function of the value alone, total.

An ENUM is read as its text. What it lists may have been made of the rows (`CREATE TYPE … AS ENUM (SELECT DISTINCT …)`,
a category of pandas), so nobody looks at the list but whoever drafts a policy.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from dpsql.core.ir.types import Kind, SqlType
from dpsql.core.policy.derived import Derived
from dpsql.core.printing.dialects.duckdb import quoted
from dpsql.engines.duckdb.files.parquet import folded

_VALUE = r"'(?:[^']|'')*'"
_ENUM = re.compile(rf"ENUM\(({_VALUE}(?:, {_VALUE})*)?\)((?:\[\])*)")
_TIMES = frozenset({"TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"})
"""Timestamps of other units: those of microseconds, rounded; NULL where they reach farther."""


def read_as(type_: str) -> str | None:
    """The type in whose place `type_` is not known to policies; None for all others, which are read as they are."""
    enum = _ENUM.fullmatch(type_)
    if enum is not None:
        return f"VARCHAR{enum[2]}"
    if type_ == "JSON":
        return "VARCHAR"
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


@dataclass(frozen=True, slots=True)
class Made:
    """A column that the policy makes of the data's: its name, of what, and of which type."""

    name: str
    of: Derived
    type: SqlType


def made_sql(made: Made) -> str:
    """The value of a made column in a row of `raw`: NULL wherever it cannot be computed, never an error."""
    sql = f"raw.{quoted(made.of.column)}"
    for field in made.of.fields:
        sql = f"struct_extract({sql}, {literal(field)})"
    if made.of.path:
        text = f"CAST({sql} AS VARCHAR)"
        sql = f"CASE WHEN json_valid({text}) THEN json_extract_string({text}, {literal(made.of.path)}) END"
    if made.of.zone:  # times that are too far for a calendar are an error of DuckDB's
        time = f"TRY_CAST({sql} AS TIMESTAMPTZ)"
        first, last = (f"TIMESTAMPTZ '{day} 00:00:00+00'" for day in ("0001-01-03", "9999-12-29"))
        sql = f"CASE WHEN {time} BETWEEN {first} AND {last} THEN timezone({literal(made.of.zone)}, {time}) END"
    if made.of.texts:
        return f"CAST({sql} AS VARCHAR) IN ({', '.join(map(literal, made.of.texts))})"
    value = f"TRY_CAST({sql} AS {made.type})"
    if made.type.kind is Kind.INTEGER:  # which a cast would round to: 2.5 is no whole number
        return f"CASE WHEN TRY_CAST({sql} AS DOUBLE) = CAST({value} AS DOUBLE) THEN {value} END"
    return value


def probe(made: Made) -> str:
    """A query without rows of the data that fails if a zone is unknown: a query of no rows does not."""
    return f"SELECT timezone({literal(made.of.zone or 'UTC')}, TIMESTAMPTZ '2020-01-01 00:00:00+00')"


def relation_sql(
    place: str, casts: tuple[tuple[str, str], ...], made: tuple[Made, ...] = (), names: frozenset[str] = frozenset()
) -> str:
    """A relation in FROM. casts: the columns that are read as another type, and as which. made: those that the policy
    makes, each in place of the column of its name, if `names`, in lower case, has it."""
    if not casts and not made:
        return place
    gone = {folded(m.name) for m in made}
    cast = [(quoted(name), type_) for name, type_ in casts if folded(name) not in gone]
    items = [f"TRY_CAST(raw.{name} AS {type_}) AS {name}" for name, type_ in cast]
    items += [f"{made_sql(m)} AS {quoted(m.name)}" for m in made if folded(m.name) in names]
    more = "".join(f", {made_sql(m)} AS {quoted(m.name)}" for m in made if folded(m.name) not in names)
    replaced = f" REPLACE ({', '.join(items)})" if items else ""
    return f"(SELECT *{replaced}{more} FROM {place} AS raw)"


def literal(text: str) -> str:
    """A text as SQL."""
    return "'" + text.replace("'", "''") + "'"
