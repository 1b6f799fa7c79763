"""How Spark spells the functions of numbers; those of texts and of dates lie in files beside.

What has no spelling here is refused by name. Of a DOUBLE it has a FLOOR of 64 bits only, and its logarithms and powers
round their last digit otherwise than the C library does.

*Claim.* No row makes a printed expression fail. *Why.* In ANSI mode Spark raises an error where a result is out of
range: integers are added, subtracted, multiplied and divided by try_add and its like unless the types of columns,
constants and exact operators say that the result fits; all other spellings hold guards, which rest on types alone
(`Dialect.believes`). *When it would be false.* A spelling that fails for some value of its arguments' types: Spark has
no TRY that would catch it. *Tested by* tests/engines_elsewhere/spark/test_hostile_failures.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from dpsql.core.ir.types import BIGINT, DOUBLE, HUGEINT, UBIGINT, Kind, SqlType
from dpsql.core.numbers import interval as iv
from dpsql.core.numbers.interval import Interval
from dpsql.core.printing.conversions import as_type
from dpsql.core.printing.dialect import CannotSpell, Dialect, Spelling
from dpsql.core.printing.dialects.duckdb_total import TOTAL
from dpsql.core.printing.dialects.spark import Spark
from dpsql.core.printing.dialects.spark_casts import LARGEST, bound, half_away, once, tried
from dpsql.core.values.value import Args, Value, stored
from dpsql.functions.dates.date_arithmetic import is_dated
from dpsql.functions.domains.octaves import LAST
from dpsql.functions.numbers.arithmetic import may_be_zero
from dpsql.functions.numbers.rounding import places
from dpsql.functions.signature import decimal_for
from dpsql.spelling.alike import ALIKE, bits, each
from dpsql.spelling.spark_dates import DATES, shifted
from dpsql.spelling.spark_texts import TEXTS

# --- operators --------------------------------------------------------------------------------------------------------


def _linear(operator: str, careful: str) -> Spelling:
    """careful: the function that gives NULL where 38 digits do not hold the result."""

    def spell(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
        if result.type == HUGEINT and not stored(result).within(iv.interval(-LARGEST, LARGEST)):
            raise CannotSpell("the result may need more than 38 digits")
        a, b = each(d, sql, args, result.type)
        if result.type.kind is Kind.DECIMAL:
            return tried(f"{careful}({a}, {b})", result.type)
        return f"({a} {operator} {b})"

    return spell


def _dated_or_linear(operator: str, careful: str) -> Spelling:
    """Date arithmetic where an argument is a date, else numbers."""
    dates, numbers = shifted(operator), _linear(operator, careful)
    return lambda d, sql, args, result: (dates if is_dated(args) else numbers)(d, sql, args, result)


def _mul(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    if result.type.kind is not Kind.DECIMAL:
        return _linear("*", "")(d, sql, args, result)
    narrow = [decimal_for(stored(a), a.type.scale) or a.type for a in args]
    a, b = (as_type(d, s, x, t) for s, x, t in zip(sql, args, narrow, strict=True))
    return tried(f"try_multiply({a}, {b})", result.type)


def _nonzero(d: Dialect, sql: str, a: Value, type_: SqlType) -> str:
    """A divisor of a type; NULL in place of 0, whatever is known of it."""
    return f"NULLIF({sql}, {d.cast('0', type_)})" if not a.is_constant or may_be_zero(a) else sql


def _div(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    a, b = each(d, sql, args, result.type)
    return f"({a} / {_nonzero(d, b, args[1], result.type)})"


def _intdiv(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    """Of all numbers Spark's `div` gives a BIGINT, into which it wraps silently what does not fit."""
    a, b = each(d, sql, args, result.type)
    b = _nonzero(d, b, args[1], result.type)
    if result.type.kind is Kind.DOUBLE:
        return _trunc(f"({a} / {b})")
    if result.type == HUGEINT:
        raise CannotSpell("the quotient may need more than 64 bits")
    return d.cast(f"{a} div {b}", result.type)


def _mod(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    a, b = each(d, sql, args, result.type)
    out = f"({a} % {_nonzero(d, b, args[1], result.type)})"
    return tried(out, result.type) if result.type.kind is Kind.DECIMAL else out


def _neg(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    x = as_type(d, sql[0], args[0], result.type)
    return _minus(d, x, result.type) if _is_decimal(result.type) else f"(- {x})"


def _minus(d: Dialect, sql: str, type_: SqlType) -> str:
    """The negative of a DECIMAL. Spark's own minus and ABS round it to 34 digits, silently."""
    return d.cast(f"({d.cast('0', type_)} - {sql})", type_)


def _is_decimal(type_: SqlType) -> bool:
    """Whether Spark computes with DECIMALs of it."""
    return type_.kind is Kind.DECIMAL or type_ == HUGEINT


# --- numbers ----------------------------------------------------------------------------------------------------------


def _of_double(test: Callable[[Dialect, str], str]) -> Spelling:
    return lambda d, sql, args, result: test(d, d.cast(sql[0], DOUBLE))


def _is_infinite(d: Dialect, sql: str) -> str:
    return f"(abs({sql}) = {d.constant(math.inf, DOUBLE)})"


def _abs(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    x, t = as_type(d, sql[0], args[0], result.type), result.type
    if not _is_decimal(t):
        return f"abs({x})"
    return once(x, lambda x: f"CASE WHEN {x} < {d.cast('0', t)} THEN {_minus(d, x, t)} ELSE {x} END")


def _sign(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    """0 for NaN, which is above every number."""
    t = DOUBLE if args[0].type.kind is Kind.DOUBLE else args[0].type
    x, zero = as_type(d, sql[0], args[0], t), d.cast("0", t)
    nan = f"WHEN {d.is_nan(x)} THEN 0 " if t == DOUBLE else ""
    return f"CASE {nan}WHEN {x} > {zero} THEN 1 WHEN {x} < {zero} THEN -1 WHEN {x} = {zero} THEN 0 END"


def _floor(sql: str) -> str:
    """A whole DOUBLE; Spark's own would be a BIGINT. NaN and infinities stay, and so does the sign of zero."""
    return once(sql, "CASE WHEN rint({0}) > {0} THEN rint({0}) - 1 ELSE rint({0}) END".format)


def _trunc(sql: str) -> str:
    return once(sql, lambda x: f"(signum({x}) * {_floor(f'abs({x})')})")


_WHOLE: Mapping[str, Callable[[str], str]] = {
    "floor": _floor,
    "ceil": lambda sql: f"(- {_floor(f'(- {sql})')})",
    "trunc": _trunc,
}


def _whole(name: str) -> Spelling:
    def spell(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
        t = args[0].type
        if t.kind is Kind.INTEGER:
            return sql[0]
        if result.type.kind is not Kind.DECIMAL:
            return _WHOLE[name](as_type(d, sql[0], args[0], DOUBLE))
        if name != "trunc":
            return tried(f"{name}({sql[0]})", result.type)
        zero = d.cast("0", t)  # of its type: beside another one it would lose its places
        return tried(
            once(sql[0], f"CASE WHEN {{0}} < {zero} THEN ceil({{0}}) ELSE floor({{0}}) END".format), result.type
        )

    return spell


def _round(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    """Halves away from zero: as a DECIMAL is rounded; of a DOUBLE Spark would round the shortest text."""
    if args[0].type.kind is Kind.INTEGER:
        return sql[0]
    kept = places(args)
    if result.type.kind is Kind.DECIMAL:
        if kept >= args[0].type.scale:
            return as_type(d, sql[0], args[0], result.type)
        return tried(f"round({sql[0]}, {kept})", result.type)
    x = as_type(d, sql[0], args[0], DOUBLE)
    if not kept:
        return half_away(x)
    power = d.constant(10.0**kept, DOUBLE)

    def body(x: str) -> str:
        found = f"({half_away(f'({x} * {power})')} / {power})"
        return f"CASE WHEN {d.is_finite(f'({x} * {power})')} THEN {found} ELSE {x} END"

    return once(x, body)


def _sqrt(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    x = as_type(d, sql[0], args[0], DOUBLE)
    return once(x, lambda x: f"sqrt(CASE WHEN {x} >= 0 THEN {x} END)")


def _multiplied(factor: float) -> Spelling:
    return lambda d, sql, args, result: f"({as_type(d, sql[0], args[0], DOUBLE)} * {d.constant(factor, DOUBLE)})"


# --- lists and octaves ------------------------------------------------------------------------------------------------


def _list_of(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    missing = " OR ".join(f"{x} IS NULL" for x in sql)
    made = d.cast(f"array({', '.join(sql)})", result.type)
    return f"CASE WHEN {missing} THEN NULL ELSE {made} END"


def _list_contains(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    def body(x: list[str]) -> str:
        held, value = x
        asked = f"{held} IS NOT NULL AND ({value} IS NOT NULL OR array_size({held}) = 0)"
        return f"CASE WHEN {asked} THEN COALESCE(array_contains({held}, {value}), FALSE) END"

    return bound(list(sql), body)


def _octave(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    """The bits of |x| - 1. Every part is total by itself: |x| is taken of what is neither NULL nor beyond 2^62."""
    type_ = HUGEINT if args[0].type in (HUGEINT, UBIGINT) else BIGINT
    end = d.cast(str(2**LAST), type_)

    def body(x: str) -> str:
        less = d.cast(f"abs({d.least(d.greatest(f'COALESCE({x}, 0)', f'-{end}'), end)}) - 1", BIGINT)
        return f"CASE WHEN {x} <> 0 THEN CASE WHEN {less} > 0 THEN length(bin({less})) ELSE 0 END END"

    return once(d.cast(sql[0], type_), body)


def _signed_octave(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    sign = f"CASE WHEN {sql[0]} < 0 THEN -1 ELSE 1 END"
    return f"CASE WHEN {sql[0]} = 0 THEN 0 ELSE ({_octave(d, sql, args, result)} + 1) * {sign} END"


def _greatest(name: str) -> Spelling:
    return lambda d, sql, args, result: (
        ALIKE[name](d, sql, args, result) if len(args) > 1 else as_type(d, sql[0], args[0], result.type)
    )


# --- integers that may not fit ----------------------------------------------------------------------------------------


def _careful(name: str) -> Spelling:
    return lambda d, sql, args, result: f"{name}({', '.join(each(d, sql, args, result.type))})"


def _negative(d: Dialect, x: str, result: Value) -> str:
    return f"try_subtract({d.cast('0', result.type)}, {x})"


def _careful_neg(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    return _negative(d, as_type(d, sql[0], args[0], result.type), result)


def _careful_abs(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    x = as_type(d, sql[0], args[0], result.type)
    return once(x, lambda x: f"CASE WHEN {x} < 0 THEN {_negative(d, x, result)} ELSE {x} END")


def _careful_intdiv(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    """A BIGINT divided by -1 is its negative, or does not fit."""

    def body(x: list[str]) -> str:
        a, b = x
        whole = tried(f"{a} div NULLIF({b}, 0)", result.type)
        return f"CASE WHEN {b} = -1 THEN {_negative(d, a, result)} ELSE {whole} END"

    return bound(each(d, sql, args, result.type), body)


CAREFUL: Mapping[str, Spelling] = {
    "add": _careful("try_add"),
    "sub": _careful("try_subtract"),
    "mul": _careful("try_multiply"),
    "neg": _careful_neg,
    "abs": _careful_abs,
    "intdiv": _careful_intdiv,
}
"""By the first name of the function: how it is spelled where an integer may not fit."""


def attempted(
    d: Dialect, sql: str, function: str, parts: Sequence[str], args: Args, held: Sequence[Interval], result: Value
) -> str:
    """See `Dialect.attempt`."""
    careful = CAREFUL.get(function)
    if careful is None or result.type.kind is not Kind.INTEGER or is_dated(args):
        return sql
    if result.type != HUGEINT and TOTAL[function](args, held, result):
        return sql
    return f"({careful(d, parts, args, result)})"


FUNCTIONS: Mapping[str, Spelling] = {
    **ALIKE,
    **TEXTS,
    **DATES,
    "add": _dated_or_linear("+", "try_add"),
    "sub": _dated_or_linear("-", "try_subtract"),
    "mul": _mul,
    "div": _div,
    "intdiv": _intdiv,
    "mod": _mod,
    "neg": _neg,
    "bits_xor": bits("({a} ^ {b})"),
    "isnan": _of_double(lambda d, sql: d.is_nan(sql)),
    "isinf": _of_double(_is_infinite),
    "isfinite": _of_double(lambda d, sql: d.is_finite(sql)),
    "greatest": _greatest("greatest"),
    "least": _greatest("least"),
    "abs": _abs,
    "sign": _sign,
    "floor": _whole("floor"),
    "ceil": _whole("ceil"),
    "trunc": _whole("trunc"),
    "round": _round,
    "sqrt": _sqrt,
    "radians": _multiplied(math.pi / 180),
    "degrees": _multiplied(180 / math.pi),
    "list_of": _list_of,
    "list_length": lambda d, sql, args, result: d.list_length(sql[0]),
    "list_contains": _list_contains,
    "octave": _octave,
    "signed_octave": _signed_octave,
}
"""By the first name of the function: `functions/registry.py`."""

SPARK = Spark(FUNCTIONS, attempted)

LIMITS: Mapping[str, str] = {
    "intdiv": "of integers known to have at most 64 bits",
    "date_sub": "units up to a week",
    "substring": "start known to be at least 1, length at least 0",
}
"""Which calls of a function that is spelled are refused nevertheless."""
