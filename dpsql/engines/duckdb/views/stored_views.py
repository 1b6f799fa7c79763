"""Stored views in a locked database: how their names are looked up, and why one cannot be read, with its repair."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from dpsql.core.engine import cannot_open
from dpsql.core.policy.source import SourceCall, SourceError, parse_source
from dpsql.diagnostics.errors import CannotOpen
from dpsql.engines.duckdb.locked.lockdown import SHADOWED
from dpsql.engines.duckdb.views.views import NAME

Rows = Callable[[str], list[tuple[Any, ...]]]

_TEXT = r"""'((?:[^']|'')+)'|"((?:[^"]|"")+)\""""
_WHOLE = re.compile(
    rf"CREATE VIEW {NAME}(?:\.{NAME})* AS (?:SELECT \* )?FROM (?:{_TEXT}|((?:read_parquet|parquet_scan)\(.*\))) ?;?",
    re.DOTALL,
)
_BRACKETED = re.compile(r"('(?:[^']|'')*')|\((\w+ = \w+)\)")
"""A text, or an option of a call, as DuckDB prints it: `read_parquet('…', (hive_partitioning = true))`."""
_PARQUET: Final = ".parquet"


def looks_up(rows: Rows, database: str) -> str | None:
    """The setting by which a stored view finds tables that it names without their schema, as it does where its file is
    the one that is open; None if there are none, or the file redefines a built-in function, which ours would find
    there, too."""
    if not rows("SELECT 1 FROM duckdb_views() WHERE NOT internal LIMIT 1"):
        return None
    return None if rows(SHADOWED) else f"SET SESSION search_path = '{database}.main'"


def source_of(sql: str, reads: Sequence[str]) -> str | None:
    """The `source:` that stands for a view which is nothing but all rows and columns of Parquet files.

    reads: what the view reads, as `views.reads_of` has it.
    """
    found = _WHOLE.fullmatch(sql)
    if found is None or len(reads) < 2 or not all(base.startswith("'") for base in reads[1:]):
        return None
    text, name, call = found.groups()
    call = None if call is None else _BRACKETED.sub(lambda part: part[1] or part[2], call)
    path = text.replace("''", "'") if text else (name or "").replace('""', '"')
    if call is None and not path.endswith(_PARQUET):
        return None
    quoted = path.replace("'", "''")
    written = f"read_parquet('{quoted}')" if call is None else call.replace("parquet_scan(", "read_parquet(", 1)
    try:
        parsed = parse_source(written)
    except SourceError:
        return None
    options = tuple(o for o in parsed.options if o[0].lower() != "can_have_nan")  # which is said of every source
    return str(SourceCall(parsed.reader, parsed.paths, options))


def overlooks(name: str, source: str | None, locked: bool) -> CannotOpen:
    """The refusal of a view of Parquet files in which DuckDB would overlook values."""
    repair = f"write at the table in the policy:  source: {source}" if source else (
        "declare the files with a  source:  at a table of the policy, or store the rows:  "
        f"CREATE TABLE {_last(name)}_rows AS FROM {name}"
    )  # fmt: skip
    what = "is, or may read, a view of Parquet files, in which DuckDB would overlook values"
    if locked:
        return cannot_open(f"`{name}` {what}", repair)
    return cannot_open(f"`{name}` {what}", repair, "make it of  read_parquet('…', can_have_nan = true)")


def unreadable(name: str, reads: Sequence[str], rows: Rows) -> CannotOpen:
    """The refusal of a view that DuckDB does not bind. reads: as for `source_of`."""
    if (closed := reads_files(name, reads)) is not None:
        return closed
    shadowed = [str(found) for (found,) in rows(SHADOWED)]
    if shadowed:
        return cannot_open(
            f"the view `{name}` names tables without their schema, and is not read in a database that redefines "
            f"built-in functions: {', '.join(shadowed)}",
            "drop or rename these macros, or write the view with  schema.table",
        )
    return cannot_open(
        f"the view `{name}` cannot be read: a table, column or function that it uses is not in its own database",
        "open the file with DuckDB and run  "
        f"FROM {name} LIMIT 0  to see which; write tables of other schemas as  schema.table",
        _stored(name),
    )


def reads_files(name: str, reads: Sequence[str], source: str | None = None) -> CannotOpen | None:
    """The refusal of a view of files; None of others. source: what stands for the view, if anything does."""
    files = [base[1:-1] for base in reads[1:] if base.startswith("'") and "." in base]  # else a table that is gone
    if not files:
        return None
    declared = f"write at the table in the policy:  source: {source}"
    return cannot_open(
        f"the view `{name}` reads files, and a locked database opens those alone that a policy names: "
        + ", ".join(files[:3]),
        declared if source else "declare the files with a  source:  at a table of the policy",
        _stored(name),
    )


def _stored(name: str) -> str:
    return f"store its rows in the database:  CREATE TABLE {_last(name)}_rows AS FROM {name}"


def _last(name: str) -> str:
    return re.sub(r"\W+", "_", name.rpartition(".")[2])
