"""Which printed calls DuckDB puts into a TRY: all but those that no value of their arguments' types makes fail.

*Claim.* No row makes a printed expression fail, and of two calls the failure of one does not touch the other. *Why.* A
call stands in a TRY of its own unless it is in the tables below; AND, OR, NOT, CASE and COALESCE stand outside. What is
in a table is total for the types of its arguments, and nothing that is believed of values takes part: of integers the
types of columns, constants and exact operators. *When it would be false.* An entry that fails for some value; a cast
that the engine makes by itself, which is no TRY_CAST; memory. What TRY does not catch, a LIKE whose pattern ends with
its escape, is refused: patterns are literals. *Tested by* tests/core/printing/test_attempts.py,
tests/deep/functions/test_hostile_failures.py.

A TRY hides a comparison from the statistics of row groups, and costs 1.03 to 1.11 of a sum, a filter or a key, but 16
times a sum of which one row in a hundred fails (DuckDB 2.0.1, 2 M rows, measured): so what is total stays bare, and
spellings keep their guards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from dpsql.core.ir.types import DATE, TIME, TIMESTAMP, Kind, SqlType
from dpsql.core.numbers import interval as iv
from dpsql.core.numbers.interval import Interval
from dpsql.core.printing.expressions import EXACTLY
from dpsql.core.values.value import Args, Value, type_range

Total = Callable[[Args, Sequence[Interval], Value], bool]
"""Whether no value of these arguments makes a call fail; the intervals are those of `Dialect.attempt`."""


def _always(args: Args, held: Sequence[Interval], result: Value) -> bool:
    return True


def _doubles(args: Args, held: Sequence[Interval], result: Value) -> bool:
    """By ieee_floating_point_ops, which every connection of ours sets."""
    return result.type.kind is Kind.DOUBLE


def _fits(made: Callable[[Sequence[Interval]], Interval]) -> Total:
    """An integer result holds all that the operator can give; what the operator reads is cast to its type."""
    return lambda args, held, result: result.type.kind is Kind.INTEGER and made(held).within(type_range(result.type))


def _either(*rules: Total) -> Total:
    return lambda args, held, result: any(rule(args, held, result) for rule in rules)


def _sum_of_decimals(args: Args, held: Sequence[Interval], result: Value) -> bool:
    """Both are cast to the result's type, and the sum has a digit more."""
    return result.type.kind is Kind.DECIMAL and result.type.precision < 38


def _product_of_decimals(args: Args, held: Sequence[Interval], result: Value) -> bool:
    """In 64 bits, or as forced by the spelling in 128."""
    digits = sum(a.type.precision if a.type.kind is Kind.DECIMAL else 99 for a in args)
    return result.type.kind is Kind.DECIMAL and digits <= (18 if result.type.precision <= 18 else 38)


def _negated(held: Sequence[Interval]) -> Interval:
    return iv.hull(held[0], iv.neg(held[0]))


def _remainder(args: Args, held: Sequence[Interval], result: Value) -> bool:
    return result.type.kind in (Kind.INTEGER, Kind.DOUBLE)


def _plain_numbers(args: Args, held: Sequence[Interval], result: Value) -> bool:
    return result.type.kind in (Kind.INTEGER, Kind.DOUBLE) and len(args) == 1


def _texts(args: Args, held: Sequence[Interval], result: Value) -> bool:
    return all(a.type.kind is Kind.VARCHAR for a in args)


def _text_and_constants(args: Args, held: Sequence[Interval], result: Value) -> bool:
    return args[0].type.kind is Kind.VARCHAR and all(a.is_constant for a in args[1:])


def _without_escape(args: Args, held: Sequence[Interval], result: Value) -> bool:
    return len(args) == 2


def _digits(integer: SqlType) -> int:
    """Of the largest number."""
    hi = type_range(integer).hi
    assert hi is not None
    return len(str(int(hi)))


def _clipped(args: Args, held: Sequence[Interval], result: Value) -> bool:
    """It compares with ends of the result's type: the engine widens a number of another scale, which may not fit."""
    given, found = args[0].type, result.type
    if found.kind is not Kind.DECIMAL:
        return True
    return given.scale == found.scale if given.kind is Kind.DECIMAL else _digits(given) + found.scale <= 38


OF_DAYS = frozenset({
    "year", "month", "day", "quarter", "week", "isoyear", "dayofweek", "isodow", "dayofyear", "decade", "century"
})  # fmt: skip
TIMED = frozenset({"hour", "minute", "second", "millisecond", "microsecond"})
"""Parts of dates and of times of day, by the names of their functions."""
PARTS = OF_DAYS | TIMED | {"dayofmonth", "weekofyear", "dow", "weekday", "doy"}
"""With other names of the same parts, each of days."""


def _part(name: str) -> Total:
    types = (TIMESTAMP, TIME) if name in TIMED else (DATE, TIMESTAMP)
    return lambda args, held, result: args[-1].type in types


def _named_part(args: Args, held: Sequence[Interval], result: Value) -> bool:
    name = str(args[0].constant).lower()
    name = name if name in PARTS else name.removesuffix("s")
    return name in PARTS and _part(name)(args, held, result)


TOTAL: Mapping[str, Total] = {
    **dict.fromkeys(
        (
            # What they choose among or compare has one type, by a cast of the spelling that gives NULL.
            "eq", "ne", "lt", "le", "gt", "ge", "is_distinct_from", "is_not_distinct_from", "in", "and", "or", "not",
            "is_null", "is_not_null", "is_true", "is_not_true", "is_false", "is_not_false", "case", "if", "coalesce",
            "ifnull", "nullif", "greatest", "least", "bits_and", "bits_or", "bits_xor",
            # Of one DOUBLE, where it is defined: the spelling looks.
            "isnan", "isinf", "isfinite", "sign", "sqrt", "cbrt", "ln", "log10", "log2", "log", "exp", "pow", "sin",
            "cos", "tan", "asin", "acos", "atan", "radians", "degrees", "octave", "signed_octave",
        ),
        _always,
    ),
    "clip": _clipped,
    "add": _either(_doubles, _fits(EXACTLY["add"]), _sum_of_decimals),
    "sub": _either(_doubles, _fits(EXACTLY["sub"]), _sum_of_decimals),
    "mul": _either(_doubles, _fits(EXACTLY["mul"]), _product_of_decimals),
    "neg": _either(_doubles, _fits(EXACTLY["neg"])),
    "abs": _either(_doubles, _fits(_negated)),
    "div": _doubles,
    "intdiv": _either(_doubles, _fits(_negated)),
    "mod": _remainder,
    **dict.fromkeys(("floor", "ceil", "trunc", "round"), _plain_numbers),
    **dict.fromkeys(
        (
            "lower", "upper", "trim", "ltrim", "rtrim", "starts_with", "ends_with", "contains", "concat_op", "length",
            "strlen", "ascii", "unicode", "strpos",
        ),
        _texts,
    ),
    **dict.fromkeys(("left", "right", "substring"), _text_and_constants),
    "like": _without_escape,
    "ilike": _without_escape,
    **{name: _part(name) for name in OF_DAYS | TIMED},
    "date_part": _named_part,
}  # fmt: skip
"""By the first name of the function. What is not here can fail."""

CASTS: Mapping[Kind, frozenset[Kind]] = {
    **dict.fromkeys(
        (Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE, Kind.BOOLEAN),
        frozenset({Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE, Kind.BOOLEAN, Kind.VARCHAR}),
    ),
    Kind.VARCHAR: frozenset({
        Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE, Kind.BOOLEAN, Kind.VARCHAR, Kind.DATE, Kind.TIMESTAMP
    }),
    Kind.DATE: frozenset({Kind.TIMESTAMP, Kind.VARCHAR}),
    Kind.TIMESTAMP: frozenset({Kind.DATE, Kind.VARCHAR}),
}  # fmt: skip
"""From where to where a TRY_CAST is known to fail for no value."""


def attempted(sql: str, function: str, args: Args, held: Sequence[Interval], result: Value) -> str:
    """See `Dialect.attempt`."""
    total = TOTAL.get(function)
    return sql if total is not None and total(args, held, result) else f"TRY{sql}"


def attempted_cast(sql: str, source: SqlType, target: SqlType) -> str:
    """A TRY_CAST, as it is or in a TRY."""
    return sql if target.kind in CASTS.get(source.kind, ()) else f"TRY({sql})"
