"""The folders of prepared tables, what is in them, and which of them is read.

<prepared_at>/<policy>.prepared/<identity>/<table>/…     the copies
<prepared_at>/<policy>.prepared/<identity>/manifest/…    one line, written last: number, hash and the manifest
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from dpsql.engines.spark.files import File

_LINE: Final = re.compile(r"(\d{1,18}) ([0-9a-f]{64}) (.*)", re.DOTALL)


def look_of(paths: Sequence[str], looks: Mapping[str, File]) -> str:
    """One text for names, sizes and times of change of files."""
    listed = "\n".join(f"{path} {looks[path][0]} {looks[path][1]}" for path in sorted(paths))
    return f"{len(paths)} files, {hashlib.sha256(listed.encode()).hexdigest()}"


def folder_of(place: str, table: str) -> str:
    """Where the copy of a table stands; two names have two folders, however they are spelled."""
    letters = re.sub(r"[^a-z0-9]", "_", table.lower())[:40]
    return f"{place}/t_{letters}_{hashlib.sha256(table.encode()).hexdigest()[:8]}"


def line_of(number: int, manifest: str) -> str:
    """What is written of a manifest. number: higher than those of all before it."""
    return f"{number} {_sum(manifest)} {manifest}"


def last_of(lines: Iterable[str]) -> tuple[int, str | None]:
    """The highest number of a manifest that is whole, and that manifest; 0: there is none."""
    found = [line for line in map(_LINE.fullmatch, lines) if line is not None and _sum(line[3]) == line[2]]
    return max(((int(line[1]), line[3]) for line in found), default=(0, None))


def _sum(manifest: str) -> str:
    return hashlib.sha256(manifest.encode()).hexdigest()
