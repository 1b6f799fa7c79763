"""What makes two plans the same plan: all that decides statements, noise, price and answer; the spelling does not."""

from __future__ import annotations

import hashlib
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from dpsql.plan.expr import Column


def fingerprint(*values: object, numbered: bool = False) -> str:
    """A SHA-256 of plan values that equal values share: fields that equality ignores (spans, labels) take no part.

    numbered: columns are told apart by the order in which they occur, so that two copies of a subquery are equal.
    """
    parts: list[str] = []
    _collect(values, parts, {} if numbered else None)
    encoded = [part.encode() for part in parts]
    return hashlib.sha256(b"".join(b"%d:%b" % (len(part), part) for part in encoded)).hexdigest()


def _collect(value: Any, parts: list[str], numbers: dict[int, int] | None) -> None:
    """Canonical pieces; their lengths are hashed as well, so that no two trees give one text."""
    if numbers is not None and isinstance(value, Column):
        parts.append(f"column {numbers.setdefault(value.uid, len(numbers))} {value.type}")
        return
    names = _compared(type(value))
    if names is not None:
        parts.append(f"{type(value).__name__}/{len(names)}")
        for name in names:
            _collect(getattr(value, name), parts, numbers)
    elif isinstance(value, tuple | list):
        parts.append(f"{len(value)}")
        for item in value:
            _collect(item, parts, numbers)
    elif isinstance(value, Enum):
        parts.append(f"{type(value).__name__}.{value.name}")
    else:
        parts.append(f"{type(value).__name__} {value!r}")


def _compared(kind: type[Any]) -> tuple[str, ...] | None:
    """The fields of a dataclass that its equality compares; None for other types."""
    if kind not in _COMPARED:
        _COMPARED[kind] = tuple(f.name for f in fields(kind) if f.compare) if is_dataclass(kind) else None
    return _COMPARED[kind]


_COMPARED: dict[type[Any], tuple[str, ...] | None] = {}
