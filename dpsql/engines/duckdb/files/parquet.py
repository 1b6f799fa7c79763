"""What DuckDB reads from a Parquet file besides its values, and believes: so it may overlook rows because of another.

*Statistics* leave NaNs out. DuckDB skips the NaNs of a row group, or takes them for its only number, until one other
row widens the range; `can_have_nan` tells it otherwise. *Bloom filters* tell 0.0 from -0.0, which are equal; DuckDB
looks for both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from dpsql.core.policy.source import SourceCall, Struct
from dpsql.core.printing.dialects.duckdb import quoted

Place = tuple[str, str, str]
"""Database, schema and name of a relation."""

_TEXT = r"'(?:[^']|'')*'"
_READER = re.compile(
    rf"\b(?:read_parquet|parquet_scan)\((?:[^()']|{_TEXT}|\((?:[^()']|{_TEXT}|\((?:[^()']|{_TEXT})*\))*\))*\)",
    re.IGNORECASE,
)
_CAREFUL = re.compile(r"\(can_have_nan = (?:true|CAST\('t' AS BOOLEAN\))\)", re.IGNORECASE)
_PARQUET = re.compile(r"\b(?:read_parquet|(?:parquet|delta|iceberg)_scan)\b|\.parquet", re.IGNORECASE)
_LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")


def folded(name: str) -> str:
    """A name as DuckDB compares names: ASCII letters without case, all else as it is."""
    return name.translate(_LOWER)


def source_sql(call: SourceCall) -> str:
    """The query of an expanded call's rows, as DuckDB is to run it."""
    plain, parts = _partitions(call)
    careful = plain.with_options((("can_have_nan", True),)) if call.reader == "read_parquet" else plain
    items = [f"TRY_CAST({quoted(name)} AS {type_}) AS {quoted(name)}" for name, type_ in parts.items()]
    replaced = f" REPLACE ({', '.join(items)})" if items else ""
    return f"SELECT *{replaced} FROM {careful.sql()}"


def _partitions(call: SourceCall) -> tuple[SourceCall, Mapping[str, str]]:
    """The call without `hive_types`, and what they are: to DuckDB, a folder whose name is of another type is an error.

    Such a name becomes NULL, as `__HIVE_DEFAULT_PARTITION__` is. The types are known ones; see sources.py.
    """
    types = next((value for name, value in call.options if name == "hive_types"), None)
    if not isinstance(types, Struct):
        return call, {}
    rest = tuple((n, v) for n, v in call.options if n not in ("hive_types", "hive_types_autocast"))
    options = (*rest, ("hive_types_autocast", False))
    return SourceCall(call.reader, call.paths, options), {name: str(type_) for name, type_ in types.items}


def believing_views(views: Mapping[Place, str], macros: Iterable[str]) -> frozenset[Place]:
    """The views that may overlook values of a Parquet file, by themselves or through another view.

    views: place → text. macros: the texts of all; one that reads such files may be in any view.
    """

    def believes(sql: str) -> bool:
        rest = _READER.sub(lambda call: "" if _CAREFUL.search(call[0]) else call[0], sql)
        return _PARQUET.search(rest) is not None

    if any(map(believes, macros)):
        return frozenset(views)
    known: set[Place] = set()
    reached = {place for place, sql in views.items() if believes(sql)}
    while reached - known:
        known |= reached
        names = re.compile(rf"(?<!\w)(?:{'|'.join(re.escape(folded(view)) for *_, view in known)})(?!\w)")
        reached = {place for place, sql in views.items() if names.search(folded(sql))}
    return frozenset(known)
