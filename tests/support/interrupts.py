"""Ctrl-C at each moment of an action, and somebody who keeps the traceback, as notebooks do."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from types import FrameType

IMPORTING = "<frozen importlib._bootstrap>"


def stopped_at_each(action: Callable[[], object], file: str) -> Iterator[int]:
    """Runs an action again and again, stopped one moment later each time, until it comes to its end: that is the last.

    Moments are where Python hears signals: where functions begin, and after calls of C's. Those of `file`, the test's
    own, do not count, nor do those of imports: Python takes the lock of all imports before its `try`, and who is
    stopped there leaves every other thread of the process waiting. What was raised is kept until the end.
    """
    kept: list[KeyboardInterrupt] = []
    for at in range(1, 1000):
        left = at

        def press(frame: FrameType, event: str, _: object) -> None:
            nonlocal left
            if event in ("call", "c_return") and frame.f_code.co_filename not in (file, __file__, IMPORTING):
                left -= 1
                if left == 0:
                    raise KeyboardInterrupt

        gc.disable()  # what others left to be collected is not stopped in its place
        sys.setprofile(press)
        try:
            action()
        except KeyboardInterrupt as stopped:
            kept.append(stopped)
        finally:
            sys.setprofile(None)
            gc.enable()
        yield at
        if left > 0:
            assert kept, "nothing was stopped"
            return
    raise AssertionError("it never came to its end")
