"""The head: the ledger's last hash, kept at a second place, so that an older copy of the ledger is recognised.

Order: the ledger commits first, the head follows. A process killed in between leaves a ledger *ahead* of its head,
which is healthy; a ledger *behind* its head has lost entries and is refused. The head only ever moves forward, and one
write serves every process that waits for it.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from dpsql.budget.chain import Point
from dpsql.budget.refusals import unusable

if sys.platform != "win32":
    import fcntl

PAUSE = 0.003
"""Seconds between two attempts at a lock. Measured with eight processes on two cores (benchmarks/ledger.py): shorter
pauses spend the processor on asking, longer ones leave the lock idle; even ones keep the slowest wait short."""


class Head:
    """One head file. Its directory is made if missing; files are readable by their owner only."""

    def __init__(self, path: Path, timeout: float) -> None:
        self.path = path
        self._name = f"head {path}"
        self._timeout = timeout

    def read(self) -> Point | None:
        """The remembered point; None if there is no file. CannotOpen (DP407) if it is there but is not a head."""
        try:
            stored = json.loads(self.path.read_bytes())
            sequence, digest = stored["sequence"], stored["hash"]
            if type(sequence) is not int or type(digest) is not str or sequence < 0:
                raise ValueError
        except FileNotFoundError:
            return None
        except OSError as error:
            raise unusable(self._name, f"it cannot be read ({error.strerror})") from None
        except (ValueError, KeyError, TypeError, RecursionError):
            raise unusable(
                self._name,
                "this is not a file that remembers a ledger's last entry",
                "custodian: check `ledger_head:` in the policy; restore the file, or remove it and accept the ledger "
                "as it stands (dpsql.budget.sqlite.accept_head)",
            ) from None
        return Point(sequence, digest)

    def check_writable(self) -> None:
        """Raise CannotOpen (DP407) if an advance is sure to fail: nobody shall pay for an answer that cannot come."""
        directory = self.path.parent
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise self._cannot_write(error) from None
        if not os.access(directory, os.W_OK | os.X_OK) or os.path.isdir(self.path):
            raise unusable(self._name, "its directory is not writable", _HELP_HEAD)

    def advance(self, at_least: int, latest: Callable[[], Point]) -> None:
        """Make the head remember at least entry `at_least`; returns at once if another process already did.

        `latest` is asked, once the head is locked, for the ledger's newest committed point. A head that remembers a
        ledger without entries has nothing to lose and gives way to another one's.
        """
        with self._locked():
            known = self.read()
            if known is None or known.sequence < at_least or known.sequence == 0:
                self._write(latest())

    def put(self, point: Point) -> None:
        """Remember exactly `point`, whatever was remembered before."""
        self.check_writable()
        with self._locked():
            self._write(point)

    def forget(self) -> None:
        """Remember nothing."""
        with self._locked():
            self.path.unlink(missing_ok=True)

    def _write(self, point: Point) -> None:
        draft = self.path.with_name(self.path.name + ".new")
        text = json.dumps({"sequence": point.sequence, "hash": point.hash}) + "\n"
        try:
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "w", encoding="ascii") as file:
                file.write(text)
                file.flush()
                # Before the rename, or a power cut could leave an empty head. The rename itself may be lost: an older
                # head is behind the ledger, which is healthy.
                os.fsync(file.fileno())
            os.replace(draft, self.path)
        except OSError as error:
            raise self._cannot_write(error) from None

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        if sys.platform == "win32":
            # Without the lock two writers may leave the older of two points: behind the ledger, so still healthy.
            yield
            return
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(
                self.path.with_name(self.path.name + ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
            )
        except OSError as error:
            raise self._cannot_write(error) from None
        try:
            deadline = time.monotonic() + self._timeout
            while True:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        raise unusable(
                            self._name, f"another process has kept it locked for {self._timeout:g} s"
                        ) from None
                    time.sleep(PAUSE)
            yield
        finally:
            os.close(descriptor)

    def _cannot_write(self, error: OSError) -> Exception:
        return unusable(self._name, f"it cannot be written ({error.strerror})", _HELP_HEAD, nothing_ran=False)


_HELP_HEAD = "custodian: make the directory writable, or set `ledger_head:` in the policy to a file that can be written"
