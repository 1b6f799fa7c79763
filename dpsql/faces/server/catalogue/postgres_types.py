"""PostgreSQL 15's own relations and types, as a server of it describes them, and what dpsql's types are there."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from importlib import resources
from typing import Any

from dpsql.core.ir.types import Kind, SqlType

Row = dict[str, Any]


@functools.cache
def postgres() -> Mapping[str, Any]:
    """PostgreSQL 15 of itself: relations → columns → types, and its types, as a server of it says."""
    found: dict[str, Any] = json.loads(resources.files(__package__).joinpath("pg15.json").read_text("utf-8"))
    return found


def postgres_settings() -> Mapping[str, str]:
    """Name → the value that it begins with."""
    found: dict[str, str] = postgres()["settings"]
    return found


@functools.cache
def types() -> Mapping[str, Row]:
    """PostgreSQL's types by name, each with what `format_type` calls it in `format`."""
    names = [*postgres()["relations"]["pg_type"], "format"]
    rows = [dict(zip(names, row, strict=True)) for row in postgres()["types"]]
    return {row["typname"]: row for row in rows}


_NAMES = {"TINYINT": "int2", "UTINYINT": "int2", "SMALLINT": "int2", "USMALLINT": "int4", "INTEGER": "int4",
          "UINTEGER": "int8", "BIGINT": "int8", "UBIGINT": "numeric", "HUGEINT": "numeric", "DOUBLE": "float8",
          "FLOAT": "float4"}  # fmt: skip
_KINDS = {Kind.BOOLEAN: "bool", Kind.DECIMAL: "numeric", Kind.VARCHAR: "varchar", Kind.DATE: "date",
          Kind.TIMESTAMP: "timestamp", Kind.TIMESTAMPTZ: "timestamptz", Kind.TIME: "time", Kind.INTERVAL: "interval",
          Kind.UUID: "uuid", Kind.BLOB: "bytea"}  # fmt: skip


def type_name(type_: SqlType | None) -> str:
    """PostgreSQL's name of a type, as pg_type has it; "text" if the policy leaves it to the data."""
    if type_ is None:
        return "text"
    if type_.kind is Kind.LIST:
        return f"_{type_name(type_.item)}"
    return _NAMES.get(type_.name) or _KINDS.get(type_.kind, "text")


def modifier(type_: SqlType | None) -> int:
    """PostgreSQL's atttypmod: digits of a DECIMAL, else -1."""
    if type_ is None or type_.kind is not Kind.DECIMAL:
        return -1
    return ((type_.precision << 16) | type_.scale) + 4


def format_type(oid: int | None, mod: int | None) -> str | None:
    """What PostgreSQL's `format_type` says."""
    if oid is None:
        return None
    row = next((t for t in types().values() if t["oid"] == oid), None)
    if row is None:
        return "???" if oid else "-"
    name = str(row["format"])
    if row["typname"] == "numeric" and mod is not None and mod >= 4:
        return f"{name}({(mod - 4) >> 16},{(mod - 4) & 0xFFFF})"
    return name


def regtype_oid(name: str) -> int | None:
    """The oid of a type by any of its names, as `'…'::regtype` reads it; None if there is none."""
    wanted = name.strip().removeprefix("pg_catalog.").strip('"')
    for row in types().values():
        if wanted in (row["typname"], row["format"]):
            return int(row["oid"])
    return None
