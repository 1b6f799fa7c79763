"""When answers leave: at declared moments, so that a clock tells which of them it was and nothing else.

*Claim.* When an answer that reads private rows leaves, and when its worker is free for somebody else, are one of the
declared moments, counted from the beginning of its run: log₂ of their number, and one for "too slow", is all that a
clock tells of one run. *Why.* The beginning depends on texts, on stored numbers and on the moments of other runs; what
is ready waits for the next moment, whatever it is: an answer, a refusal, a failure or a worker's death. Until then a
worker stores nothing and lets nobody go on who asks the same (`Session.run`, leaving), so that no other connection sees
it sooner; what is not ready at the last moment is killed. *When it would be false.* If a worker were free, or an answer
stored, when it is ready: who asks next would see it. If stopping a run at any time had an effect on what is stored. If
a worker is killed from outside, what it held is free before the moment. *Tested by* tests/faces/server/test_pace.py,
tests/faces/server/test_gateway.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol


class Clock(Protocol):
    """Seconds that only grow."""

    def now(self) -> float:
        """The present."""
        ...

    async def sleep_until(self, moment: float) -> None:
        """Returns when that is past, or at once if it is."""
        ...

    def at(self, moment: float, do: Callable[[], object]) -> Cancellable:
        """Do something at that moment, unless it is cancelled before."""
        ...


class Cancellable(Protocol):
    """What may not be done after all."""

    def cancel(self) -> object:
        """Do not do it; harmless once it is done."""
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

    def at(self, moment: float, do: Callable[[], object]) -> Cancellable:
        """See Clock."""
        return asyncio.get_running_loop().call_at(moment, do)


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
