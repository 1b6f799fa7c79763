"""The audit log of a server: who asked what from where, and what it cost. One JSON object a line, for the custodian.

*Claim.* No line depends on private data but through what was released and paid for. *Why.* A line is made of the
event's own fields, which are texts of the analyst, codes and prices, and of the time at which what it tells of had
left: for an answer that is one of the declared moments (`pace.py`). *When it would be false.* If a line were written
when a run begins or is ready, or told how many rows there were. *Tested by* tests/server/test_audit.py.
"""

from __future__ import annotations

import datetime as dt
import json
import os
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

from dpsql.core.ledger.plain_files import NOFOLLOW
from dpsql.server.statements import Event

FIELDS = ("at", *(field.name for field in fields(Event)))
"""Names of what a line may hold, in order; what is empty is left out."""


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


class AuditLog:
    """Implements `Recording`. The file is opened for each line, so that it may be moved away at any time."""

    def __init__(self, path: Path, now: Callable[[], dt.datetime] = _now) -> None:
        """path: made if it is not there, readable by its owner alone."""
        self._path, self._now = path, now

    def record(self, event: Event) -> None:
        """Append one line. Raises OSError: then what it tells of must not be shown."""
        own = {field.name: getattr(event, field.name) for field in fields(event)}
        line = {"at": self._now().isoformat(timespec="seconds"), **own}
        text = json.dumps({key: value for key, value in line.items() if value != ""}, ensure_ascii=True)
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | NOFOLLOW, 0o600)
        try:
            data = (text + "\n").encode("ascii")
            if os.write(descriptor, data) != len(data):
                raise OSError("the line was not written as a whole")
        finally:
            os.close(descriptor)


class NoLog:
    """Implements `Recording`, and keeps nothing."""

    def record(self, event: Event) -> None:
        """Nothing."""
