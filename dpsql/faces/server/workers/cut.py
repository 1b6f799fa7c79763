"""What keeps a statement that costs nothing from computing without an end: a clock, and what its process may take."""

from __future__ import annotations

import os
import sys
import threading
import time
from functools import cache
from typing import Final, Self

from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.service.service import Service

MEMORY: Final = 2**30
"""Bytes that the process of a seat for what computes may take beyond those that it begins with."""
WAITED: Final = 4
"""How many times the seconds of processors that a block has it may take by the clock."""
_AGAIN: Final = 0.02
"""Seconds between two interrupts: an engine that is stopped between two steps forgets it."""


class Cut:
    """For a block: after so many seconds, 0 for never, whatever its service computes is interrupted, again and again.

    They are seconds of this process's processors, so that a busy machine cuts nothing that is short; or WAITED times as
    many of the clock, for what computes elsewhere. is_over: whether it was interrupted.
    """

    def __init__(self, service: Service, seconds: float = 0.0) -> None:
        self._service, self.seconds = service, seconds
        self._ended = threading.Event()
        self._watching: threading.Thread | None = None
        self.is_over = False

    def __enter__(self) -> Self:
        if self.seconds:
            self._watching = threading.Thread(target=self._watch, daemon=True)
            self._watching.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._ended.set()
        if self._watching is not None:  # nobody interrupts the next one
            self._watching.join()
            self._service.is_cut, self._watching = False, None

    def _watch(self) -> None:
        began, latest = time.process_time(), time.monotonic() + WAITED * self.seconds
        pause = self.seconds
        while not self._ended.wait(pause):
            left = self.seconds - (time.process_time() - began)
            if left > 0 and time.monotonic() < latest and not self.is_over:
                pause = max(left / 2, _AGAIN)
                continue
            self.is_over, self._service.is_cut, pause = True, True, _AGAIN
            self._service.interrupt()


@cache
def limit_process() -> None:
    """Once: let this process take no more memory than MEMORY beside what it has, and processors after all others."""
    if sys.platform == "win32":
        return
    os.nice(5)
    if sys.platform == "linux":
        import resource

        with open("/proc/self/status", encoding="ascii") as status:
            (now,) = (int(line.split()[1]) for line in status if line.startswith("VmData"))
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        most = now * 1024 + MEMORY
        resource.setrlimit(resource.RLIMIT_DATA, (most if hard < 0 else min(most, hard), hard))


TOO_MUCH: Final = Diagnostic(
    "DP901",
    "this question, which costs nothing, fails, or takes more time or memory than the server has for such",
    help=("ask for less at one time",),
    notes=("nothing was spent",),
)
