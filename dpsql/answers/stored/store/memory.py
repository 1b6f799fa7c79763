"""Stored answers that are forgotten when the process ends: beside a ledger in memory."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime

from dpsql.answers.stored.store.refusals import kept_waiting
from dpsql.answers.stored.store.store import Result
from dpsql.core.ledger.released import StoredAnswer

_PAUSE = 0.005
"""Seconds between two looks at whether somebody let go; Ctrl-C is heard as often."""


class MemoryAnswers:
    """The AnswerStore contract without a file; safe for threads of one process."""

    def __init__(self, patience: float = 600.0) -> None:
        """patience: seconds to wait for somebody who holds a name."""
        self._patience = patience
        self._answers: dict[str, list[StoredAnswer]] = {}
        self._marks: dict[str, dict[str, datetime]] = {}
        self._held: set[str] = set()
        self._lock = threading.Lock()

    def find(self, addresses: Collection[str]) -> Mapping[str, Sequence[StoredAnswer]]:
        """Address → every answer stored for it, oldest first."""
        with self._lock:
            return {a: tuple(self._answers[a]) for a in addresses if a in self._answers}

    def add(self, answers: Iterable[StoredAnswer]) -> None:
        """Keep them as long as this object lives."""
        with self._lock:
            for answer in answers:
                self._answers.setdefault(answer.address, []).append(answer)

    def mark(self, name: str) -> bool:
        """See `AnswerStore.mark`."""
        with self._lock:
            if name in self._marks:
                return False
            self._marks[name] = {a.id: a.made_at for stored in self._answers.values() for a in stored}
            return True

    def before(self, name: str, *, or_all: bool = False) -> Mapping[str, datetime]:
        """See `AnswerStore.before`."""
        with self._lock:
            every = {a.id: a.made_at for stored in self._answers.values() for a in stored} if or_all else {}
            return self._marks.get(name, every)

    def alone(self, names: Collection[str], action: Callable[[], Result]) -> Result:
        """See `AnswerStore.alone`: all names at once, so that nobody waits for somebody who waits for him."""
        wanted, deadline = set(names), time.monotonic() + self._patience
        taken: set[str] = set()
        try:
            while True:
                with self._lock:
                    if not wanted & self._held:
                        self._held |= wanted
                        taken = wanted
                        break
                if time.monotonic() > deadline:
                    raise kept_waiting("in memory", self._patience)
                time.sleep(_PAUSE)
            return action()
        finally:
            self._held.difference_update(taken)  # one step: a Ctrl-C while waiting for the lock would leave them held

    def close(self) -> None:
        """Nothing to let go of; what was stored stays known as long as the object lives."""
