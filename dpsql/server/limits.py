"""What is refused because there is too much of it, in words that depend on declared numbers alone."""

from __future__ import annotations

from collections import Counter
from typing import Final

from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.server.statements import FAILED, STOPPED, TOO_MANY, Refused

_LATER: Final = "try again later;  custodian: see  serve:  in the policy"
_NOTHING_RAN: Final = "nothing was run and nothing was spent"


def queue_full(most: int) -> Refused:
    """Too many statements wait for a worker."""
    message = f"{most} statements wait for a worker already, and no more may"
    return Refused([Diagnostic("DP414", message, help=(_LATER,), notes=(_NOTHING_RAN,))], TOO_MANY)


def failed() -> Refused:
    """One error for an engine that fails, a worker that dies, and a statement that takes too long."""
    return Refused(
        [
            Diagnostic(
                "DP901",
                "the statement failed, or took longer than the server allows; what was charged stays charged",
                help=("ask for less at one time;  custodian: see  serve: {answers_at: […]}  in the policy",),
                notes=("why is not shown: it could tell of single rows",),
            )
        ],
        FAILED,
    )


def stopped() -> Refused:
    """The analyst has ended his statement."""
    diagnostic = Diagnostic("DP901", "the statement was stopped; what was charged stays charged")
    return Refused([diagnostic], STOPPED)


class Connections:
    """How many are open. Each `enter` is followed by one `leave`."""

    def __init__(self, most: int, most_per_user: int) -> None:
        self._most, self._per_user = most, most_per_user
        self._open: Counter[str] = Counter()

    def enter(self, name: str) -> None:
        """One more of this login. Raises Refused DP414."""
        if self._open.total() >= self._most:
            raise self._full(f"{self._most} connections are open already, and no more may be")
        if self._open[name] >= self._per_user:
            raise self._full(f"{self._per_user} connections of this login are open already, and no more may be")
        self._open[name] += 1

    def leave(self, name: str) -> None:
        """One less."""
        self._open[name] -= 1
        if not self._open[name]:
            del self._open[name]

    @staticmethod
    def _full(message: str) -> Refused:
        help = ("close connections that are not needed", _LATER)
        return Refused([Diagnostic("DP414", message, help=help, notes=(_NOTHING_RAN,))], TOO_MANY)
