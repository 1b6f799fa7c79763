"""Files that a policy is drafted for: which table each makes, and what its `source:` has to say of it."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from dpsql.core.policy.catalogue import CatalogueTable
from dpsql.core.policy.source import Option, SourceCall, Struct
from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.diagnostics.errors import CannotOpen, reject
from dpsql.policy.file.scalars import usable_name

_READERS = {
    ".parquet": "read_parquet",
    ".csv": "read_csv",
    ".tsv": "read_csv",
    ".json": "read_json",
    ".jsonl": "read_json",
    ".ndjson": "read_json",
}
_WILD = re.compile(r"[*?\[\]]")
_PARTITION = re.compile(r"([^=/\\]+)=[^/\\]*")
"""A folder whose name is a value of a column: `year=2024`."""

Sources = dict[str, SourceCall]


def sort_data(data: Iterable[str]) -> tuple[str | None, Sources]:
    """The DuckDB file, if there is one, and table name → reader call for all other files.

    Raises CannotOpen DP006, Rejected DP903.
    """
    database: str | None = None
    sources: Sources = {}
    for path in (one for given in data for one in _in_folder(given)):
        reader = _READERS.get(_ending(path)) or _sniffed(path)
        if reader is None:
            if database is not None:
                raise reject("DP903", "a policy has one database, not two", help=["draft one policy for each"])
            database = path
            continue
        sources[_table_name(path, sources)] = _call(reader, path)
    return database, sources


def named(path: str) -> str:
    """What a file, a folder or a pattern is called: without its ending, or as the last folder that is no pattern."""
    whole = Path(os.path.abspath(path))  # of "." the folder that one is in
    parts = [part for part in whole.parts if not _WILD.search(part) and not _PARTITION.fullmatch(part)]
    found = Path(parts[-1] if parts else "data")
    plain = _uncompressed(found.name)
    return Path(plain).stem if Path(plain).suffix.lower() in _READERS or not _WILD.search(path) else found.name


def together(data: Sequence[str]) -> str:
    """One file or pattern, or the folder that several have in common."""
    return data[0] if len(data) == 1 else os.path.commonpath([os.path.abspath(path) for path in data])


def told(call: SourceCall, table: CatalogueTable | None) -> tuple[tuple[str, Option], ...]:
    """What was guessed of files, as options: a policy must say it, neither rows nor names of folders may decide it."""
    if table is None:
        return ()
    parts = [c for c in table.columns if c.name in _partitions(call.paths[0])]
    types: tuple[tuple[str, Option], ...] = ()
    if parts:
        types = (("hive_types", Struct(tuple((c.name, c.type) for c in parts))),)
    if call.tells_schema:
        return types
    return (*types, ("columns", Struct(tuple((c.name, c.type) for c in table.columns if c not in parts))))


def with_missing_words(call: SourceCall) -> tuple[SourceCall, tuple[str, ...]]:
    """The call that reads words such as NA as no value, where that makes columns more than texts; and what is said."""
    from dpsql.engines.open import missing_words

    path = next(iter(_matching(call.paths[0])), call.paths[0])
    found = missing_words(path, call.options) if call.reader == "read_csv" else None
    if found is None:
        return call, ()
    columns = ", ".join(f"{name} {type_}" for name, type_ in found.columns[:8])
    more = f" and {len(found.columns) - 8} more" if found.columns[8:] else ""
    words = ", ".join(f"'{word}'" for word in found.words)
    return SourceCall(call.reader, call.paths, found.options), (f"{words} is read as no value:  {columns}{more}",)


def partition_columns(call: SourceCall) -> frozenset[str]:
    """The columns that are names of folders."""
    return frozenset(_partitions(call.paths[0]))


def _call(reader: str, path: str) -> SourceCall:
    from dpsql.engines.open import csv_options

    options: tuple[tuple[str, Option], ...] = ()
    if reader == "read_csv":
        options = csv_options(next(iter(_matching(path)), path))
    if _partitions(path):
        options += (("hive_partitioning", True),)
    return SourceCall(reader, (path,), options)


def _ending(path: str) -> str:
    return Path(_uncompressed(path)).suffix.lower()


def _uncompressed(name: str) -> str:
    """Without the ending of a compressed file, which readers see by it."""
    return name.removesuffix(".gz").removesuffix(".zst")


def _matching(path: str) -> list[str]:
    found = glob.glob(path, recursive=True) if _WILD.search(path) else [path]
    return sorted(name for name in found if os.path.isfile(name))


def _partitions(path: str) -> dict[str, None]:
    """Names of the columns that folders below the pattern stand for."""
    start = len(Path(path).parts) if not _WILD.search(path) else _depth(path)
    folders = (part for name in _matching(path) for part in Path(name).parts[start:-1])
    return {found[1]: None for folder in folders if (found := _PARTITION.fullmatch(folder))}


def _depth(path: str) -> int:
    return next(i for i, part in enumerate(Path(path).parts) if _WILD.search(part))


def _in_folder(path: str) -> list[str]:
    """A folder as patterns: one for files that hold parts of one table, else each file by itself."""
    if not os.path.isdir(path):
        return [path]
    files = [Path(name) for name in _matching(os.path.join(glob.escape(path), "**", "*"))]
    files = [f for f in files if _ending(f.name) in _READERS and not f.name.startswith(("_", "."))]
    endings = {f.name.removeprefix(Path(_uncompressed(f.name)).stem) for f in files}
    if len(endings) != 1:
        kinds = (
            "no Parquet, CSV or JSON file" if not endings else f"files of several kinds: {', '.join(sorted(endings))}"
        )
        raise CannotOpen([Diagnostic("DP006", f"folder {path!r} holds {kinds}: name files, or patterns in quotes")])
    (ending,) = endings
    if any(f.parent != Path(path) for f in files):
        return [os.path.join(path, "**", f"*{ending}")]
    if len({_WORD.match(f.stem)[0] for f in files}) == 1:  # type: ignore[index]  # it matches any text
        return [os.path.join(path, f"*{ending}")]
    return [str(f) for f in files]


_WORD = re.compile(r"[^\W\d]*")
"""What names of files of one table begin with: part-0, part-1; 2024.csv, 2025.csv."""


def _sniffed(path: str) -> str | None:
    """The reader of a file whose name does not tell, None for what is to be opened as a database."""
    head = b""
    reason = ""
    try:
        with open(path, "rb") as file:
            head = file.read(12)
    except FileNotFoundError:
        reason = "does not exist"
    except (OSError, ValueError):
        reason = "cannot be read"
    if not reason and head[:4] == b"PAR1":
        return "read_parquet"
    if not reason and head[8:12] != b"DUCK":
        reason = "is neither a DuckDB database nor a Parquet, CSV or JSON file"
    if reason:
        raise CannotOpen([Diagnostic("DP006", f"{path!r} {reason}")])
    return None


def _table_name(path: str, taken: Sources) -> str:
    base = re.sub(r"[^A-Za-z0-9_]+", "_", named(path)).strip("_") or "data"
    base = base if usable_name(base) and not base[0].isdigit() else f"t_{base}"
    name, number = base, 1
    while name.casefold() in {t.casefold() for t in taken}:
        number += 1
        name = f"{base}_{number}"
    return name
