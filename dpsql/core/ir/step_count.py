"""How much is done to plan one text, counted in steps instead of seconds: whatever somebody writes, planning it ends.

A step is a node that is looked at, a column that is handed on, a key that is computed: some microseconds. A text takes
the same steps on every machine. Steps are counted between `begin` and `end`, which each compilation calls.
Whoever takes them need not know. At other times nobody counts.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

from dpsql.diagnostics.diagnostic import Span
from dpsql.diagnostics.errors import too_large

MOST: Final = 2_000_000
"""Most steps for one text. The queries of TPC-H take between 500 and 20,000."""


@dataclass(slots=True)
class StepCount:
    """The steps taken so far, and the part of the text that the last of them were taken for."""

    taken: int = 0
    span: Span | None = None


_counting: ContextVar[StepCount | None] = ContextVar("steps", default=None)
_counted = _counting.get


def begin() -> None:
    """Count the steps from now on, from none. What an interrupt has left behind of another text is forgotten."""
    _counting.set(StepCount())


def end() -> None:
    """Count no more."""
    _counting.set(None)


def take(steps: int = 1, span: Span | None = None) -> None:
    """Count so many steps more. span: what they are taken for. Raises TooLarge DP101, from then on at each step."""
    count = _counted()
    if count is None:
        return
    count.taken = taken = count.taken + steps
    if span is not None:
        count.span = span
    if taken > MOST:
        raise too_large(
            f"the query is too large: planning it would take more than {MOST:,} steps", count.span,
            "select fewer columns, shorten lists, CASEs and conditions, use each WITH query fewer times",
        )  # fmt: skip
