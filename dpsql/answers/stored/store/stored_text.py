"""Answers as text, for files: exact, and read back as the very same values."""

from __future__ import annotations

import base64
import datetime as dt
import json
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from dpsql.core.ledger.losses.regions import Region, dearest, read, read_loss
from dpsql.core.ledger.released import Key, KeyValue, ShownKeys
from dpsql.core.privacy_loss import PrivacyLoss

_READERS: dict[str, Callable[[str], KeyValue]] = {
    "bool": lambda text: text == "True",
    "int": int,
    "Decimal": Decimal,
    "float": float,
    "str": str,
    "bytes": bytes.fromhex,
    "date": dt.date.fromisoformat,
    "datetime": dt.datetime.fromisoformat,
    "time": dt.time.fromisoformat,
    "timedelta": lambda text: dt.timedelta(microseconds=int(text)),
    "NoneType": lambda text: None,
}

_WRITERS: dict[type, Callable[[Any], str]] = {
    bytes: bytes.hex,
    float: float.__repr__,
    dt.date: dt.date.isoformat,
    dt.datetime: dt.datetime.isoformat,
    dt.time: dt.time.isoformat,
    dt.timedelta: lambda value: str(value // dt.timedelta(microseconds=1)),
}
"""For the types whose `str` is not what is read back."""


MANY = 10_000
"""Integers from which on they are written in 64 bits each: a million take a tenth of a second less."""
IN_64_BITS = "int64:"


def write_integers(values: Sequence[int]) -> str:
    """Integers of any size; many that fit 64 bits as these, the least byte first."""
    from dpsql.core.noise.integer_columns import Integers  # loads numpy

    held = Integers.of(values)
    if len(held) >= MANY and held.array.dtype == "int64":
        return IN_64_BITS + base64.b64encode(held.array.astype("<i8").tobytes()).decode("ascii")
    return str(held.tolist()).replace(" ", "")


def read_integers(text: str) -> tuple[int, ...]:
    """What `write_integers` wrote; ValueError if it is something else."""
    if text.startswith(IN_64_BITS):
        import numpy

        held = base64.b64decode(text.removeprefix(IN_64_BITS), validate=True)
        return tuple(numpy.frombuffer(held, "<i8").tolist())  # ValueError for a part of a number
    found = json.loads(text)
    if not isinstance(found, list) or any(type(v) is not int for v in found):
        raise ValueError("not integers")
    return tuple(found)


def read_fraction(text: str) -> Fraction:
    """What `str` wrote of a Fraction; ValueError for any other form: `1e999999999` would fill the memory."""
    above, slash, below = text.partition("/")
    return Fraction(int(above), int(below) if slash else 1)


def read_losses(text: str) -> tuple[dict[str, PrivacyLoss], dict[str, Region]]:
    """What `write_losses` wrote: privacy unit → loss, of the dearest period; → what each period loses, if not all."""
    stored = json.loads(text).items()
    regions = {unit: read(parts) for unit, parts in stored if parts and isinstance(parts[0], list)}
    return {unit: dearest(regions[unit]) if unit in regions else read_loss(*parts) for unit, parts in stored}, regions


def write_shown(shown: ShownKeys | None) -> str:
    """A key set; an empty text for none."""
    if shown is None:
        return ""
    numbers = {"threshold": shown.threshold, "r": shown.r, "g": shown.g, "delta": str(shown.delta)}
    width = len(shown.keys[0]) if shown.keys else 0
    columns = [_written([key[i] for key in shown.keys]) for i in range(width)]
    return json.dumps({**numbers, "height": len(shown.keys), "columns": columns})


def read_shown(text: str) -> ShownKeys | None:
    """What `write_shown` wrote."""
    if not text:
        return None
    found = json.loads(text)
    threshold, r, g, height = (found[name] for name in ("threshold", "r", "g", "height"))
    if any(type(number) is not int for number in (threshold, r, g, height)):
        raise ValueError("not integers")
    columns = [_read(kinds, texts) for kinds, texts in found["columns"]]
    if any(len(column) != height for column in columns) or (height > 1 and not columns):
        raise ValueError("not as many keys as it says")
    keys: tuple[Key, ...] = tuple(zip(*columns, strict=True)) if columns else ((),) * height
    return ShownKeys(keys, threshold, r, g, read_fraction(found["delta"]))


def _written(values: Sequence[KeyValue]) -> tuple[list[str], list[str]]:
    """The names of the values' types, one if it is always the same, and their texts."""
    kinds = list(map(type, values))
    if len(distinct := set(kinds)) == 1:
        (kind,) = distinct
        return [kind.__name__], list(map(_WRITERS.get(kind, str), values))
    return [kind.__name__ for kind in kinds], [_WRITERS.get(k, str)(v) for k, v in zip(kinds, values, strict=True)]


def _read(kinds: Sequence[str], texts: Sequence[str]) -> list[KeyValue]:
    """What `_written` wrote."""
    if len(kinds) == 1:
        return list(map(_READERS[kinds[0]], texts))
    return [_READERS[kind](text) for kind, text in zip(kinds, texts, strict=True)]


def plain(error: Any) -> str:
    """An error's text on one line."""
    return " ".join(str(error).split())
