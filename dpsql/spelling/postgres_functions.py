"""How PostgreSQL spells the functions of numbers; those of texts and of dates lie in files beside.

What has no spelling here is refused by name. A spelling holds the guards that make it total: PostgreSQL raises an error
where a result is out of range, and so it is asked for none that is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from dpsql.core.ir.types import BIGINT, DOUBLE, HUGEINT, INTEGER, UBIGINT, Kind
from dpsql.core.printing.conversions import as_type
from dpsql.core.printing.dialect import CannotSpell, Dialect, Spelling
from dpsql.core.printing.dialects.postgres import Postgres
from dpsql.core.printing.dialects.postgres_casts import bound, half_away, once
from dpsql.core.printing.dialects.postgres_doubles import last, over, over_constant, plus, times, times_constant
from dpsql.core.values.value import Args, Value
from dpsql.functions.dates.date_arithmetic import is_dated
from dpsql.functions.domains.octaves import LAST
from dpsql.functions.numbers.arithmetic import may_be_zero
from dpsql.functions.numbers.real_functions import log_base
from dpsql.functions.numbers.rounding import places
from dpsql.spelling.alike import ALIKE, bits, each
from dpsql.spelling.postgres_dates import DATES, shifted
from dpsql.spelling.postgres_texts import TEXTS


def _number(a: Value) -> float | None:
    """A constant as a DOUBLE."""
    known = a.constant
    return float(known) if a.type.numeric and a.is_constant and known is not None else None  # type: ignore[arg-type]


# --- operators --------------------------------------------------------------------------------------------------------


def _linear(operator: str) -> Spelling:
    def spell(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
        if result.type.kind is Kind.DECIMAL:
            return f"({sql[0]} {operator} {sql[1]})"  # numeric, and exact, whatever the sides
        a, b = each(d, sql, args, result.type)
        if result.type.kind is not Kind.DOUBLE:
            return f"({a} {operator} {b})"
        known = [x for x in map(_number, args) if x is not None]
        if any(abs(x) < 2.0**969 for x in known):
            return f"({a} {operator} {b})"  # which no number is too large for
        return plus(d, a, b, operator)

    return spell


def _dated_or_linear(operator: str) -> Spelling:
    """Date arithmetic where an argument is a date, else numbers."""
    dates, numbers = shifted(operator), _linear(operator)
    return lambda d, sql, args, result: (dates if is_dated(args) else numbers)(d, sql, args, result)


def _mul(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    if result.type.kind is Kind.DECIMAL:
        return f"({sql[0]} * {sql[1]})"
    a, b = each(d, sql, args, result.type)
    if result.type.kind is not Kind.DOUBLE:
        return f"({a} * {b})"
    first, second = map(_number, args)
    if second is not None:
        return times_constant(d, a, second)
    return times(d, a, b) if first is None else times_constant(d, b, first)


def _nonzero(sql: str, a: Value) -> str:
    """A divisor; NULL in place of 0, whatever is known of it."""
    return f"NULLIF({sql}, 0)" if not a.is_constant or may_be_zero(a) else sql


def _div(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    a, b = each(d, sql, args, result.type)
    divisor = _number(args[1])
    if divisor is not None and divisor != 0:
        return over_constant(d, a, divisor)
    return over(d, a, _nonzero(b, args[1]))


def _intdiv(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    a, b = each(d, sql, args, result.type)
    b = _nonzero(b, args[1])
    if result.type.kind is Kind.DOUBLE:
        return f"trunc({over(d, a, b)})"
    return f"div({a}, {b})" if result.type == HUGEINT else f"({a} / {b})"


def _mod(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    if result.type.kind is Kind.DOUBLE:
        raise CannotSpell("there is no remainder of DOUBLEs")
    a, b = sql if result.type.kind is Kind.DECIMAL else each(d, sql, args, result.type)
    return f"({a} % {_nonzero(b, args[1])})"


def _neg(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    return f"(- {as_type(d, sql[0], args[0], result.type)})"


# --- numbers ----------------------------------------------------------------------------------------------------------


def _of_double(test: Callable[[Dialect, str], str]) -> Spelling:
    return lambda d, sql, args, result: test(d, d.cast(sql[0], DOUBLE))


def _is_infinite(d: Dialect, sql: str) -> str:
    return f"(abs({sql}) = {d.constant(math.inf, DOUBLE)})"


def _abs(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    return f"abs({as_type(d, sql[0], args[0], result.type)})"


def _sign(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    number = d.cast(sql[0], DOUBLE) if args[0].type.kind is Kind.DOUBLE else d.wide(sql[0])
    return d.cast(f"sign({number})", INTEGER)


def _whole(name: str) -> Spelling:
    def spell(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
        if args[0].type.kind is Kind.INTEGER:
            return sql[0]
        if result.type.kind is Kind.DECIMAL:
            return f"{name}({sql[0]})"
        return f"{name}({as_type(d, sql[0], args[0], DOUBLE)})"

    return spell


def _round(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    """Halves away from zero: as numeric is rounded, and as a DOUBLE is not."""
    if args[0].type.kind is Kind.INTEGER:
        return sql[0]
    kept = places(args)
    if result.type.kind is Kind.DECIMAL:
        return sql[0] if kept >= args[0].type.scale else f"round({sql[0]}, {kept})"
    x = as_type(d, sql[0], args[0], DOUBLE)
    if not kept:
        return half_away(x)
    power = 10.0**kept
    ends = f"BETWEEN {d.constant(-1e290, DOUBLE)} AND {d.constant(1e290, DOUBLE)}"
    scaled = d.constant(power, DOUBLE)
    return once(x, lambda x: f"CASE WHEN {x} {ends} THEN {half_away(f'{x} * {scaled}')} / {scaled} ELSE {x} END")


def _real(name: str, where: str = "") -> Spelling:
    """A function of one DOUBLE. where: the condition (on `{x}`) under which it is defined; elsewhere it is NULL."""

    def spell(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
        x = as_type(d, sql[0], args[0], DOUBLE)
        if not where:
            return f"{name}({x})"
        return once(x, lambda x: f"{name}(CASE WHEN {where.format(x=x)} THEN {x} END)")

    return spell


def _where_finite(name: str) -> Spelling:
    def spell(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
        x = as_type(d, sql[0], args[0], DOUBLE)
        return once(x, lambda x: f"{name}(CASE WHEN {d.is_finite(x)} THEN {x} END)")

    return spell


def _log(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    x, base = as_type(d, sql[-1], args[-1], DOUBLE), log_base(args)
    x = once(x, lambda x: f"CASE WHEN {x} > 0 THEN {x} END")
    return f"log({x})" if base == 10 else f"(ln({x}) / ln({d.constant(float(base), DOUBLE)}))"


def _exp(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    x = as_type(d, sql[0], args[0], DOUBLE)
    high, low = last(lambda x: _power(math.e, x, math.exp) < math.inf), -last(lambda x: math.exp(-x) > 0)
    return once(x, lambda x: f"CASE WHEN {x} < {d.constant(low, DOUBLE)} THEN {d.constant(0.0, DOUBLE)} "
                             f"WHEN {x} <= {d.constant(high, DOUBLE)} THEN exp({x}) "
                             f"ELSE {x} + {d.constant(math.inf, DOUBLE)} END")  # fmt: skip


def _power(base: float, exponent: float, f: Callable[[float], float]) -> float:
    try:
        return f(exponent)
    except OverflowError:
        return math.inf


def _pow(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    """Of a whole constant exponent: |x|^k rises or falls with |x|, so the last x with an ordinary result is found."""
    k = _number(args[1])
    if k is None or not k.is_integer() or abs(k) > 2**53:
        raise CannotSpell("the exponent must be a whole constant")
    x, k = as_type(d, sql[0], args[0], DOUBLE), int(k)
    if k == 0:
        return once(x, lambda x: f"CASE WHEN {x} IS NOT NULL THEN {d.constant(1.0, DOUBLE)} END")
    if k == 1:
        return x
    if k < 0:
        raise CannotSpell("the exponent must not be negative")
    high = last(lambda x: _power(x, k, lambda k: math.pow(x, k)) < math.inf)
    low = last(lambda x: math.pow(min(x, 1.0), k) == 0)

    def body(x: str) -> str:
        size = x if k % 2 else f"abs({x})"
        return (
            f"CASE WHEN abs({x}) <= {d.constant(low, DOUBLE)} THEN {size} * 0 "
            f"WHEN abs({x}) <= {d.constant(high, DOUBLE)} THEN power({x}, {d.constant(float(k), DOUBLE)}) "
            f"ELSE {size} * {d.constant(math.inf, DOUBLE)} END"
        )

    return once(x, body)


def _multiplied(factor: float) -> Spelling:
    return lambda d, sql, args, result: times_constant(d, as_type(d, sql[0], args[0], DOUBLE), factor)


# --- lists and octaves ------------------------------------------------------------------------------------------------


def _list_of(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    if result.type.item is not None and result.type.item.kind is Kind.LIST:
        raise CannotSpell("a list of lists would be one table of their elements")
    missing = " OR ".join(f"{x} IS NULL" for x in sql)
    made = d.cast(f"ARRAY[{', '.join(sql)}]", result.type)
    return f"CASE WHEN {missing} THEN NULL ELSE {made} END"


def _list_contains(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    def body(x: list[str]) -> str:
        held, value = x
        asked = f"{held} IS NOT NULL AND ({value} IS NOT NULL OR cardinality({held}) = 0)"
        return f"CASE WHEN {asked} THEN COALESCE({value} = ANY({held}), FALSE) END"

    return bound(list(sql), body)


def _octave(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    """The bits of |x| - 1. Every part is total by itself: |x| is taken of what is neither NULL nor beyond 2^62."""
    type_ = HUGEINT if args[0].type in (HUGEINT, UBIGINT) else BIGINT
    end = d.cast(str(2**LAST), type_)

    def body(x: str) -> str:
        less = d.cast(f"abs({d.least(d.greatest(f'COALESCE({x}, 0)', f'-{end}'), end)}) - 1", BIGINT)
        bits = f"length(ltrim(CAST(CAST({less} AS bit(64)) AS text), '0'))"
        return f"CASE WHEN {x} <> 0 THEN CASE WHEN {less} > 0 THEN {bits} ELSE 0 END END"

    return d.cast(once(d.cast(sql[0], type_), body), INTEGER)


def _signed_octave(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    sign = f"CASE WHEN {sql[0]} < 0 THEN -1 ELSE 1 END"
    return d.cast(f"CASE WHEN {sql[0]} = 0 THEN 0 ELSE ({_octave(d, sql, args, result)} + 1) * {sign} END", INTEGER)


def _nullif(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    """PostgreSQL's own would give the type of both sides."""
    if args[0].type == args[1].type:
        return ALIKE["nullif"](d, sql, args, result)
    return bound(list(sql), lambda x: f"CASE WHEN {ALIKE['eq'](d, x, args, result)} THEN NULL ELSE {x[0]} END")


FUNCTIONS: Mapping[str, Spelling] = {
    **ALIKE,
    **TEXTS,
    **DATES,
    "add": _dated_or_linear("+"),
    "sub": _dated_or_linear("-"),
    "mul": _mul,
    "div": _div,
    "intdiv": _intdiv,
    "mod": _mod,
    "neg": _neg,
    "bits_xor": bits("({a} # {b})"),
    "isnan": _of_double(lambda d, sql: d.is_nan(sql)),
    "isinf": _of_double(_is_infinite),
    "isfinite": _of_double(lambda d, sql: d.is_finite(sql)),
    "abs": _abs,
    "sign": _sign,
    "floor": _whole("floor"),
    "ceil": _whole("ceil"),
    "trunc": _whole("trunc"),
    "round": _round,
    "sqrt": _real("sqrt", "{x} >= 0"),
    "cbrt": _real("cbrt"),
    "ln": _real("ln", "{x} > 0"),
    "log10": _real("log", "{x} > 0"),
    "log": _log,
    "exp": _exp,
    "pow": _pow,
    "sin": _where_finite("sin"),
    "cos": _where_finite("cos"),
    "tan": _where_finite("tan"),
    "asin": _real("asin", "{x} BETWEEN -1 AND 1"),
    "acos": _real("acos", "{x} BETWEEN -1 AND 1"),
    "atan": _real("atan"),
    "radians": _multiplied(math.pi / 180),
    "degrees": _multiplied(180 / math.pi),
    "nullif": _nullif,
    "list_of": _list_of,
    "list_length": lambda d, sql, args, result: d.list_length(sql[0]),
    "list_contains": _list_contains,
    "octave": _octave,
    "signed_octave": _signed_octave,
}
"""By the first name of the function: `functions/registry.py`."""

POSTGRES = Postgres(FUNCTIONS)

LIMITS: Mapping[str, str] = {
    "mod": "not of DOUBLEs",
    "pow": "y a whole constant from 0 on",
    "add": "no constant step back beyond 4713 BC",
    "sub": "no constant step back beyond 4713 BC",
    "date_add": "no constant step back beyond 4713 BC",
    "date_shift": "not back beyond 4713 BC",
    "date_sub": "units up to a week",
    "time_bucket": "parts of up to 285 years",
    "substring": "start known to be at least 1, length at least 0",
}
"""Which calls of a function that is spelled are refused nevertheless."""
