"""When answers leave: at declared moments, so that a clock tells which of them it was and nothing else.

A seat is a worker that is taken for a round: by what an account has waiting when its turn comes (`turns.py`). All of
it is charged, and then one statement draws behind the other.

*Claim.* When an answer that reads private rows leaves, when anything is charged, and when a seat is free for somebody
else, are declared moments, counted from the beginning of a round; of what is not ready by the moment at which the one
before it left, counted from there. So a clock tells of one run which of the moments it was, or that it was too slow,
or, of what drew behind another, that it left with that one. *Why.* What is in a round is said at its beginning, which
depends on texts, on stored numbers and on the moments of other rounds; what comes later waits for another one. It is
charged before any of it reads a private row, and nothing after that. What is ready waits for the next moment, whatever
it is: an answer, a refusal, a failure or a worker's death; until then a worker stores nothing and lets nobody go on
who asks the same (`pipeline.py`, leaving), so that no other connection sees it sooner. The next one draws when the one
before it is ready, which nobody sees. What is not ready at its last moment is stopped. An account is in a round alone:
others learn when the seat is free. *When it would be false.* If a worker were free, or an answer stored, or the next
of a round charged, when one is ready: who asks next, or reads the ledger, would see it. If somebody could join a round
that has begun: by when he comes he would choose the time that it tells of. If stopping a run at any time had an effect
on what is stored. If a worker is killed from outside, what it held is free before the moment. *Tested by*
tests/faces/server/test_pace.py, tests/faces/server/test_rounds.py, tests/faces/server/test_gateway.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Protocol

_GATHERED: Final = 0.5
"""Seconds: a page's charts are asked for one after the other, and each is planned first."""


_MARGIN: Final = 0.25


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
    def first(self) -> float:
        """When what is in a round leaves, if all of it is ready."""
        return self.moments[0]

    @property
    def gathers(self) -> float:
        """How long the first statement of a round waits for others of its account."""
        return min(_GATHERED, self.first / 10)

    @property
    def margin(self) -> float:
        """How long before the last moment a run is stopped that has others behind it, for which its worker is kept."""
        return min(_MARGIN, self.last / 10)

    @property
    def last(self) -> float:
        """After it, nothing is waited for."""
        return self.moments[-1]

    def leaves(self, ready: float) -> float:
        """The first moment that is not before `ready`; the last one, if none is."""
        return next((moment for moment in self.moments if ready <= moment), self.last)
