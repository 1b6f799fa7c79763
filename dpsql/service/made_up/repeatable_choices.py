"""Choices that look like chance and are always the same: made-up rows are chosen by them, and no noise ever is."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Final, TypeVar

T = TypeVar("T")
_BYTES: Final = 4
_MOST: Final = 256**_BYTES


class Choosing:
    """One choice after the other, which follow from the seed alone."""

    def __init__(self, seed: str) -> None:
        self._seed, self._blocks, self._left = seed.encode(), 0, b""

    def share(self) -> float:
        """From 0, below 1."""
        if not self._left:
            self._left = sha256(self._seed + b" %d" % self._blocks).digest()
            self._blocks += 1
        found, self._left = self._left[:_BYTES], self._left[_BYTES:]
        return int.from_bytes(found, "big") / _MOST

    def between(self, least: int, most: int) -> int:
        """Both included."""
        return least + int(self.share() * (most - least + 1))

    def one_of(self, values: Sequence[T]) -> T:
        """Each as often."""
        return values[self.between(0, len(values) - 1)]

    def one_of_the_first(self, values: Sequence[T]) -> T:
        """The first ones more often."""
        return values[int(len(values) * self.share() ** 2)]
