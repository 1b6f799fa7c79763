"""What makes two plans the same plan: all that decides statements, noise, price and answer; the spelling does not."""

from __future__ import annotations

import hashlib
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any

from dpsql.plan.expr import Column
from dpsql.types import SqlType


def fingerprint(*values: object, numbered: bool = False) -> str:
    """A SHA-256 of plan values that equal values share: fields that equality ignores (spans, labels) take no part.

    numbered: columns are told apart by the order in which they occur, so that two copies of a subquery are equal.
    """
    parts: list[str] = []
    _collect(values, parts, {} if numbered else None)
    return hashlib.sha256("".join([f"{len(part)}:{part}" for part in parts]).encode()).hexdigest()


def _collect(value: Any, parts: list[str], numbers: dict[int, int] | None) -> None:
    """Canonical pieces; their lengths are hashed as well, so that no two trees give one text."""
    if numbers is not None and isinstance(value, Column):
        parts.append(f"column {numbers.setdefault(value.uid, len(numbers))} {value.type}")
        return
    kind = type(value)
    if kind is SqlType:
        parts.extend(_of_type(value))
        return
    if kind not in _KINDS:
        _KINDS[kind] = _kind(kind)
    name, compared = _KINDS[kind]
    if compared is not None:
        parts.append(name)
        for field in compared:
            _collect(getattr(value, field), parts, numbers)
    elif isinstance(value, (tuple, list)):
        parts.append(str(len(value)))
        for item in value:
            _collect(item, parts, numbers)
    elif isinstance(value, Enum):
        parts.append(f"{name}.{value.name}")
    else:
        parts.append(f"{name} {value!r}")


@cache
def _of_type(value: SqlType) -> tuple[str, ...]:
    """The pieces of a type: half of all pieces of a plan, were they made anew for each column."""
    item = ("None",) if value.item is None else _of_type(value.item)
    return "type", value.kind.name, value.name, str(value.precision), str(value.scale), *item


def _kind(kind: type[Any]) -> tuple[str, tuple[str, ...] | None]:
    """The name that stands for a type; of a dataclass also the fields that its equality compares."""
    if not is_dataclass(kind):
        return kind.__name__, None
    compared = tuple(f.name for f in fields(kind) if f.compare)
    return f"{kind.__name__}/{len(compared)}", compared


_KINDS: dict[type[Any], tuple[str, tuple[str, ...] | None]] = {}
