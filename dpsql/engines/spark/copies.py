"""A policy's prepared tables are written by a cluster, as Parquet in a new folder each time; see folders.py.

*Claim.* What is read as a copy is what was written as one, whole. *Why.* Nothing in a folder is read before its
manifest is there, and of several the one with the highest number is; it holds names, sizes and times of change of all
files of its copies, with which they are compared as each run begins, and after each statement. Nothing is ever written
in place of anything: whoever has older copies open goes on with these. *When it would be false.* If somebody who may
write to the folder made a manifest: that is for the store's rights to say. *Tested by*
tests/engines_elsewhere/spark/test_prepared.py.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Mapping, Sequence

from dpsql.core.engine import cannot_open, guarded
from dpsql.core.policy.policy import Policy
from dpsql.core.policy.prepared import copied_from
from dpsql.diagnostics.errors import EngineError
from dpsql.engines.open import OpenOptions, Writer
from dpsql.engines.spark import DIALECT
from dpsql.engines.spark.engine import TAG, SparkEngine
from dpsql.engines.spark.files import escaped, looked_at, plain
from dpsql.engines.spark.folders import folder_of, last_of, line_of, look_of
from dpsql.engines.spark.opening import refuse_limits, wanted_of
from dpsql.engines.spark.reading import only_select
from dpsql.engines.spark.relations import in_session


class Copying(SparkEngine):
    """The data as it is, and what is written of it. begun: the folder of the copies that are being made."""

    begun = ""

    def begin(self, folder: str, progress: bool) -> bool:
        """Whether there is a folder now that can be written. progress: as of `open`."""
        self.begun, self._progress = folder, progress
        with contextlib.suppress(EngineError):
            self._write_line("", f"{folder}/begun")
            return True
        return False

    def copy(self, table: str, select: str, owner: str, together: bool) -> str:
        """See `Writer.copy`. All rows of an owner stand in one file, side by side."""
        folder = folder_of(self.begun, table)

        def write() -> str:
            self._session.addTag(TAG)
            rows = self._session.sql(only_select(select))
            column = DIALECT.identifier(owner)
            rows = rows if together else rows.repartition(column)
            rows.sortWithinPartitions(column).write.mode("error").parquet(folder)
            copy = self._session.read.parquet(folder)
            files = plain(copy.inputFiles())
            looks = looked_at(self._session, files)
            assert looks is not None
            copy.createOrReplaceTempView(_view_of(table))
            return look_of(files, looks)

        return self.in_snapshot(lambda: self._watched(write))

    def copied(self, table: str) -> str:
        """See `Writer.copied`."""
        return in_session(_view_of(table))

    def finish(self, manifest: str) -> None:
        """See `Writer.finish`. Of two at once, the one that ends last has the higher number."""
        number = self.last(self.begun.rpartition("/")[0])[0] + 1
        self._write_line(line_of(number, manifest), f"{self.begun}/manifest")

    def _write_line(self, line: str, folder: str) -> None:
        def write() -> None:
            rows = self._session.sql(f"SELECT {DIALECT.text(line)} AS value")
            rows.coalesce(1).write.mode("error").text(folder)

        self.in_snapshot(lambda: guarded(write, self.interrupt))

    def looks(self, tables: Sequence[str]) -> dict[str, str]:
        """Each of these tables → what its files look like now, and which other tables of the policy share them."""

        def look() -> dict[str, str]:
            known, pinned = self._known().relations, self._pinned
            assert pinned is not None
            files = {r.wanted.name: frozenset(pinned.files[r.view]) for r in known}
            shared = {name: sorted(o for o in files if o != name and files[o] & files[name]) for name in files}
            return {
                name: f"{look_of(sorted(files[name]), pinned.looks)}, shared with {shared[name]}"
                for name in tables
                if name in files
            }

        return self.in_snapshot(look)

    def last(self, base: str) -> tuple[int, str | None]:
        """The highest number of a manifest that is whole, and the manifest; 0: there is none."""

        def lines() -> list[str]:
            try:
                rows = self._session.read.text(f"{escaped(base)}/*/manifest").toArrow()
            except Exception as error:
                if str(getattr(error, "getCondition", lambda: "")()) == "PATH_NOT_FOUND":
                    return []
                raise
            return [str(value) for value in rows.columns[0].to_pylist()]

        return last_of(self.in_snapshot(lambda: guarded(lines, self.interrupt)))


def _view_of(table: str) -> str:
    return f"dpsql_copy_{hashlib.sha256(table.encode()).hexdigest()[:16]}"


class CopyFolders:
    """The folders of a policy's prepared tables; see `CopyStore`."""

    def __init__(self, policy: Policy) -> None:
        assert policy.server is not None and policy.prepared_at is not None
        self._policy, self._server = policy, policy.server
        self._base = f"{policy.prepared_at.rstrip('/')}/{policy.name}.prepared"
        self._opened: list[Copying] = []

    def close(self) -> None:
        """Let go of the cluster."""
        while self._opened:
            self._opened.pop().close()

    @property
    def _engine(self) -> Copying:
        if not self._opened:
            self._opened.append(Copying.open(self._server, wanted_of(self._policy)))
        return self._opened[0]

    @property
    def missing(self) -> str:
        """See `CopyStore.missing`."""
        return f"there are none in {self._base}"

    @property
    def version(self) -> str:
        """See `CopyStore.version`."""
        return f"spark {self._engine.version}"

    def manifest(self) -> str | None:
        """See `CopyStore.manifest`."""
        with contextlib.suppress(EngineError):
            return self._engine.last(self._base)[1]
        raise cannot_open(
            f"the prepared tables cannot be looked at: {self._base}", "may the folder be read and listed?"
        )

    def changed(self) -> str:
        """See `CopyStore.changed`. Each run compares the files with the manifest."""
        return ""

    def looks(self) -> Mapping[str, str]:
        """Each table that is to be prepared, or carried."""
        return self._engine.looks(copied_from(self._policy))

    def place(self, identity: str) -> str:
        """See `CopyStore.place`."""
        return f"{self._base}/{identity}"

    @contextlib.contextmanager
    def writing(self, identity: str, options: OpenOptions) -> Iterator[Writer]:
        """See `CopyStore.writing`. Two at once do not meet: the one that ends last is read."""
        refuse_limits(options)
        engine = self._engine
        if not engine.begin(self.place(identity), options.progress):
            raise cannot_open(
                f"the prepared tables cannot be written: {self._base}", "give the cluster the right to write there"
            )
        yield engine
