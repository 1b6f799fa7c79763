"""A run between its charge and its last draw: if it fails, or its process dies with it, that is in the ledger.

*Claim.* A run that was charged, and whose process then dies, is a failure at the next opening of the ledger on this
machine; one that still runs, that was stopped, or that has ended is none. *Why.* Before the charge its process makes a
file beside the ledger's head, named by the entry, and keeps it locked; the system lets go of the lock however the
process ends, and nothing else does. The file goes when the run is over. Who finds one that nobody holds looks whether
its entry was charged. *When it would be false.* If somebody removes the file, or restores the folder; where there is no
`flock` (Windows) or no head (a ledger that a caller made himself), a dead process is not seen, and where a power cut
takes the file. *Tested by* tests/core/ledger/test_underway.py.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from dpsql.core.ledger.failures import How, note
from dpsql.core.ledger.files.plain_files import NOFOLLOW
from dpsql.core.ledger.ledger import Ledger
from dpsql.core.ledger.refusals import unusable
from dpsql.diagnostics.errors import CannotOpen

if sys.platform != "win32":
    import fcntl

_MARK = ".runs-"


class Underway:
    """One run of an account. has_failed: set by whoever sees it fail."""

    def __init__(self, ledger: Ledger, analyst: str, head: Path | None) -> None:
        """head: the file beside which its mark is made; None: none is made."""
        self._ledger, self._analyst, self._head = ledger, analyst, head
        self._entry, self._mark = "", -1
        self.has_failed = False

    def begin(self, entry: str) -> None:
        """It is about to be charged by this entry. Raises CannotOpen (DP407): then it may not."""
        self._entry = entry
        if self._head is not None and sys.platform != "win32":
            path = _path(self._head, entry)
            try:
                while self._mark < 0:
                    self._mark = _marked(path)
            except OSError as error:
                why = f"no mark of a run can be made beside it ({error.strerror})"
                raise unusable(f"head {self._head}", why, "custodian: make its directory writable") from None

    def end(self) -> None:
        """Nothing more is drawn. A failure that cannot be noted keeps its mark: it counts at the next opening."""
        is_noted = True
        if self.has_failed and self._entry:
            try:
                note(self._ledger, self._entry, self._analyst, "failed")
            except CannotOpen:
                is_noted = False
        if self._mark >= 0:
            if is_noted and self._head is not None:
                forget(self._head, self._entry)
            os.close(self._mark)
            self._mark = -1


def forget(head: Path, entry: str) -> None:
    """The run of this entry is none that its process may die of: it has ended, or is ended now."""
    if entry.isalnum():
        _path(head, entry).unlink(missing_ok=True)


def count_crashes(ledger: Ledger, head: Path) -> None:
    """Note as failures what was charged here and whose process is gone. Raises CannotOpen."""
    if sys.platform == "win32":
        return
    crashed: How = "crashed"
    for path in sorted(head.parent.glob(f"{_escaped(head.name)}{_MARK}*")):
        try:
            found = os.open(path, os.O_RDWR | os.O_CLOEXEC | NOFOLLOW)
        except OSError:  # it ended meanwhile; or it is none of ours
            continue
        try:
            fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
            name = path.name.rpartition(_MARK)[2]
            for receipt in ledger.find([name]):
                note(ledger, name, receipt.entry.analyst, crashed)
            path.unlink(missing_ok=True)
        except BlockingIOError:  # it runs
            continue
        finally:
            os.close(found)


def _marked(path: Path) -> int:
    """The open, locked mark; -1 where somebody took it for one that nobody holds, before it was locked."""
    made = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | NOFOLLOW, 0o600)
    try:
        fcntl.flock(made, fcntl.LOCK_EX)
        if os.fstat(made).st_nlink:
            kept, made = made, -1
            return kept
        return -1
    finally:
        if made >= 0:
            os.close(made)


def _path(head: Path, entry: str) -> Path:
    return head.with_name(f"{head.name}{_MARK}{entry}")


def _escaped(name: str) -> str:
    return "".join(f"[{c}]" if c in "*?[" else c for c in name)
