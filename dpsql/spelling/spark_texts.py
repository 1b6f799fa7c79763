"""How Spark spells the functions of texts.

What Java makes of other letters than a to z rests on its version, so letters of another case are listed, one for one.
There is no spelling of accents, nor of reversed texts, where characters consist of several.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from dpsql.core.ir.types import BOOLEAN, INTEGER
from dpsql.core.printing.dialect import Dialect, Spelling
from dpsql.core.printing.dialects.spark_casts import bound, once
from dpsql.core.values.value import Args, Value, is_null
from dpsql.functions.text.concatenation import JOINED
from dpsql.spelling.alike import counted, near, replace, substring
from dpsql.spelling.letters import in_lower_case, lowered, partners, raised


def _called(name: str) -> Spelling:
    return lambda d, sql, args, result: f"{name}({', '.join(sql)})"


def _trimmed(side: str) -> Spelling:
    def spell(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
        characters = f"{sql[1]} " if len(sql) > 1 else ""
        return f"trim({side} {characters}FROM {sql[0]})"

    return spell


def _end(chosen: str, all_but: str) -> Spelling:
    """The first or last n characters; all but the others if n is negative."""

    def spell(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
        both = f"CASE WHEN {{1}} >= 0 THEN {chosen} ELSE {all_but} END"
        return bound([sql[0], near(d, sql[1], args[1])], lambda x: both.format(*x))

    return spell


def _padded(name: str) -> Spelling:
    return lambda d, sql, args, result: f"{name}({sql[0]}, {d.cast(repr(args[1].constant), INTEGER)}, {sql[2]})"


def _split(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    return f"split_part({sql[0]}, {sql[1]}, {d.cast(repr(args[2].constant), INTEGER)})"


def _cut(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    return f"left(concat_ws({', '.join(sql)}), {JOINED})"


def _concat(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    return _cut(d, ["''", *sql], args, result)  # concat itself would be NULL where a part is


def _like(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    pattern = args[1].constant
    if not isinstance(pattern, str) or any(is_null(a) for a in args):
        return d.cast("NULL", BOOLEAN)
    return _matches(d, sql[0], pattern, args)


def _matches(d: Dialect, sql: str, pattern: str, args: Args) -> str:
    """With the backslash as the escape character, which Spark reads even where none is named."""
    escape = args[2].constant if len(args) > 2 else ""
    found, characters = "", iter(pattern)
    for c in characters:
        literal = c == escape
        if literal:
            c = next(characters)
        found += f"\\{c}" if c == "\\" or (literal and c in "%_") else c
    return f"({sql} LIKE {d.text(found)})"


def _ilike(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    pattern = args[1].constant
    if not isinstance(pattern, str) or any(is_null(a) for a in args):
        return d.cast("NULL", BOOLEAN)
    return _matches(d, _lower(d, sql[:1], args[:1], result), in_lower_case(pattern), args)


def _unicode(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    return once(sql[0], lambda x: f"CASE WHEN {x} = '' THEN -1 ELSE ascii({x}) END")


def _cased(name: str, case: Callable[[str], str]) -> Spelling:
    def spell(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
        known = partners(case)
        listed = f"{d.text(''.join(known))}, {d.text(''.join(known.values()))}"
        ascii_only = "octet_length({0}) = length({0})"
        return once(sql[0], f"CASE WHEN {ascii_only} THEN {name}({{0}}) ELSE translate({{0}}, {listed}) END".format)

    return spell


_lower = _cased("lower", lowered)

TEXTS: Mapping[str, Spelling] = {
    "lower": _lower,
    "upper": _cased("upper", raised),
    "md5": _called("md5"),
    "sha256": lambda d, sql, args, result: f"sha2({sql[0]}, 256)",
    "trim": _trimmed("BOTH"),
    "ltrim": _trimmed("LEADING"),
    "rtrim": _trimmed("TRAILING"),
    "length": counted("length"),
    "strlen": counted("octet_length"),
    "bit_length": lambda d, sql, args, result: f"({d.cast(f'octet_length({sql[0]})', result.type)} * 8)",
    "left": _end("left({0}, {1})", "left({0}, length({0}) + {1})"),
    "right": _end("right({0}, {1})", "substring({0}, 1 - {1})"),
    "substring": substring,
    "lpad": _padded("lpad"),
    "rpad": _padded("rpad"),
    "replace": replace,
    "translate": _called("translate"),
    "split_part": _split,
    "ascii": counted("ascii"),
    "unicode": _unicode,
    "concat": _concat,
    "concat_ws": _cut,
    "starts_with": _called("startswith"),
    "ends_with": _called("endswith"),
    "contains": _called("contains"),
    "strpos": counted("instr"),
    "like": _like,
    "ilike": _ilike,
}
"""By the first name of the function."""
