"""Giving up between two steps: an engine's interrupt reaches a running query, not the conversion of what it found.

A million rows are converted in up to a second, all of it in the thread that `guarded` waits for. Taken step by step,
the interpreter's lock is free in between, and who waits need not wait for the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeVar

T = TypeVar("T")
CHUNK: Final = 2048
"""Rows of one step: as many as DuckDB hands over at a time. More are slower, for they leave the processor's cache."""


class Stop:
    """A flag that one thread sets for another.

    Not an Event: its methods take a lock in Python, and a Ctrl-C between the taking and the `with` leaves it taken.
    """

    __slots__ = ("_on",)

    def __init__(self) -> None:
        self._on = False

    def set(self) -> None:
        """Whoever looks shall stop."""
        self._on = True

    def clear(self) -> None:
        """Whoever looks may go on."""
        self._on = False

    def is_set(self) -> bool:
        """Whether to stop."""
        return self._on


def until_stopped(stop: Stop, steps: Iterable[T]) -> Iterator[T]:
    """The same steps. Raises InterruptedError in place of the first one after `stop` was set."""
    for step in steps:
        if stop.is_set():
            raise InterruptedError("stopped")
        yield step


def columns_of(fetch: Callable[[int], list[tuple[Any, ...]]], width: int, stop: Stop) -> tuple[list[Any], ...]:
    """All rows of a result, column by column.

    fetch: so many rows at the most, from where the last call ended; an empty list at the end.
    width: the number of columns. Raises InterruptedError after `stop` was set, and whatever `fetch` raises.
    """
    columns: tuple[list[Any], ...] = tuple([] for _ in range(width))
    for rows in until_stopped(stop, iter(lambda: fetch(CHUNK), [])):
        for column, values in zip(columns, zip(*rows, strict=True), strict=True):
            column.extend(values)
    return columns
