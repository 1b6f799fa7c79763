"""When answers leave: at declared moments, so that a clock tells which of them it was and nothing else.

*Claim.* When an answer that reads private rows leaves, and when its worker is free for somebody else, are one of the
declared moments, counted from the beginning of its run: log₂ of their number, and one for "too slow", is all that a
clock tells of one run. *Why.* The beginning depends on texts, on stored numbers and on the moments of other runs; what
is ready waits for the next moment, whatever it is: an answer, a refusal, a failure or a worker's death; what is not
ready at the last is stopped, and its worker is taken for a fixed time more. *When it would be false.* If a worker were
free when it is ready: who waits next would see it. If a user's own time-out were a moment. *Tested by*
tests/server/test_pace.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Protocol

GRACE: Final = 1.0
"""Seconds after the last moment until a worker that was told to stop is killed, and after which it serves again."""


class Clock(Protocol):
    """Seconds that only grow."""

    def now(self) -> float:
        """The present."""
        ...

    async def sleep_until(self, moment: float) -> None:
        """Returns when that is past, or at once if it is."""
        ...


class LoopClock:
    """The clock of asyncio's event loop."""

    def now(self) -> float:
        """See Clock."""
        return asyncio.get_running_loop().time()

    async def sleep_until(self, moment: float) -> None:
        """See Clock."""
        while (rest := moment - self.now()) > 0:
            await asyncio.sleep(rest)


@dataclass(frozen=True, slots=True)
class Pace:
    """The declared moments, in seconds after the beginning of a run, ascending."""

    moments: tuple[float, ...]

    @classmethod
    def of(cls, moments: Sequence[Fraction]) -> Pace:
        """Of the policy's `answers_at`."""
        return cls(tuple(map(float, moments)))

    @property
    def last(self) -> float:
        """After it, nothing is waited for."""
        return self.moments[-1]

    def leaves(self, ready: float) -> float:
        """The first moment that is not before `ready`; the last one, if none is."""
        return next((moment for moment in self.moments if ready <= moment), self.last)
