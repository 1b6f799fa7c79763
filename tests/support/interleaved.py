"""Two who open one ledger at one moment: one is stopped after each call that it makes into C, and the other goes on."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from dpsql.core.ledger.chain import head as heads
from dpsql.core.ledger.sqlite import SqliteLedger

PACKAGE = str(Path(heads.__file__).parent)
WAITING = 0.01
"""Seconds after which somebody who has not come to an end waits for a lock of the one that is stopped. Should he only
be slow, both go on at once, which is an order too."""


class Interleaved:
    """Runs `first`, and `other` in the middle of it: after its call number 0, 1, 2 …, in a folder of its own each."""

    def __init__(self, folder: Path, first: Callable[[Path], None], other: Callable[[Path], None]) -> None:
        self.folder, self.first, self.other = folder, first, other
        self.failures: list[tuple[str, BaseException]] = []

    def run(self) -> int:
        """Returns how many orders there were."""
        number = 0
        while self._stopped_after(number):
            number += 1
        return number

    def _stopped_after(self, number: int) -> bool:
        place = self.folder / str(number)
        place.mkdir()
        left, where = number, ""
        thread = threading.Thread(target=self._kept, args=("the other", self.other, place))

        def at(frame: FrameType, event: str, called: object) -> None:
            nonlocal left, where
            if event not in ("c_return", "c_exception") or not frame.f_code.co_filename.startswith(PACKAGE) or where:
                return
            if left:
                left -= 1
                return
            where = f"{frame.f_code.co_filename}:{frame.f_lineno} {called!r}"
            thread.start()
            thread.join(WAITING)

        sys.setprofile(at)
        try:
            self._kept("the first", self.first, place)
        finally:
            sys.setprofile(None)
        if not where:
            return False
        thread.join(600)
        assert not thread.is_alive(), where
        return True

    def _kept(self, who: str, action: Callable[[Path], None], place: Path) -> None:
        try:
            action(place)
        except BaseException as error:
            self.failures.append((f"{who} in {place.name}", error))


def found(place: Path) -> SqliteLedger:
    return SqliteLedger.open(place / "state" / "l.sqlite", place / "head" / "h.json", "shop", "approx_dp")
