"""Who is there: the connections and sessions that a custodian sees, and may end. Every door has a list of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Visitor:
    """Somebody who is logged in. key: names him at his door. running: the statement that runs, "" for none. database:
    which he asks."""

    key: str
    door: str
    name: str
    address: str
    running: str = ""
    database: str = ""


class Visited(Protocol):
    """A door."""

    def visitors(self) -> Sequence[Visitor]:
        """All of them now."""
        ...

    async def stop_of(self, key: str) -> bool:
        """Stop what runs there, as the visitor himself could: what was charged stays charged. False: nobody there."""
        ...

    async def end_of(self, key: str) -> bool:
        """Stop what runs, and let him go. He may log in again. False: nobody is there."""
        ...
