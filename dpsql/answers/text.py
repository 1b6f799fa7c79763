"""Answers as text, for files: exact, and read back as the very same values."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

from dpsql.answers.store import Key, KeyValue, ShownKeys
from dpsql.loss import PrivacyLoss

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


def write_integers(values: tuple[int, ...]) -> str:
    """Integers of any size."""
    return json.dumps(values, separators=(",", ":"))


def read_integers(text: str) -> tuple[int, ...]:
    """What `write_integers` wrote; ValueError if it is something else."""
    found = json.loads(text)
    if not isinstance(found, list) or any(type(v) is not int for v in found):
        raise ValueError("not integers")
    return tuple(found)


def read_fraction(text: str) -> Fraction:
    """What `str` wrote of a Fraction; ValueError for any other form: `1e999999999` would fill the memory."""
    above, slash, below = text.partition("/")
    return Fraction(int(above), int(below) if slash else 1)


def write_losses(losses: dict[str, PrivacyLoss]) -> str:
    """Privacy unit → exact loss."""
    parts = {unit: [str(Fraction(x)) for x in (loss.epsilon, loss.delta, loss.rho)] for unit, loss in losses.items()}
    return json.dumps(parts, sort_keys=True)


def read_losses(text: str) -> dict[str, PrivacyLoss]:
    """What `write_losses` wrote."""
    return {unit: PrivacyLoss(*map(read_fraction, parts)) for unit, parts in json.loads(text).items()}


def write_shown(shown: ShownKeys | None) -> str:
    """A key set; an empty text for none."""
    if shown is None:
        return ""
    numbers = {"threshold": shown.threshold, "r": shown.r, "g": shown.g, "delta": str(shown.delta)}
    return json.dumps({**numbers, "keys": [[_written(v) for v in key] for key in shown.keys]})


def read_shown(text: str) -> ShownKeys | None:
    """What `write_shown` wrote."""
    if not text:
        return None
    found = json.loads(text)
    keys: list[Key] = [tuple(_READERS[kind](value) for kind, value in key) for key in found["keys"]]
    threshold, r, g = (found[name] for name in ("threshold", "r", "g"))
    if any(type(number) is not int for number in (threshold, r, g)):
        raise ValueError("not integers")
    return ShownKeys(tuple(keys), threshold, r, g, read_fraction(found["delta"]))


def _written(value: KeyValue) -> tuple[str, str]:
    """The name of a value's type and its text."""
    match value:
        case bytes():
            text = value.hex()
        case dt.date() | dt.time():
            text = value.isoformat()
        case dt.timedelta():
            text = str(value // dt.timedelta(microseconds=1))
        case float():
            text = float.__repr__(value)
        case _:
            text = str(value)
    return type(value).__name__, text


def plain(error: Any) -> str:
    """An error's text on one line."""
    return " ".join(str(error).split())
