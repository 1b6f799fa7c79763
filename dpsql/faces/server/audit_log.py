"""The audit log of a server: who asked what from where, and what it cost. One JSON object a line, for the custodian.

*Claim.* No line depends on private data but through what was released and paid for. *Why.* A line is made of the
event's own fields, which are texts of the analyst, codes and prices, and of the time at which what it tells of had
left: for an answer that is one of the declared moments (`pace.py`). *When it would be false.* If a line were written
when a run begins or is ready, or told how many rows there were. *Tested by* tests/faces/server/test_audit.py.
"""

from __future__ import annotations

import datetime as dt
import errno
import json
import logging
import os
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Final

from dpsql.core.ledger.files.plain_files import NOFOLLOW
from dpsql.faces.server.statements import AuditEvent

FIELDS = ("at", *(field.name for field in fields(AuditEvent)))
"""Names of what a line may hold, in order; what is empty is left out."""

_STANDARD_OUTPUT: Final = 1
_ROOM: Final = 2**20
"""Bytes that have to be free before anything is charged: several lines at one time, each of a long statement."""
_log = logging.getLogger("dpsql.server")


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


class AuditLog:
    """Implements `Recording`. The file is opened for each line, so that it may be moved away at any time."""

    def __init__(self, path: Path | None, now: Callable[[], dt.datetime] = _now) -> None:
        """path: made if it is not there, readable by its owner alone; None: the standard output."""
        self._path, self._now = path, now
        self._failing, self._is_torn = False, self._ends_within_a_line()

    def _ends_within_a_line(self) -> bool:
        """Whether a server before this one was ended, or its disk was full, in the middle of a line."""
        if self._path is None or not self._path.is_file():  # to open a pipe would wait for who reads it
            return False
        try:
            with self._path.open("rb") as file:
                return file.seek(0, os.SEEK_END) > 0 and file.seek(-1, os.SEEK_END) >= 0 and file.read(1) != b"\n"
        except OSError:
            return False

    def require(self) -> None:
        """See Recording. Once a line could not be written, one has to be before anything else is charged."""
        if self._failing:
            self.record(AuditEvent("log", "", ""))
        else:
            self._write(b"")

    def record(self, event: AuditEvent) -> None:
        """Append one line. Raises OSError: then what it tells of must not be shown."""
        own = {field.name: getattr(event, field.name) for field in fields(event)}
        line = {"at": self._now().isoformat(timespec="seconds"), **own}
        text = json.dumps({key: value for key, value in line.items() if value != ""}, ensure_ascii=True)
        self._write((text + "\n").encode("ascii"))

    def _write(self, data: bytes) -> None:
        try:
            if self._path is None:
                self._append(_STANDARD_OUTPUT, data)
                return
            descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | NOFOLLOW, 0o600)
            try:
                _require_room(descriptor)
                self._append(descriptor, data)
            finally:
                os.close(descriptor)
        except OSError as error:
            if not self._failing:
                _log.error("the audit log %s cannot be written: %s", self._path or "on standard output", reason(error))
            self._failing = True
            raise
        self._failing = False

    def _append(self, descriptor: int, data: bytes) -> None:
        """Write a line; what there was of one that was not written as a whole stays a line of its own."""
        if data and self._is_torn:
            data = b"\n" + data
        written = os.write(descriptor, data) if data else 0
        if written:
            self._is_torn = written < len(data)
        if written < len(data):
            raise OSError("the line was not written as a whole")


def _require_room(descriptor: int) -> None:
    """Raises OSError where the disk is so full that the line of what is charged now might not be written."""
    if hasattr(os, "fstatvfs"):
        disk = os.fstatvfs(descriptor)
        if disk.f_blocks and disk.f_bavail * disk.f_frsize < _ROOM:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def reason(error: OSError) -> str:
    """Why the log cannot be written, in words."""
    if error.errno == errno.ELOOP:
        return "it is a link; for the standard output, --audit-log -"
    return (error.strerror or str(error)).lower()


class NoLog:
    """Implements `Recording`, and keeps nothing."""

    def record(self, event: AuditEvent) -> None:
        """Nothing."""

    def require(self) -> None:
        """Nothing."""
