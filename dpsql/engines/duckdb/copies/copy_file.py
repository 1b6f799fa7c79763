"""Where a policy's prepared tables are kept: one file beside it, made of the files that its data lies in."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import duckdb

from dpsql.core.policy.policy import Policy
from dpsql.engines.duckdb.copies.copies import CHANGED, read_manifest, replacing
from dpsql.engines.duckdb.copies.seals import broken
from dpsql.engines.duckdb.files.sources import expand_source
from dpsql.engines.duckdb.opening import open_policy
from dpsql.engines.open import Copies, OpenOptions, Writer


class CopyFile:
    """The file of a policy's prepared tables; see `CopyStore`."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.path = Path(os.path.abspath(policy.directory / f"{policy.name}.prepared.duckdb"))

    @property
    def missing(self) -> str:
        """See `CopyStore.missing`."""
        return f"there is no file {self.path.name}"

    @property
    def version(self) -> str:
        """See `CopyStore.version`."""
        return f"duckdb {duckdb.__version__}"

    def manifest(self) -> str | None:
        """See `CopyStore.manifest`."""
        return read_manifest(self.path)

    def changed(self) -> str:
        """See `CopyStore.changed`."""
        return f"those in {self.path.name} {CHANGED}" if broken(self.path) else ""

    def looks(self) -> Mapping[str, str]:
        """Each file of the data, its database and those of its sources, patterns expanded."""
        files = [] if self._policy.database_path is None else [str(self._policy.database_path)]
        for table in self._policy.tables.values():
            if table.source is not None:
                files += expand_source(table.name, table.source, self._policy.directory).paths
        return {file: look_of(file) for file in files}

    def place(self, identity: str) -> str:
        """The file, of whichever identity."""
        return str(self.path)

    @contextlib.contextmanager
    def writing(self, identity: str, options: OpenOptions) -> Iterator[Writer]:
        """See `CopyStore.writing`."""
        with replacing(self.path) as new:
            writer = open_policy(self._policy, replace(options, copies=Copies(str(new), writing=True)))
            try:
                yield writer
            finally:
                writer.close()


def look_of(path: str) -> str:
    """Size and time of a file and of its write-ahead log, and a hash of its two ends; empty if it cannot be read."""
    try:
        found = os.stat(path)
        with open(path, "rb") as file:
            ends = file.read(12288)
            file.seek(max(0, found.st_size - 65536))
            ends += file.read()
        log = os.stat(f"{path}.wal").st_size if os.path.exists(f"{path}.wal") else 0
    except OSError:
        return ""
    return f"{found.st_size} {found.st_mtime_ns} {log} {hashlib.sha256(ends).hexdigest()[:32]}"
