"""Whatever comes before a login leaves nothing behind: one front, inputs without end, and what it has afterwards."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from dpsql.faces.server.audit_log import NoLog
from dpsql.faces.server.front.client_link import ClientLink
from dpsql.faces.server.front.listen import Front
from dpsql.faces.server.front.login import Door
from dpsql.faces.server.front.route import Route
from tests.deep.fuzz import wire
from tests.support.answering import Answers, NoCatalogue

SEED = 20261127
_KEPT = 64 * 1024
"""Bytes by which a front may grow over a few thousand inputs: what Python itself keeps of lists and sets."""


async def _at_once(seconds: float) -> None:
    """A wait that nobody spends."""


class Flood:
    """One front whose clients send changed beginnings of conversations, one after the other, each until it is over."""

    def __init__(self) -> None:
        door = Door(wire.USERS, NoLog(), seconds=3600, sleep=_at_once)
        self.front = Front(door, Route(Answers(), NoCatalogue()))
        self.rng = Random(SEED)
        self.begun = [data for data in wire.TARGET.corpus() if data[:1] == wire.OPENING]
        self.ends: Counter[str] = Counter()

    async def go(self, count: int) -> None:
        """So many clients."""
        for _ in range(count):
            data = wire.TARGET.mutate(self.rng.choice(self.begun), self.rng, self.begun)[1:20_000]
            transport = wire.Memory(data)
            transport.link = ClientLink(self.front._started)
            transport.link.connection_made(transport)
            while tasks := list(self.front._tasks):
                await asyncio.gather(*tasks, return_exceptions=True)
                await asyncio.sleep(0)
            states = wire._states(bytes(transport.written))
            assert "XX000" not in states, data
            assert len(transport.written) < 500 + len(data), data
            self.ends[states[-1] if states else "no error"] += 1
        assert not self.front._talking and not self.front._of_user


def grown(count: int) -> int:
    """Traced bytes that a front has more after so many inputs, and as many before them that are not counted."""

    async def measured() -> int:
        flood = Flood()
        await flood.go(count)
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        await flood.go(count)
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before

    tracemalloc.start()
    try:
        return asyncio.run(measured())
    finally:
        tracemalloc.stop()


def test_thousands_of_inputs_leave_no_memory_behind() -> None:
    assert grown(2_000) < _KEPT


BROKEN: dict[str, Callable[[pytest.MonkeyPatch], Any]] = {
    "a connection that is kept": lambda m: m.setattr(
        Front, "_see", _kept(Front._see)
    ),
    "the timer of a connection that has ended": lambda m: m.setattr(ClientLink, "connection_lost", _without_timer),
}  # fmt: skip


def _kept(see: Any) -> Any:
    kept: list[ClientLink] = []

    async def seen(self: Front, link: ClientLink, through: Any) -> None:
        kept.append(link)
        await see(self, link, through)

    return seen


def _without_timer(self: ClientLink, error: Exception | None) -> None:
    self.gone.set()
    self._may_write.set()
    self._wake()


@pytest.mark.parametrize("name", BROKEN)
def test_a_front_that_keeps_something_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    BROKEN[name](monkeypatch)
    assert grown(500) > _KEPT


@pytest.mark.exhaustive
def test_a_million_inputs_leave_no_memory_behind(capsys: pytest.CaptureFixture[str]) -> None:
    """Resident memory, of which allocators keep some: after the first tenth it grows by a few pages."""

    async def flooded() -> list[int]:
        flood = Flood()
        found = []
        for step in range(1, 11):
            await flood.go(100_000)
            found.append(_resident())
            with capsys.disabled():
                print(f"resident {found[-1]:,} KiB after {step * 100_000:,} inputs", flush=True)
        print(f"{flood.ends}")
        return found

    found = asyncio.run(flooded())
    assert found[-1] - found[0] < 4_096


def _resident() -> int:
    """KiB of this process."""
    gc.collect()
    status = Path("/proc/self/status")
    if not status.exists():
        pytest.skip("what a process has is read from /proc")
    return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmRSS"))
