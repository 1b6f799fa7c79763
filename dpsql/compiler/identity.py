"""What makes two plans the same plan: all that decides statements, noise, price and answer; the spelling does not."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from enum import Enum


def fingerprint(*values: object) -> str:
    """A SHA-256 of plan values that equal values share: fields that equality ignores (spans, labels) take no part."""
    digest = hashlib.sha256()
    for part in _parts(values):
        text = part.encode()
        digest.update(f"{len(text)}:".encode() + text)
    return digest.hexdigest()


def _parts(value: object) -> Iterator[str]:
    """Canonical pieces; their lengths are hashed as well, so that no two trees give one text."""
    if is_dataclass(value) and not isinstance(value, type):
        compared = [f for f in fields(value) if f.compare]
        yield f"{type(value).__name__}/{len(compared)}"
        for f in compared:
            yield from _parts(getattr(value, f.name))
    elif isinstance(value, tuple | list):
        yield f"{len(value)}"
        for item in value:
            yield from _parts(item)
    elif isinstance(value, Enum):
        yield f"{type(value).__name__}.{value.name}"
    else:
        yield f"{type(value).__name__} {value!r}"
