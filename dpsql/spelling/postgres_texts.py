"""How PostgreSQL spells the functions of texts.

What the server makes of other letters than a to z rests on its locale and version, so letters of another case are
listed here, one for one. There is no spelling of accents, nor of reversed texts, where characters consist of several.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from dpsql.core.ir.types import BOOLEAN, INTEGER, VARCHAR
from dpsql.core.printing.dialect import Dialect, Spelling
from dpsql.core.printing.dialects.postgres_casts import bound, once
from dpsql.core.values.value import Args, Value
from dpsql.functions.text.concatenation import JOINED
from dpsql.spelling.alike import counted, near, replace, substring
from dpsql.spelling.letters import in_lower_case, lowered, partners, raised


def _called(name: str) -> Spelling:
    return lambda d, sql, args, result: f"{name}({', '.join(sql)})"


def _end(name: str) -> Spelling:
    return lambda d, sql, args, result: f"{name}({sql[0]}, {near(d, sql[1], args[1])})"


def _padded(name: str) -> Spelling:
    return lambda d, sql, args, result: f"{name}({sql[0]}, {d.cast(repr(args[1].constant), INTEGER)}, {sql[2]})"


def _split(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    return f"split_part({sql[0]}, {sql[1]}, {d.cast(repr(args[2].constant), INTEGER)})"


def _cut(name: str) -> Spelling:
    return lambda d, sql, args, result: f"left({name}({', '.join(sql)}), {JOINED})"


def _like(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    # Without a word on it the backslash would be an escape character.
    return f"({sql[0]} LIKE {sql[1]} ESCAPE {sql[2] if len(args) > 2 else repr('')})"


def _ends_with(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    return bound(list(sql), lambda x: f"(right({x[0]}, length({x[1]})) = {x[1]})")


def _sha256(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    return d.cast(f"encode(sha256(convert_to({sql[0]}, 'UTF8')), 'hex')", VARCHAR)


def _unicode(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    return once(sql[0], lambda x: f"CASE WHEN {x} = '' THEN -1 ELSE ascii({x}) END")


# --- letters' case ----------------------------------------------------------------------------------------------------


def _cased(name: str, case: Callable[[str], str]) -> Callable[[Dialect, str], str]:
    def spell(d: Dialect, sql: str) -> str:
        known = partners(case)
        listed = f"{d.text(''.join(known))}, {d.text(''.join(known.values()))}"
        ascii_only = "octet_length({x}) = length({x})"
        return once(
            sql,
            lambda x: f"CASE WHEN {ascii_only.format(x=x)} THEN {name}({x}) ELSE translate({x}, {listed}) END",
        )

    return spell


_lower, _upper = _cased("lower", lowered), _cased("upper", raised)


def _ilike(d: Dialect, sql: Sequence[str], args: Args, result: Value) -> str:
    pattern = args[1].constant
    if not isinstance(pattern, str):
        return d.cast("NULL", BOOLEAN)
    return _like(d, [_lower(d, sql[0]), d.constant(in_lower_case(pattern), VARCHAR), *sql[2:]], args, result)


TEXTS: Mapping[str, Spelling] = {
    "lower": lambda d, sql, args, result: _lower(d, sql[0]),
    "upper": lambda d, sql, args, result: _upper(d, sql[0]),
    "ilike": _ilike,
    "md5": _called("md5"),
    "sha256": _sha256,
    "trim": _called("btrim"),
    "ltrim": _called("ltrim"),
    "rtrim": _called("rtrim"),
    "length": counted("length"),
    "strlen": counted("octet_length"),
    "bit_length": counted("bit_length"),
    "left": _end("left"),
    "right": _end("right"),
    "substring": substring,
    "lpad": _padded("lpad"),
    "rpad": _padded("rpad"),
    "replace": replace,
    "translate": _called("translate"),
    "split_part": _split,
    "ascii": _called("ascii"),
    "unicode": _unicode,
    "concat": _cut("concat"),
    "concat_ws": _cut("concat_ws"),
    "starts_with": _called("starts_with"),
    "ends_with": _ends_with,
    "contains": lambda d, sql, args, result: f"(strpos({sql[0]}, {sql[1]}) > 0)",
    "strpos": counted("strpos"),
    "like": _like,
}
"""By the first name of the function."""
