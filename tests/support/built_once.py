"""DuckDB files that tests write to or move: each script is run once in a process, and others get a copy of its file.

Opening DuckDB takes 20 ms of processor time, and hundreds of tests want a file of their own.
"""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import duckdb


@cache
def _file(script: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "built.duckdb"
        with duckdb.connect(str(path)) as connection:
            connection.execute(script)
        return path.read_bytes()


def build(path: Path, script: str) -> None:
    """Make the file as the statements of a script leave it. It must not be there."""
    with path.open("xb") as file:
        file.write(_file(script))
