"""Where a cluster keeps a policy's prepared tables: Parquet in a folder of its own for each time they are prepared.

    <prepared_at>/<policy>.prepared/<identity>/<table>/…     the copies
    <prepared_at>/<policy>.prepared/<identity>/manifest/…    one line, written last: number, hash and the manifest

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
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from dpsql.core.engine import cannot_open, guarded
from dpsql.core.policy.policy import Policy
from dpsql.core.policy.prepared import prepared_tables
from dpsql.diagnostics.errors import EngineError
from dpsql.engines.open import Options, Writer
from dpsql.engines.progress import watched
from dpsql.engines.spark import DIALECT
from dpsql.engines.spark.engine import TAG, SparkEngine
from dpsql.engines.spark.files import escaped, folder_of, look_of, looked_at, plain
from dpsql.engines.spark.opening import refuse_limits, wanted_of
from dpsql.engines.spark.reading import only_select
from dpsql.engines.spark.relations import in_session

_LINE: Final = re.compile(r"(\d+) ([0-9a-f]{64}) (.*)", re.DOTALL)


class Copying(SparkEngine):
    """The data as it is, and what is written of it. begun: the folder of the copies that are being made."""

    begun = ""
    shows_progress = False

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

        with watched(lambda: -1.0) if self.shows_progress else contextlib.nullcontext() as look:
            return self.in_snapshot(lambda: guarded(write, self.interrupt, look, self._stop))

    def copied(self, table: str) -> str:
        """See `Writer.copied`."""
        return in_session(_view_of(table))

    def can_write(self) -> bool:
        """Whether there is a folder now that can be written."""
        with contextlib.suppress(EngineError):
            self._write_line("", f"{self.begun}/begun")
            return True
        return False

    def finish(self, manifest: str) -> None:
        """See `Writer.finish`. Of two at once, the one that ends last has the higher number."""
        number = self.last(self.begun.rpartition("/")[0])[0] + 1
        self._write_line(f"{number} {_sum(manifest)} {manifest}", f"{self.begun}/manifest")

    def _write_line(self, line: str, folder: str) -> None:
        def write() -> None:
            rows = self._session.sql(f"SELECT {DIALECT.text(line)} AS value")
            rows.coalesce(1).write.mode("error").text(folder)

        self.in_snapshot(lambda: guarded(write, self.interrupt))

    def looks(self, tables: Sequence[str]) -> dict[str, str]:
        """Each of these tables → what its files look like now."""

        def look() -> dict[str, str]:
            schema, pinned = self._known(), self._pinned
            assert pinned is not None
            found = {name: schema.find(name) for name in tables}
            return {name: "" if r is None else look_of(pinned.files[r.view], pinned.looks) for name, r in found.items()}

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

        found = [m for m in map(_LINE.fullmatch, self.in_snapshot(lambda: guarded(lines, self.interrupt))) if m]
        return max(((int(m[1]), m[3]) for m in found if _sum(m[3]) == m[2]), default=(0, None))


def _sum(manifest: str) -> str:
    return hashlib.sha256(manifest.encode()).hexdigest()


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

    def looks(self) -> Mapping[str, str]:
        """Each table that is to be prepared."""
        return self._engine.looks([t.name for t in prepared_tables(self._policy)])

    def place(self, identity: str) -> str:
        """See `CopyStore.place`."""
        return f"{self._base}/{identity}"

    @contextlib.contextmanager
    def writing(self, identity: str, options: Options) -> Iterator[Writer]:
        """See `CopyStore.writing`. Two at once do not meet: the one that ends last is read."""
        refuse_limits(options)
        engine = self._engine
        engine.begun, engine.shows_progress = self.place(identity), options.progress
        if not engine.can_write():
            raise cannot_open(
                f"the prepared tables cannot be written: {self._base}", "give the cluster the right to write there"
            )
        yield engine
