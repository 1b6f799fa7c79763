"""Scalar texts as a dialect prints them: calls of every function, casts between all types, constants.

Drawn at random, but the same for a seed.
"""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator
from typing import NamedTuple

from dpsql.core.ir.types import (
    BLOB,
    DATE,
    INTEGER,
    INTERVAL,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    VARCHAR,
    SqlType,
    decimal,
    parse_type,
)
from dpsql.core.printing.dialect import CannotSpell, Dialect
from dpsql.core.values.constants import literal
from dpsql.core.values.value import Scalar, Value, type_range
from dpsql.diagnostics.errors import Rejected
from dpsql.functions.cast import cast
from dpsql.functions.function import Function, SignatureError
from dpsql.functions.registry import FAMILIES, apply
from tests.functions.test_function_contract import LITERALS, TARGETS, VARIADIC
from tests.support.function_rows import COLUMNS, constants

FUNCTIONS = [f for family in FAMILIES.values() for f in family]
LONG = 150
"""Characters of some columns' names: what is long is named once where an engine has no other way."""


class ScalarText(NamedTuple):
    """A printed text with the columns that it may read, and the function that it calls."""

    text: str
    atoms: tuple[str, ...]
    function: str


def _constant(d: Dialect, value: Scalar, t: SqlType) -> tuple[str, Value]:
    return d.constant(value, t), literal(value, t)


def _type_of(value: Scalar) -> SqlType:
    match value:
        case dt.timedelta():
            return INTERVAL
        case str():
            return VARCHAR
        case dt.datetime():
            return TIMESTAMP
        case dt.date():
            return DATE
        case int() if abs(value) < 2**31:
            return INTEGER
        case _:
            return decimal(38, 0)


def _columns(d: Dialect) -> list[tuple[str, Value]]:
    found = []
    for i, c in enumerate(COLUMNS):
        name = d.identifier(c.name + "_" * (LONG if i % 3 == 0 else 0))
        found += [(d.column(f"t1.{name}", c.value.type), facts) for facts in (c.value, _bare(c.value))]
    return found


def _bare(value: Value) -> Value:
    held = type_range(value.type)
    return Value(value.type, held, held)


def calls(d: Dialect, function: Function, wanted: int, seed: int) -> Iterator[ScalarText]:
    """Of one function."""
    rng, columns = random.Random(f"{seed} {function.name}"), _columns(d)

    def argument(at: int) -> tuple[str, Value]:
        choices = LITERALS.get(function.name, {}).get(at)
        if choices is not None and (at in function.literal or rng.random() < 0.4):
            value = rng.choice(choices)
            return _constant(d, value, _type_of(value))
        if at in function.literal or rng.random() < 0.2:
            return _constant(d, *rng.choice(constants()))
        return rng.choice(columns)

    found = 0
    for _ in range(3_000):
        arity = rng.choice([1, 2, 3] + ([4, 5] if function.name in VARIADIC else []))
        try:
            args = [argument(i) for i in range(arity)]
            if function.name == "in":
                args[1:] = [_constant(d, *rng.choice(constants())) for _ in args[1:]]
            parts, values = [sql for sql, _ in args], [v for _, v in args]
            result = apply(function, values)
            printed = d.call(function.name, parts, values, result)
            held = [type_range(v.type) for v in values]
            text = d.attempt(f"({printed})", function.name, parts, values, held, result)
        except (SignatureError, CannotSpell, Rejected):
            continue
        yield ScalarText(text, tuple(parts), function.name)
        found += 1
        if found == wanted:
            return


def casts(d: Dialect) -> Iterator[ScalarText]:
    """From every column to every type."""
    for target in TARGETS:
        t = parse_type(target)
        assert t is not None
        for sql, known in _columns(d):
            try:
                cast(known, t)
                text = d.convert(sql, known, t)
            except (SignatureError, CannotSpell, Rejected):
                continue
            yield ScalarText(text, (sql,), f"cast to {target}")


def rare_constants(d: Dialect) -> Iterator[ScalarText]:
    """Of types that no function of the others has as a literal."""
    noon = dt.datetime(2024, 2, 29, 12)
    for value, t in ((b"a\0", BLOB), (noon.time(), TIME), (noon.replace(tzinfo=dt.UTC), TIMESTAMPTZ)):
        try:
            yield ScalarText(d.constant(value, t), (), f"constant of {t}")
        except Rejected:
            continue


def texts(d: Dialect, wanted: int = 10, seed: int = 0) -> Iterator[ScalarText]:
    """Of all functions, all casts, and constants."""
    yield from rare_constants(d)
    for function in FUNCTIONS:
        if d.spells(function.name):
            yield from calls(d, function, wanted, seed)
    yield from casts(d)
