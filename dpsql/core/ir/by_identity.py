"""What is known of these very objects: expressions and nodes of syntax, of which two that are equal may stand at two
places. (Nodes of a plan are keys of a dict as they are: `value_classes.Placed`.)"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class ByIdentity(Generic[K, V]):
    """Object → value, where only the very same object is the same key.

    The keys are held, so that the number of one cannot be given to another object as long as this lives.

    >>> known = ByIdentity[list[int], str]()
    >>> one, equal = [1], [1]
    >>> known[one] = "the first"
    >>> known.get(one), known.get(equal)
    ('the first', None)
    """

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: dict[int, tuple[K, V]] = {}

    def __getitem__(self, key: K) -> V:
        return self._held[id(key)][1]

    def __setitem__(self, key: K, value: V) -> None:
        self._held[id(key)] = key, value

    def __contains__(self, key: K) -> bool:
        return id(key) in self._held

    def __len__(self) -> int:
        return len(self._held)

    def get(self, key: K) -> V | None:
        """The value; None if this object is not known."""
        held = self._held.get(id(key))
        return None if held is None else held[1]

    def keys(self) -> Iterator[K]:
        """The objects, in the order in which they were first given a value."""
        return (key for key, _ in self._held.values())
