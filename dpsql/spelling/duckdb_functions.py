"""How DuckDB spells the functions of numbers, conditions and choices; those of texts and dates lie in a file beside.

A spelling holds the guards that make it total; what it may say NULL of is the function's own rule (`dpsql/functions`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dpsql.core.ir.types import BIGINT, DOUBLE, HUGEINT, INTEGER, UBIGINT, Kind, decimal
from dpsql.core.numbers.interval import outward
from dpsql.core.printing.conversions import as_type
from dpsql.core.printing.dialect import Dialect, Spelling
from dpsql.core.printing.dialects.duckdb import DuckDB, tried
from dpsql.core.values.value import Args, Value, stored
from dpsql.functions.dates.date_arithmetic import is_dated
from dpsql.functions.domains.octaves import LAST
from dpsql.functions.numbers.arithmetic import may_be_zero
from dpsql.functions.numbers.real_functions import log_base
from dpsql.functions.numbers.rounding import places
from dpsql.functions.signature import decimal_for
from dpsql.spelling.alike import ALIKE, bits, each
from dpsql.spelling.duckdb_texts_and_dates import TEXTS_AND_DATES, shifted

# --- operators --------------------------------------------------------------------------------------------------------


def _linear(operator: str) -> Spelling:
    def spell(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
        a, b = each(d, sql, args, result.type)
        out = f"({a} {operator} {b})"
        return tried(out, result.type) if result.type.kind is Kind.DECIMAL else out

    return spell


def _dated_or_linear(operator: str) -> Spelling:
    """Date arithmetic where an argument is a date, else numbers."""
    dates, numbers = shifted(operator), _linear(operator)
    return lambda d, sql, args, result: (dates if is_dated(args) else numbers)(d, sql, args, result)


def _mul(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    if result.type.kind is not Kind.DECIMAL:
        return _linear("*")(d, sql, args, result)
    narrow = [decimal_for(stored(a), a.type.scale) or a.type for a in args]
    if result.type.precision > 18 and all(t.precision <= 18 for t in narrow):
        # Two factors of at most 18 digits are multiplied in 64 bits, whatever the product needs: force 128.
        narrow[0] = decimal(19, narrow[0].scale)
    a, b = (as_type(d, s, x, t) for s, x, t in zip(sql, args, narrow, strict=True))
    return tried(f"{a} * {b}", result.type)


def _divided(operator: str) -> Spelling:
    def spell(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
        a, b = each(d, sql, args, result.type)
        # Whatever is known of it: an interval may come from DOUBLEs, which rounding carries beyond it, and a zero would
        # make the query fail for the rows that have one.
        if not args[1].is_constant or may_be_zero(args[1]):
            b = f"NULLIF({b}, 0)"
        if operator == "//" and result.type.kind is Kind.DOUBLE:
            return f"trunc({a} / {b})"
        out = f"({a} {operator} {b})"
        return tried(out, result.type) if result.type.kind is Kind.DECIMAL else out

    return spell


def _neg(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    return f"(- {as_type(d, sql[0], args[0], result.type)})"


# --- comparison and choice ------------------------------------------------------------------------------------------


def _of_double(name: str) -> Spelling:
    return lambda d, sql, args, result: f"{name}({d.cast(sql[0], DOUBLE)})"


def _list_of(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    missing = " OR ".join(f"{x} IS NULL" for x in sql)
    return f"CASE WHEN {missing} THEN NULL ELSE [{', '.join(sql)}] END"


def _octave(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    """The bits of |x| - 1. Every part is total by itself: |x| is taken of what is neither NULL nor beyond 2^62."""
    type_ = HUGEINT if args[0].type in (HUGEINT, UBIGINT) else BIGINT
    x, end = d.cast(sql[0], type_), d.cast(str(2**LAST), type_)
    less = d.cast(f"abs({d.least(d.greatest(f'COALESCE({x}, 0)', f'-{end}'), end)}) - 1", BIGINT)
    return d.cast(f"CASE WHEN {x} <> 0 THEN CASE WHEN {less} > 0 THEN length(bin({less})) ELSE 0 END END", INTEGER)


def _signed_octave(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    sign = f"CASE WHEN {sql[0]} < 0 THEN -1 ELSE 1 END"
    return d.cast(f"CASE WHEN {sql[0]} = 0 THEN 0 ELSE ({_octave(d, sql, args, result)} + 1) * {sign} END", INTEGER)


# --- numbers ----------------------------------------------------------------------------------------------------------


def _abs(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    return f"abs({as_type(d, sql[0], args[0], result.type)})"


def _sign(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    return d.cast(f"sign({sql[0]})", INTEGER)


def _rounded(name: str) -> Spelling:
    def spell(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
        t = args[0].type
        if t.kind is Kind.INTEGER:
            return sql[0]
        kept = f", {places(args)}" if len(args) > 1 else ""
        if result.type.kind is Kind.DECIMAL:
            if len(args) > 1 and places(args) >= t.scale:
                return as_type(d, sql[0], args[0], result.type)
            wide = decimal_for(outward(stored(args[0]), 0), t.scale)
            assert wide is not None
            return tried(f"{name}({as_type(d, sql[0], args[0], wide)}{kept})", result.type)
        return f"{name}({as_type(d, sql[0], args[0], DOUBLE)}{kept})"

    return spell


def _real(name: str, where: str = "") -> Spelling:
    """A function of one DOUBLE. where: the condition (on `{x}`) under which it is defined; elsewhere it is NULL."""

    def spell(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
        x = as_type(d, sql[0], args[0], DOUBLE)
        if where:
            x = f"CASE WHEN {where.format(x=x)} THEN {x} END"
        return f"{name}({x})"

    return spell


def _log(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    x = as_type(d, sql[-1], args[-1], DOUBLE)
    x = f"CASE WHEN {x} > 0 THEN {x} END"
    return f"log10({x})" if log_base(args) == 10 else f"(ln({x}) / ln({log_base(args)}))"


def _pow(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    return f"pow({as_type(d, sql[0], args[0], DOUBLE)}, {as_type(d, sql[1], args[1], DOUBLE)})"


_POSITIVE, _UNIT, _FINITE = "{x} > 0", "{x} BETWEEN -1 AND 1", "isfinite({x})"

FUNCTIONS: Mapping[str, Spelling] = {
    "add": _dated_or_linear("+"),
    "sub": _dated_or_linear("-"),
    "mul": _mul,
    "div": _divided("/"),
    "intdiv": _divided("//"),
    "mod": _divided("%"),
    "neg": _neg,
    "bits_xor": bits("xor({a}, {b})"),
    "isnan": _of_double("isnan"),
    "isinf": _of_double("isinf"),
    "isfinite": _of_double("isfinite"),
    "abs": _abs,
    "sign": _sign,
    "floor": _rounded("floor"),
    "ceil": _rounded("ceil"),
    "trunc": _rounded("trunc"),
    "round": _rounded("round"),
    "sqrt": _real("sqrt", "{x} >= 0"),
    "cbrt": _real("cbrt"),
    "ln": _real("ln", _POSITIVE),
    "log10": _real("log10", _POSITIVE),
    "log2": _real("log2", _POSITIVE),
    "log": _log,
    "exp": _real("exp"),
    "pow": _pow,
    "sin": _real("sin", _FINITE),
    "cos": _real("cos", _FINITE),
    "tan": _real("tan", _FINITE),
    "asin": _real("asin", _UNIT),
    "acos": _real("acos", _UNIT),
    "atan": _real("atan"),
    "radians": _real("radians"),
    "degrees": _real("degrees"),
    "list_of": _list_of,
    "list_length": lambda d, sql, args, result: d.cast(f"len({sql[0]})", result.type),
    "list_contains": lambda d, sql, args, result: f"list_contains({sql[0]}, {sql[1]})",
    "octave": _octave,
    "signed_octave": _signed_octave,
    **ALIKE,
    **TEXTS_AND_DATES,
}
"""By the first name of the function: `functions/registry.py`."""

DUCKDB = DuckDB(FUNCTIONS)
