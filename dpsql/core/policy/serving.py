"""What a policy says of the server that answers under it: when answers leave, and how much one may take of it.

Nothing here decides what is measured or what that costs, so it is no part of the policy's hash: another moment or
another limit makes no other ledger and no other stored answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

DEFAULT_MOMENTS: Final = (Fraction(5),)
DEFAULT_CONNECTIONS: Final = 100
DEFAULT_CONNECTIONS_PER_USER: Final = 10
DEFAULT_QUEUE: Final = 20
DEFAULT_ROWS: Final = 100_000


@dataclass(frozen=True, slots=True)
class Serving:
    """How `dpsql serve` answers.

    answers_at: seconds after its beginning at which an answer that reads private rows may leave, ascending; whatever
        has not ended at the last of them is stopped.
    workers: processes that run statements, each one at a time. threads, memory: what the engine of each may take; None:
        the engine's own choice.
    connections, connections_per_user: at most open at one time. queue: statements of one account that wait. rows: of
        one answer.
    """

    answers_at: tuple[Fraction, ...] = DEFAULT_MOMENTS
    workers: int = 1
    threads: int | None = None
    memory: str | None = None
    connections: int = DEFAULT_CONNECTIONS
    connections_per_user: int = DEFAULT_CONNECTIONS_PER_USER
    queue: int = DEFAULT_QUEUE
    rows: int = DEFAULT_ROWS
