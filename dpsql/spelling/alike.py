"""Functions that several dialects spell alike, with casts and constants of their own: comparisons, choices, texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, localcontext

from dpsql.core.ir.types import DOUBLE, INTEGER, VARCHAR, Kind, SqlType
from dpsql.core.numbers.interval import Exact
from dpsql.core.printing.conversions import as_type, known_to
from dpsql.core.printing.dialect import CannotSpell, Dialect, Spelling
from dpsql.core.values.value import Args, Value, is_null, stored
from dpsql.functions.dates.zones import FIRST, LAST
from dpsql.functions.numbers.clipping import clip_bounds
from dpsql.functions.signature import comparison_types
from dpsql.functions.text.concatenation import JOINED
from dpsql.functions.text.strings import FAR, is_near, replace_room


def each(d: Dialect, sql: Sequence[str], args: Args, target: SqlType) -> list[str]:
    """All arguments in one type."""
    return [as_type(d, s, a, target) for s, a in zip(sql, args, strict=True)]


def _sides(d: Dialect, sql: Sequence[str], args: Args) -> list[str]:
    """What is compared in one type, so that DuckDB's own promotion cannot overflow or lose digits."""
    target = comparison_types(args)
    return list(sql) if target is None else each(d, sql, args, target)


def _compared(symbol: str) -> Spelling:
    def spell(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
        a, b = _sides(d, sql, args)
        return f"({a} {symbol} {b})"

    return spell


def _in(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    x, *items = _sides(d, sql, args)
    return f"({x} IN ({', '.join(items)}))"


def _joined(word: str) -> Spelling:
    return lambda d, sql, args, result: f"({f' {word} '.join(sql)})"


def _not(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    return f"(NOT {sql[0]})"


def _tested(words: str) -> Spelling:
    return lambda d, sql, args, result: f"({sql[0]} {words})"


def _case(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    chosen = [as_type(d, sql[i], args[i], result.type) for i in (*range(1, len(sql), 2), len(sql) - 1)]
    arms = " ".join(f"WHEN {when} THEN {then}" for when, then in zip(sql[:-1:2], chosen, strict=False))
    return f"CASE {arms} ELSE {chosen[-1]} END"


def _chosen(name: str) -> Spelling:
    return lambda d, sql, args, result: f"{name}({', '.join(each(d, sql, args, result.type))})"


def _nullif(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    a, b = _sides(d, sql, args)
    if a == sql[0]:
        return f"NULLIF({a}, {b})"
    return f"CASE WHEN {a} = {b} THEN NULL ELSE {sql[0]} END"


def _clip(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    if result.type.temporal:
        x, first, last = sql
        return f"CASE WHEN {x} <= {first} THEN {first} WHEN {x} >= {last} THEN {last} ELSE {x} END"
    lo, hi = clip_bounds(args)
    inside = as_type(d, sql[0], args[0], result.type)
    x = inside if result.type.kind is Kind.DOUBLE else sql[0]
    held = stored(args[0])
    arms = []
    if result.type.kind is Kind.DOUBLE and not args[0].finite:
        arms.append(f"WHEN NOT {d.is_finite(x)} THEN NULL")
    # A bound that no stored value can pass needs no comparison, and may not even fit into the type.
    if held.lo is None or held.lo < lo:
        arms.append(f"WHEN {x} <= {_bound(d, lo, result.type)} THEN {_bound(d, lo, result.type)}")
    if held.hi is None or held.hi > hi:
        arms.append(f"WHEN {x} >= {_bound(d, hi, result.type)} THEN {_bound(d, hi, result.type)}")
    return f"CASE {' '.join(arms)} ELSE {inside} END" if arms else inside


def _bound(d: Dialect, end: Exact, t: SqlType) -> str:
    if t.kind is Kind.DOUBLE:
        return d.cast(f"'{float(end)!r}'", DOUBLE)
    with localcontext(prec=100):  # the default of 28 digits would move the bounds of wide types
        digits = Decimal(end.numerator) / Decimal(end.denominator)
    return d.cast(f"'{digits:f}'", t)


def bits(form: str) -> Spelling:
    """An operator on the bits of two integers, in one type: of `{a}` and `{b}`."""

    def spell(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
        a, b = each(d, sql, args, result.type)
        return form.format(a=a, b=b)

    return spell


# --- texts ------------------------------------------------------------------------------------------------------------


def counted(name: str) -> Spelling:
    """A function whose integer has a type of the engine's own."""
    return lambda d, sql, args, result: d.cast(f"{name}({', '.join(sql)})", result.type)


def _concatenated(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    if any(is_null(a) for a in args):
        return d.cast("NULL", VARCHAR)
    return f"left({' || '.join(sql)}, {JOINED})"


def near(d: Dialect, sql: str, a: Value) -> str:
    """An integer argument as INTEGER, NULL where it is too far from zero for a position in a text."""
    if not is_near(known_to(d, a)):
        sql = d.once(sql, lambda x: f"CASE WHEN {x} BETWEEN {-FAR} AND {FAR} THEN {x} END")
    return d.cast(sql, INTEGER)


def substring(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    """From the first character on. Raises CannotSpell if it may begin before it."""
    for a, least in zip(args[1:], (1, 0), strict=False):
        if not is_null(a) and (a.interval.lo is None or a.interval.lo < least):
            raise CannotSpell("engines count positions before the first character differently; CLIP it to 1 and more")
    return f"substring({', '.join([sql[0], *(near(d, s, a) for s, a in zip(sql[1:], args[1:], strict=True))])})"


def replace(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    """NULL of a text that might become too long."""
    room = replace_room(args)
    if room is None:
        return f"replace({', '.join(sql)})"
    return d.once(sql[0], lambda x: f"CASE WHEN octet_length({x}) <= {room} THEN replace({x}, {sql[1]}, {sql[2]}) END")


ALIKE: Mapping[str, Spelling] = {
    "eq": _compared("="),
    "ne": _compared("<>"),
    "lt": _compared("<"),
    "le": _compared("<="),
    "gt": _compared(">"),
    "ge": _compared(">="),
    "is_distinct_from": _compared("IS DISTINCT FROM"),
    "is_not_distinct_from": _compared("IS NOT DISTINCT FROM"),
    "in": _in,
    "and": _joined("AND"),
    "or": _joined("OR"),
    "not": _not,
    "is_null": _tested("IS NULL"),
    "is_not_null": _tested("IS NOT NULL"),
    "is_true": _tested("IS TRUE"),
    "is_not_true": _tested("IS NOT TRUE"),
    "is_false": _tested("IS FALSE"),
    "is_not_false": _tested("IS NOT FALSE"),
    "case": _case,
    "if": _case,
    "coalesce": _chosen("COALESCE"),
    "ifnull": _chosen("COALESCE"),
    "nullif": _nullif,
    "clip": _clip,
    "bits_and": bits("({a} & {b})"),
    "bits_or": bits("({a} | {b})"),
    "concat_op": _concatenated,
    "greatest": _chosen("greatest"),
    "least": _chosen("least"),
}
"""By the first name of the function."""


def between_zones(d: Dialect, sql: str, a: Value, made: Callable[[str], str]) -> str:
    """What is made of a moment, or of a clock of UTC; NULL near the ends of the calendar, where engines fail."""
    first, last = (end if a.type.kind is Kind.TIMESTAMPTZ else end.replace(tzinfo=None) for end in (FIRST, LAST))
    ends = d.constant(first, a.type), d.constant(last, a.type)
    return d.once(sql, lambda x: f"CASE WHEN {x} BETWEEN {ends[0]} AND {ends[1]} THEN {made(x)} END")
