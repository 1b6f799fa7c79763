"""The head: the ledger's last hash, kept at a second place, so that an older copy of the ledger is recognised.

Order: the ledger's commit is made durable first, the head follows. A process killed in between leaves a ledger *ahead*
of its head, which is healthy; a ledger *behind* its head has lost entries and is refused. The head only ever moves
forward, and one flush of the ledger and one write of the head serve every process that waits for them (group commit).
The head's own flush goes on while whoever wrote it reads the data; he waits for it before he shows anything (`finish`).
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from dpsql.core.ledger.chain.hash_chain import Point
from dpsql.core.ledger.files.durable_files import Meanwhile, flush, flush_directory, writable_or_missing
from dpsql.core.ledger.files.plain_files import NOFOLLOW, located, oddity
from dpsql.core.ledger.refusals import unusable

if sys.platform != "win32":
    import fcntl

PAUSE = 0.001
"""Seconds between two attempts at a lock, always the same. Measured with sixteen processes on two cores
(benchmarks/ledger.py): longer pauses leave the lock idle, and asking is cheap (a head is parsed if it has changed)."""


class Head:
    """One head file. Its directory is made if missing; files are readable by their owner only.

    Links of its folders are followed once. Where it, its lock or its draft is no plain file, everything raises
    CannotOpen (DP407): a link would be replaced, and the file that it leads to would go on remembering less.
    """

    def __init__(self, path: Path, timeout: float) -> None:
        self._name = f"head {path}"
        try:
            self.path = located(path)
        except ValueError:
            raise unusable(self._name, "not a file name", _HELP_HEAD) from None
        self._lock_path, self._draft = (self.path.with_name(self.path.name + end) for end in (".lock", ".new"))
        self._timeout = timeout
        self._seen: tuple[bytes, Point | None] = (b"", None)
        self._beginning = threading.Lock()
        self._flushing: Meanwhile | None = None

    def read(self) -> Point | None:
        """The remembered point; None if there is no file. CannotOpen (DP407) if it is there but is not a head."""
        self._check_plain(self.path)
        try:
            stored = self._stored()
            if stored != self._seen[0]:  # who waits for the head reads it often
                self._seen = (stored, _parse(stored))
            return self._seen[1]
        except FileNotFoundError:
            return None
        except OSError as error:
            raise unusable(self._name, f"it cannot be read ({error.strerror})") from None
        except (ValueError, KeyError, TypeError, RecursionError):
            raise unusable(
                self._name,
                "this is not a file that remembers a ledger's last entry",
                "custodian: check `ledger_head:` in the policy; restore the file, or remove it and accept the ledger "
                "as it stands:  dpsql budget POLICY --accept-head",
            ) from None

    def check_writable(self) -> None:
        """Raise CannotOpen (DP407) if an advance is sure to fail: nobody shall pay for an answer that cannot come."""
        directory = self.path.parent
        for path in (self.path, self._lock_path, self._draft):
            self._check_plain(path)
        if not os.path.isdir(directory):
            try:
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            except OSError as error:
                raise self._cannot_write(error) from None
        if not os.access(directory, os.W_OK | os.X_OK):
            raise unusable(self._name, "its directory is not writable", _HELP_HEAD)
        if not writable_or_missing(self.path):
            raise unusable(self._name, "it is not writable", _HELP_HEAD)

    def advance(self, at_least: int, latest: Callable[[], Point]) -> None:
        """Make the head remember at least entry `at_least`; returns as soon as any process has done so.

        `latest` is asked, once the head is locked, for the ledger's newest point and makes it durable first. A head
        that remembers a ledger without entries has nothing to lose and gives way to another one's. What was written is
        on the disk after `finish`.
        """

        def done() -> bool:
            known = self.read()
            return known is not None and 0 < known.sequence >= at_least

        if self._locked(lambda: not done() and self._write(latest()), unless=done):
            # Should a power cut come first, the head is older than the ledger, which is healthy; what the receipts
            # stand for is on the disk.
            with self._beginning:  # the flush that began last covers all that was written before it
                self._flushing = Meanwhile(self._flush)

    def finish(self) -> None:
        """Wait until what `advance` has written here is on the disk. Raises CannotOpen (DP407)."""
        if self._flushing is not None:
            self._flushing.finish()

    def put(self, point: Point) -> None:
        """Remember exactly `point`, whatever was remembered before."""
        self.check_writable()
        self._locked(lambda: self._write(point))

    def forget(self) -> None:
        """Remember nothing."""
        self._check_plain(self.path)
        self._locked(lambda: self.path.unlink(missing_ok=True))

    def _write(self, point: Point) -> bool:
        """Over the older of the two slots, so that a torn write spoils nothing: True, and not flushed yet. Or a new
        file, if that slot would not become the newest: False."""
        try:
            slots = _slots(self._stored()) if self.path.exists() else []
            known = [-1 if slot is None else slot.sequence for slot in slots]
            if known and 0 <= max(known) < point.sequence:
                descriptor = os.open(self.path, os.O_WRONLY | NOFOLLOW)
                with os.fdopen(descriptor, "wb", buffering=0) as file:
                    file.seek(known.index(min(known)) * _SLOT)
                    file.write(_slot(point))
                return True
            self._draft.unlink(missing_ok=True)  # of somebody who was killed
            descriptor = os.open(self._draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb", buffering=0) as file:
                file.write(_slot(point) + b" " * _SLOT)
                flush(descriptor)  # before the rename, or a power cut could leave an empty head
            os.replace(self._draft, self.path)
            flush_directory(self.path.parent)
        except OSError as error:
            raise self._cannot_write(error) from None
        return False

    def _flush(self) -> None:
        try:
            descriptor = os.open(self.path, os.O_RDWR | NOFOLLOW)
            try:
                flush(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise self._cannot_write(error) from None

    def _stored(self) -> bytes:
        descriptor = os.open(self.path, os.O_RDONLY | NOFOLLOW)
        try:
            return os.read(descriptor, _LONGEST)
        finally:
            os.close(descriptor)

    def _locked(self, action: Callable[[], object], unless: Callable[[], bool] = lambda: False) -> bool:
        """Whether an action, done while holding the head's lock, said yes; not done as soon as `unless` holds."""
        if sys.platform == "win32":
            # Without the lock two writers may leave the older of two points: behind the ledger, so still healthy.
            return bool(action())
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | NOFOLLOW, 0o600)
        except OSError as error:
            raise self._cannot_write(error) from None
        try:
            deadline = time.monotonic() + self._timeout
            while True:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if unless():
                        return False
                    if time.monotonic() > deadline:
                        raise unusable(
                            self._name, f"another process has kept it locked for {self._timeout:g} s"
                        ) from None
                    time.sleep(PAUSE)
            return bool(action())
        finally:
            os.close(descriptor)

    def _check_plain(self, path: Path) -> None:
        what = oddity(path)
        if what is not None:
            name = self._name if path == self.path else f"head {path}"
            raise unusable(
                name, what, "custodian: name the file itself, by one name only: `ledger_head:` in the policy"
            )

    def _cannot_write(self, error: OSError) -> Exception:
        return unusable(self._name, f"it cannot be written ({error.strerror})", _HELP_HEAD, nothing_ran=False)


# The file: two slots of one disk sector each, written in turn. Text, so that a custodian can read it.

_SLOT = 512
_LONGEST = 1 << 13
"""No head is longer; what is longer is cut, and is none."""


def _slot(point: Point) -> bytes:
    text = json.dumps({"sequence": point.sequence, "hash": point.hash, "check": _check(point)})
    return text.ljust(_SLOT - 1).encode("ascii") + b"\n"


def _check(point: Point) -> str:
    return hashlib.sha256(f"{point.sequence} {point.hash}".encode()).hexdigest()[:16]


def _slots(stored: bytes) -> list[Point | None]:
    """The point of each slot; None for one that is empty or torn."""
    found: list[Point | None] = []
    for at in (0, _SLOT):
        try:
            point, check = _point(stored[at : at + _SLOT])
            found.append(point if check == _check(point) else None)
        except (ValueError, KeyError, TypeError, RecursionError):
            found.append(None)
    return found


def _parse(stored: bytes) -> Point:
    """The newest point of a file. Heads of ledgers of format 1 are one object without slots."""
    known = [point for point in _slots(stored) if point is not None]
    if known:
        return max(known, key=lambda point: point.sequence)
    point, check = _point(stored)
    if check is not None:
        raise ValueError
    return point


def _point(text: bytes) -> tuple[Point, object]:
    stored = json.loads(text)
    sequence, digest = stored["sequence"], stored["hash"]
    if type(sequence) is not int or type(digest) is not str or sequence < 0:
        raise ValueError
    return Point(sequence, digest), stored.get("check")


_HELP_HEAD = "custodian: make the directory writable, or set `ledger_head:` in the policy to a file that can be written"
