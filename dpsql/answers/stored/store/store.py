"""The contract of a store of released answers: it holds public numbers only, never exact ones."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Protocol, TypeVar

from dpsql.core.ledger.released import StoredAnswer

Result = TypeVar("Result")


class AnswerStore(Protocol):
    """Append-only. Implementations: sqlite (for many processes), postgres (for many machines), memory."""

    def find(self, addresses: Collection[str]) -> Mapping[str, Sequence[StoredAnswer]]:
        """Address → every answer stored for it, oldest first; addresses without any are left out.

        Raises CannotOpen (DP407).
        """
        ...

    def add(self, answers: Iterable[StoredAnswer]) -> None:
        """Store all of them or none; what it returned from is found by every later `find`, whoever is killed.

        A power cut may take what was stored last. Raises CannotOpen (DP407).
        """
        ...

    def mark(self, name: str) -> bool:
        """Store a line of this name after all that is there; False: it is there. No `find` gives it.

        Raises CannotOpen (DP407).
        """
        ...

    def before(self, name: str, *, or_all: bool = False) -> Mapping[str, datetime]:
        """Id → when it was made, of every answer that was stored before the line of this name; without it none, or all.

        Raises CannotOpen (DP407).
        """
        ...

    def alone(self, names: Collection[str], action: Callable[[], Result]) -> Result:
        """Do something while holding all these names, and return what it returns.

        Whoever asks for one of them, in any thread or process, waits until they are let go.
        Let go at the latest when the process ends, however it ends. Raises CannotOpen (DP407) if one is not free after
        the store's patience. Interrupts end the waiting. Not reentrant.
        """
        ...

    def close(self) -> None:
        """Let go of what is held open, if anything; whoever asks again opens it again. Closing twice is harmless."""
        ...
