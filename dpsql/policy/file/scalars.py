"""The scalars of a policy file: each type says what it accepts, exactly, in words for the custodian."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from dpsql.policy.issues import did_you_mean, listed, shown

MESSAGE = "policy"
"""Type of the pydantic errors whose message is already in the custodian's words."""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
MAX_COUNT = 2**62
_TIME = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?) ?(ms|s|min)")
_SECONDS = {"ms": Fraction(1, 1000), "s": Fraction(1), "min": Fraction(60)}
MOST_SECONDS = 86_400
_SPAN = re.compile(r"([0-9]{1,9}) ?(s|min|hours?|days?)")
_IN_SECONDS = {"s": 1, "min": 60, "hour": 3600, "hours": 3600, "day": 86_400, "days": 86_400}
MOST_DAYS = 3660


def usable_name(text: str) -> bool:
    """True if a policy can hold this as the name of a table, column or analyst."""
    return bool(text.strip()) and len(text) <= 255 and not _CONTROL.search(text)


def wrong(message: str) -> PydanticCustomError:
    """An error with this text as it stands."""
    return PydanticCustomError(MESSAGE, "{text}", {"text": message})


def exact(value: object) -> Fraction | None:
    """The exact number a YAML or Python scalar means, or None. A float means its shortest decimal text."""
    match value:
        case bool():
            return None
        case int() | Fraction():
            return Fraction(value)
        case Decimal():
            return Fraction(value) if value.is_finite() and abs(value.adjusted()) < 1000 else None
        case float():
            return Fraction(repr(value)) if math.isfinite(value) else None
        case _:
            return None


def _rational(least: Fraction | None, strict: bool, below: Fraction | None, words: str) -> Callable[[object], Fraction]:
    def check(value: object) -> Fraction:
        x = exact(value)
        if x is None:
            hint = " (remove the quotes)" if isinstance(value, str) and re.fullmatch(r"[-+.\deE]+", value) else ""
            raise wrong(f"must be {words}, got {shown(value)}{hint}")
        low = least is not None and (x < least or (strict and x == least))
        if low or (below is not None and x >= below):
            raise wrong(f"must be {words}, got {shown(value)}")
        return x

    return check


def _count(value: object) -> int:
    x = exact(value)
    if x is None or x.denominator != 1 or not 1 <= x <= MAX_COUNT:
        raise wrong(f"must be a whole number of at least 1, got {shown(value)}")
    return int(x)


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        hint = "; YAML 1.2 writes it without quotes" if value in ("true", "false") else ""
        hint = " (yes and no are text in YAML 1.2)" if value in ("yes", "no", "on", "off") else hint
        raise wrong(f"must be true or false, got {shown(value)}{hint}")
    return value


def _flag_or_auto(value: object) -> bool | str:
    if value == "auto":
        return "auto"
    if not isinstance(value, bool):
        raise wrong(f"must be true, false or auto, got {shown(value)}")
    return value


def _text(value: object, most: int = 4096) -> str:
    if not isinstance(value, str):
        hint = "; put it in quotes" if isinstance(value, bool | int | Decimal | float) else ""
        raise wrong(f"must be text, got {shown(value)}{hint}")
    if not value.strip() or _CONTROL.search(value.replace("\n", "").replace("\t", "")):
        raise wrong(f"must be text without control characters, got {shown(value)}")
    if len(value) > most:
        raise wrong(f"must be no longer than {most:,} characters, and has {len(value):,}")
    return value


def _call(value: object) -> str:
    return _text(value, 1 << 18)  # with the names and types of some thousand columns


def _name(value: object) -> str:
    text = _text(value)
    if not _NAME.fullmatch(text):
        raise wrong(f"must be a name of letters a to z, digits, `_`, `-` and `.`, got {shown(value)}")
    return text


def _version(value: object) -> int:
    if isinstance(value, bool) or value != 1:
        raise wrong(f"must be 1 (the format this dpsql reads), got {shown(value)}")
    return 1


def _label(value: object) -> str:
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return str(value)
    return _text(value)


def _moments(value: object) -> list[Fraction]:
    """Lengths of time in seconds: 5s, 200ms, 2min; a bare number is seconds."""
    if not isinstance(value, list | tuple) or not value:
        raise wrong(f"must be a list of times, e.g. [0.2s, 1s, 5s], got {shown(value)}")
    return [_length_of_time(item) for item in value]


def _length_of_time(value: object) -> Fraction:
    found = _TIME.fullmatch(value) if isinstance(value, str) else None
    length = Fraction(found[1]) * _SECONDS[found[2]] if found else exact(value) or Fraction(0)
    if not 0 < length <= MOST_SECONDS:
        raise wrong(f"must be times of up to a day, such as 0.2s, 200ms or 2min, got {shown(value)} in it")
    return length


def _span(value: object) -> int:
    """A length of time in whole seconds: 30 days, 12 hours, 90 min; a bare number is seconds."""
    found = _SPAN.fullmatch(value) if isinstance(value, str) else None
    length = Fraction(int(found[1]) * _IN_SECONDS[found[2]]) if found else exact(value) or Fraction(0)
    if length.denominator != 1 or not 1 <= length <= MOST_DAYS * 86_400:
        raise wrong(f"must be a time of up to {MOST_DAYS} days, such as 30 days or 12 hours, got {shown(value)}")
    return int(length)


def only_assumed() -> BeforeValidator:
    """`enforce` of a foreign key, which the plan does nothing about."""

    def check(value: object) -> str:
        if value != "assume":
            raise wrong(
                f"must be assume, got {shown(value)}: a policy leaves out no rows that refer to nothing; leave "
                "`enforce` out, and use JOIN or EXISTS in the queries that are to leave such rows out"
            )
        return "assume"

    return BeforeValidator(check)


def one_of(*names: str) -> BeforeValidator:
    """A word from a list; a near miss is named."""

    def check(value: object) -> str:
        if not isinstance(value, str) or value not in names:
            hint = did_you_mean(value, names) if isinstance(value, str) else ""
            raise wrong(f"must be one of {listed(names)}, got {shown(value)}{hint}")
        return value

    return BeforeValidator(check)


def _names(value: object) -> list[str]:
    if isinstance(value, str):
        raise wrong(f"must be a list of column names, e.g. [{value[:60]}]")
    if not isinstance(value, list | tuple) or not value:
        raise wrong(f"must be a list of column names, got {shown(value)}")
    for item in value:
        if not isinstance(item, str) or not item.strip():
            raise wrong(f"must be a list of column names, got {shown(item)} in it")
    if len({item.casefold() for item in value}) < len(value):
        raise wrong(f"names a column twice: {shown(list(value))}")
    return list(value)


def _pair(value: object) -> list[Any]:
    if not isinstance(value, list | tuple) or len(value) != 2:
        searched = " or search" if isinstance(value, str) else ""
        raise wrong(f"must be [lower, upper]{searched}, got {shown(value)}")
    return list(value)


def _yes(value: object) -> bool:
    if value is not True:
        raise wrong(f"must be true, or left out, got {shown(value)}")
    return True


def _day(value: object) -> str:
    """A day, in the one form that it is kept in."""
    text = value.isoformat() if isinstance(value, dt.date) and not isinstance(value, dt.datetime) else value
    try:
        if isinstance(text, str) and dt.date.fromisoformat(text).isoformat() == text:
            return text
    except ValueError:
        pass
    raise wrong(f"must be a day such as 2026-01-31, got {shown(value)}")


def _values(value: object) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise wrong(f"must be a list, got {shown(value)}")
    for item in value:
        if item is None:
            raise wrong("lists null; write {values: […], null: true} to make NULL a key")
        if isinstance(item, list | tuple | dict):
            raise wrong(f"must be a list of plain values, got {shown(item)} in it")
    return list(value)


_NUMBER = {"type": "number"}
Positive = Annotated[
    Fraction,
    PlainValidator(_rational(Fraction(0), True, None, "a number above 0")),
    WithJsonSchema({**_NUMBER, "exclusiveMinimum": 0}),
]
NotNegative = Annotated[
    Fraction,
    PlainValidator(_rational(Fraction(0), False, None, "a number of at least 0")),
    WithJsonSchema({**_NUMBER, "minimum": 0}),
]
Probability = Annotated[
    Fraction,
    PlainValidator(_rational(Fraction(0), False, Fraction(1), "a number in [0, 1)")),
    WithJsonSchema({**_NUMBER, "minimum": 0, "exclusiveMaximum": 1}),
]
Count = Annotated[int, PlainValidator(_count), WithJsonSchema({"type": "integer", "minimum": 1})]
Flag = Annotated[bool, PlainValidator(_flag), WithJsonSchema({"type": "boolean"})]
FlagOrAuto = Annotated[
    bool | str, PlainValidator(_flag_or_auto), WithJsonSchema({"anyOf": [{"type": "boolean"}, {"const": "auto"}]})
]
Yes = Annotated[bool, PlainValidator(_yes), WithJsonSchema({"const": True})]
Text = Annotated[str, PlainValidator(_text), WithJsonSchema({"type": "string", "minLength": 1})]
Call = Annotated[str, PlainValidator(_call), WithJsonSchema({"type": "string", "minLength": 1})]
Label = Annotated[str, PlainValidator(_label), WithJsonSchema({"type": ["string", "number"]})]
Name = Annotated[str, PlainValidator(_name), WithJsonSchema({"type": "string", "pattern": f"^{_NAME.pattern}$"})]
Version = Annotated[int, PlainValidator(_version), WithJsonSchema({"const": 1})]
Names = Annotated[
    list[str],
    PlainValidator(_names),
    WithJsonSchema({"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1, "uniqueItems": True}),
]
Pair = Annotated[
    list[Any],
    PlainValidator(_pair),
    WithJsonSchema({"type": "array", "items": {"type": ["number", "string", "null"]}, "minItems": 2, "maxItems": 2}),
]
Moments = Annotated[
    list[Fraction],
    PlainValidator(_moments),
    WithJsonSchema({"type": "array", "items": {"type": ["string", "number"]}, "minItems": 1}),
]
Span = Annotated[int, PlainValidator(_span), WithJsonSchema({"type": ["string", "integer"]})]
Day = Annotated[str, PlainValidator(_day), WithJsonSchema({"type": "string", "format": "date"})]
Values = Annotated[
    list[Any],
    PlainValidator(_values),
    WithJsonSchema({"type": "array", "items": {"type": ["number", "string", "boolean"]}}),
]


def short_form(*types: type, to: str, schema: Any) -> BeforeValidator:
    """Accept the short form of a mapping: a plain value stands for `{to: value}`. `schema`: both forms, for editors."""

    def expand(value: object) -> object:
        return {to: value} if isinstance(value, types) and not isinstance(value, bool) else value

    return BeforeValidator(expand, json_schema_input_type=schema)


def word_form(word: str) -> BeforeValidator:
    """Accept a word for a mapping: `search` stands for `{search: true}`."""
    return BeforeValidator(lambda value: {word: True} if value == word else value)


def bounds_form(value: object) -> object:
    """`search` stands for `{search: true}`; whatever else is no mapping is meant as [lower, upper]."""
    if value == "search":
        return {"search": True}
    return value if isinstance(value, dict) or value is None else {"ends": value}


def _empty(value: object) -> object:
    return {} if value is None else value


def or_empty(model: type) -> BeforeValidator:
    """`patient_id:` with nothing behind it is an empty mapping."""
    return BeforeValidator(_empty, json_schema_input_type=model | None)
