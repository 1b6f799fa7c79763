"""Values of parameters for the check's sake: constants as SQL writes them, or TOML, → what Python would pass."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, TypeAlias

from dpsql.diagnostics.errors import reject

Value: TypeAlias = bool | int | float | Decimal | str | dt.date | dt.datetime | None
"""A parameter's value."""
Values: TypeAlias = Mapping[str, Value]
"""Name → value; `?` and `$1` are named by their number."""

_MOST_DIGITS: Final = 400
_CONSTANT = re.compile(
    r"(?P<word>NULL|TRUE|FALSE)(?!\w)"
    r"|(?:(?P<type>DATE|TIMESTAMP)\s*)?'(?P<text>(?:[^']|'')*)'"
    r"|(?P<number>[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?P<exponent>E[-+]?[0-9]+)?)(?![\w.:-])",
    re.IGNORECASE,
)
_WORDS: Final = {"NULL": None, "TRUE": True, "FALSE": False}


def read_constant(text: str, start: int, end: int) -> tuple[Value, int] | None:
    """The SQL constant at `start`, and where it ends; None: there is none. `1.5` is exact, `15e-1` is a float.

    Raises ValueError with the reason for one that stands for no value.
    """
    match = _CONSTANT.match(text, start, end)
    if match is None:
        return None
    if match["word"]:
        return _WORDS[match["word"].upper()], match.end()
    if match["number"]:
        return _number(match["number"], bool(match["exponent"])), match.end()
    plain = match["text"].replace("''", "'")
    if not match["type"]:
        return plain, match.end()
    try:
        if match["type"].upper() == "DATE":
            return dt.date.fromisoformat(plain.strip()), match.end()
        time = dt.datetime.fromisoformat(plain.strip())
    except ValueError:
        raise ValueError(f"{plain!r} is no {match['type'].lower()}") from None
    if time.tzinfo is not None:
        raise ValueError("a TIMESTAMP has no time zone")
    return time, match.end()


def _number(text: str, inexact: bool) -> Value:
    if len(text) > _MOST_DIGITS:
        raise ValueError(f"a number has at most {_MOST_DIGITS} characters")
    if inexact:
        number = float(text)
        if not math.isfinite(number):
            raise ValueError("the number is too large")
        return number
    return Decimal(text) if "." in text else int(text)


def configured(value: Any) -> Value:
    """A value of a TOML file that was read with exact numbers. Raises ValueError if no parameter can be that."""
    match value:
        case Decimal():
            number = float(value)
            if not math.isfinite(number):
                raise ValueError("must be a finite number")
            return number
        case bool() | int() | str() | dt.date():  # a datetime is a date
            return value
        case _:
            raise ValueError("must be a number, a text, a boolean, a date or a date with a time")


def named(name: str) -> str:
    """A parameter's name as it is. Raises ValueError if there is no such name."""
    if re.fullmatch(r"\w+", name) is None:
        raise ValueError(f"{name!r} is no name of a parameter; write `lo` for $lo, `1` for the first ?")
    return name


def fingerprint(values: Values) -> str:
    """A text that differs wherever values do: 1, 1.0 and TRUE are equal in Python, and other constants in a plan."""
    return repr(sorted(values.items(), key=lambda pair: pair[0]))


def given_values(given: Sequence[str]) -> dict[str, Value]:
    """NAME=VALUE of the command line: a constant of SQL, or a text as it stands. Raises Rejected DP903."""
    found: dict[str, Value] = {}
    for text in given:
        name, equals, value = (part.strip() for part in text.partition("="))
        try:
            if not equals or not value:
                raise ValueError(f"it takes NAME=VALUE, not {text!r}")
            if named(name) in found:
                raise ValueError(f"{name} is given twice")
            read = read_constant(value, 0, len(value))
            if read is not None and read[1] == len(value):
                found[name] = read[0]
            elif "'" in value:
                raise ValueError(f"{value} is no constant; quotes are written as in SQL, 'O''Neill'")
            else:
                found[name] = value
        except ValueError as error:
            raise reject(
                "DP903", f"--parameter: {error}",
                help=["e.g.  --parameter low=18 --parameter ward=surgery --parameter \"since=DATE '2024-01-01'\""],
            ) from None  # fmt: skip
    return found
