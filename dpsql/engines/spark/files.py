"""The files that tables are made of, and whether they are what they were.

*Claim.* The rows of all statements of a run come from the same files with the same contents, or the statement that
saw others fails, before noise is drawn for what it found. *Why.* A table is read through a view of our session whose
list of files was made when its snapshot began, where Spark keeps such a list; after each statement the list, and size
and time of change of each file, are looked at again and compared. Files that come later are not in the list: what is
not read need not stay. *When it would be false.* If a file were rewritten with the same size within the resolution of
its time of change (a second on some stores), or changed and changed back; formats that have versions of their own
(Delta, Iceberg, Hudi) are refused. *Tested by* tests/engines_elsewhere/spark/test_snapshots.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import unquote

File = tuple[int, int]
"""Size in bytes and time of change in microseconds."""

_SPECIAL: Final = re.compile(r"([\\*?\[\]{}])")
MOST_FILES: Final = 1_000_000
"""Of all tables of a policy; their names are sent with each look."""


def plain(uris: Iterable[str]) -> tuple[str, ...]:
    """The paths of files as Hadoop writes them, from the URIs that Spark tells; sorted."""
    return tuple(sorted({re.sub(r"^file:/+", "file:/", unquote(uri)) for uri in uris}))


def escaped(path: str) -> str:
    """A path that stands for itself, and for no pattern."""
    return _SPECIAL.sub(r"\\\1", path)


def looked_at(session: Any, paths: Sequence[str]) -> Mapping[str, File] | None:
    """Size and time of change of each file, as they are now; None if one is not there. Reads none of their bytes."""
    if not paths:
        return {}
    if len(paths) > MOST_FILES:
        raise ValueError("too many files")
    listing = (
        session.read.format("binaryFile")
        .load([escaped(path) for path in paths])
        .select("path", "length", "modificationTime")
    )
    names, lengths, times = listing.toArrow().columns
    found = {
        re.sub(r"^file:/+", "file:/", path): (length, time)
        for path, length, time in zip(
            names.to_pylist(), lengths.to_pylist(), times.cast("int64").to_pylist(), strict=True
        )
    }
    return found if found.keys() == set(paths) else None


def versioned(session: Any, paths: Iterable[str]) -> str:
    """The format whose versions a log beside these files keeps, so that not all of them are the table; else empty."""
    folders = {re.sub(r"(/[^/=]+=[^/]*)*$", "", path.rpartition("/")[0]) for path in paths}
    around = folders | {folder.rpartition("/")[0] for folder in folders}
    for folder in sorted(around):
        for format_, log in _LOGS.items():
            if _is_there(session, f"{escaped(folder)}/{log}"):
                return format_
    return ""


_LOGS: Final = {"delta": "_delta_log", "iceberg": "metadata/*.metadata.json", "hudi": ".hoodie"}
"""Format → what lies beside its files."""


def _is_there(session: Any, pattern: str) -> bool:
    """Whether there is such a file or folder; where that cannot be told, there is."""
    try:
        session.read.format("binaryFile").load(pattern).inputFiles()
    except Exception as error:
        return str(getattr(error, "getCondition", lambda: "")()) != "PATH_NOT_FOUND"
    return True
