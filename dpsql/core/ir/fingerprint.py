"""What makes two plans the same plan: all that decides statements, noise, price and answer; the spelling does not."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any

from dpsql.core.ir.expressions import Column
from dpsql.core.ir.types import SqlType


def fingerprint(*values: object, numbered: bool = False) -> str:
    """A SHA-256 of plan values that equal values share: fields that equality ignores (spans, labels) take no part.

    numbered: columns are told apart by the order in which they occur, so that two copies of a subquery are equal.
    """
    parts = _pieces(values, {} if numbered else None)
    return hashlib.sha256("".join(parts).encode()).hexdigest()


class Fingerprint:
    """The fingerprint of values, made when it is first asked for: a query that is not run needs none."""

    __slots__ = ("_made", "_values")

    def __init__(self, *values: object) -> None:
        self._values, self._made = values, ""

    def __str__(self) -> str:
        self._made = self._made or fingerprint(*self._values)
        return self._made


class Numbered:
    """The beginning of several fingerprints in which columns are told apart by the order in which they occur."""

    __slots__ = ("_begun", "_numbers")

    def __init__(self, *values: object) -> None:
        self._numbers: dict[int, int] = {}
        self._begun = hashlib.sha256("".join(_pieces(values, self._numbers)).encode())

    def ended(self, *values: object, column: Callable[[int], object]) -> str:
        """One of them, with what `column` says of each column that occurs, by its number in the plan."""
        numbers, whole = dict(self._numbers), self._begun.copy()
        parts = _pieces(values, numbers)
        parts += _pieces(tuple(column(uid) for uid in numbers), None)
        whole.update("".join(parts).encode())
        return whole.hexdigest()


def _piece(text: str) -> str:
    """With its length in front, so that no two trees give one text."""
    return f"{len(text)}:{text}"


def _pieces(whole: object, numbers: dict[int, int] | None) -> list[str]:
    """Canonical pieces of a value and all that it holds, in order. numbers: what columns are called, by number."""
    parts: list[str] = []
    waiting: list[Any] = [whole]
    while waiting:
        value = waiting.pop()
        kind = type(value)
        if kind is SqlType:
            parts.append(_of_type(value))
            continue
        if kind is Column and numbers is not None:
            parts.append(_piece(f"column {numbers.setdefault(value.uid, len(numbers))} {value.type}"))
            continue
        if kind not in _KINDS:
            _KINDS[kind] = _kind(kind)
        name, compared = _KINDS[kind]
        if compared is not None:
            parts.append(name)
            waiting.extend([getattr(value, field) for field in compared])
        elif isinstance(value, (tuple, list)):
            parts.append(_piece(str(len(value))))
            waiting.extend(reversed(value))
        elif isinstance(value, Enum):
            parts.append(_piece(f"{name}.{value.name}"))
        else:
            parts.append(_piece(f"{name} {value!r}"))
    return parts


@cache
def _of_type(value: SqlType) -> str:
    """The pieces of a type: half of all pieces of a plan, were they made anew for each column."""
    item = _piece("None") if value.item is None else _of_type(value.item)
    own = ("type", value.kind.name, value.name, str(value.precision), str(value.scale))
    return "".join([*map(_piece, own), item])


def _kind(kind: type[Any]) -> tuple[str, tuple[str, ...] | None]:
    """The name of a type; of a dataclass the piece that stands for it, and what its equality compares, last first."""
    if not is_dataclass(kind):
        return kind.__name__, None
    compared = tuple(f.name for f in reversed(fields(kind)) if f.compare)
    return _piece(f"{kind.__name__}/{len(compared)}"), compared


_KINDS: dict[type[Any], tuple[str, tuple[str, ...] | None]] = {}
