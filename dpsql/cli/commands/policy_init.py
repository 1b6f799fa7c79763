"""`dpsql policy init`: a first policy for a DuckDB file or for data files, from their schema alone."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Sequence
from pathlib import Path

from dpsql.cli.files import write_text
from dpsql.core.policy.catalogue import CatalogueTable
from dpsql.core.policy.source import Option, SourceCall, Struct
from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.diagnostics.errors import CannotOpen, reject
from dpsql.policy.file.scalars import usable_name
from dpsql.policy.tools.draft import draft_policy

_READERS = {
    ".parquet": "read_parquet",
    ".csv": "read_csv",
    ".tsv": "read_csv",
    ".json": "read_json",
    ".jsonl": "read_json",
    ".ndjson": "read_json",
}
_WILD = re.compile(r"[*?\[\]]")


def run(data: Sequence[str], output: str | None, name: str | None) -> int:
    """Raises CannotOpen DP006 for data that cannot be read; Rejected DP903 for the call."""
    from dpsql.engines.open import open_files

    database, sources = sort_data(data)
    here = Path.cwd()
    engine = open_files(None if database is None else Path(database), sources, here)
    try:
        catalogue = engine.describe()
    finally:
        engine.close()
    # Paths in a policy are relative to its folder.
    folder = here if output in (None, "-") else Path(os.path.abspath(str(output))).parent
    text = draft_policy(
        catalogue,
        name=name or _stem(database or data[0]),
        database=None if database is None else relative(database, folder),
        sources={
            table: str(_moved(call, folder).with_options(_guessed(call, catalogue.table(table))))
            for table, call in sources.items()
        },
    )
    write_text(text, output)
    return 0


def sort_data(data: Sequence[str]) -> tuple[str | None, dict[str, SourceCall]]:
    """The DuckDB file, if there is one, and table name → reader call for all other files.

    Raises CannotOpen DP006, Rejected DP903.
    """
    database: str | None = None
    sources: dict[str, SourceCall] = {}
    for path in data:
        reader = _READERS.get(Path(path).suffix.lower()) or _sniffed(path)
        if reader is None:
            if database is not None:
                raise reject("DP903", "a policy has one database, not two", help=["draft one policy for each"])
            database = path
            continue
        table = _table_name(path, sources)
        sources[table] = SourceCall(reader, (path,))
    return database, sources


def _sniffed(path: str) -> str | None:
    """The reader of a file whose name does not tell, None for what is to be opened as a database."""
    head = b""
    reason = ""
    try:
        with open(path, "rb") as file:
            head = file.read(12)
    except FileNotFoundError:
        reason = "does not exist"
    except IsADirectoryError:
        reason = "is a folder: name a DuckDB file, or files by a pattern in quotes, e.g. 'data/*.parquet'"
    except (OSError, ValueError):
        reason = "cannot be read"
    if not reason and head[:4] == b"PAR1":
        return "read_parquet"
    if not reason and head[8:12] != b"DUCK":
        reason = "is neither a DuckDB database nor a Parquet, CSV or JSON file"
    if reason:
        raise CannotOpen([Diagnostic("DP006", f"{path!r} {reason}")])
    return None


def _table_name(path: str, taken: dict[str, SourceCall]) -> str:
    """The file's name without its ending; for a pattern, the name of its folder."""
    found = Path(path)
    stem = found.stem if not _WILD.search(found.name) else found.parent.name
    base = re.sub(r"[^A-Za-z0-9_]+", "_", stem).strip("_") or "data"
    base = base if usable_name(base) and not base[0].isdigit() else f"t_{base}"
    name, number = base, 1
    while name.casefold() in {t.casefold() for t in taken}:
        number += 1
        name = f"{base}_{number}"
    return name


def _guessed(call: SourceCall, table: CatalogueTable | None) -> tuple[tuple[str, Option], ...]:
    """What was guessed about files without a schema, as options: a policy must say it, rows may not decide it."""
    if table is None or call.tells_schema:
        return ()
    columns = ("columns", Struct(tuple((c.name, c.type) for c in table.columns)))
    if call.reader != "read_csv":
        return (columns,)
    named = any(not re.fullmatch(r"column\d+", c.name) for c in table.columns)
    first = min((name for name in glob.glob(call.paths[0]) if os.path.isfile(name)), default=call.paths[0])
    with open(first, encoding="utf-8", errors="replace") as file:
        line = file.readline(1 << 16)
    delimiter = max(",;\t|", key=line.count)
    return (("auto_detect", False), ("header", named), ("delim", delimiter), columns)


def _moved(call: SourceCall, folder: Path) -> SourceCall:
    return call.with_paths(tuple(relative(path, folder) for path in call.paths))


def relative(path: str, folder: Path) -> str:
    """`path` (relative to the current folder) as a policy in `folder` has to write it."""
    expanded = os.path.expanduser(path)
    if os.path.isabs(expanded):
        return expanded
    try:
        return Path(os.path.relpath(expanded, folder)).as_posix()
    except ValueError:  # another drive
        return os.path.abspath(expanded)


def _stem(path: str) -> str:
    return Path(path).stem if not _WILD.search(Path(path).name) else Path(path).parent.name
