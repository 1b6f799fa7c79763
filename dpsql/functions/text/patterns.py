"""Searching in texts: positions, prefixes, LIKE. Patterns are literals that are checked when the query is planned."""

from __future__ import annotations

import re
from collections.abc import Callable

from dpsql.core.ir.step_count import take
from dpsql.core.ir.types import BIGINT, BOOLEAN, Kind, SqlType
from dpsql.core.numbers import interval as iv
from dpsql.core.numbers.interval import Interval
from dpsql.core.values.value import Args, Domain, Scalar
from dpsql.functions.function import Function, SignatureError
from dpsql.functions.signature import constant_text, count, interval_of, returns, strict, text, truth_domain


def _domain(args: Args) -> Domain | None:
    return truth_domain(args, any(a.nullable for a in args))


def _test(names: tuple[str, ...], summary: str, python: Callable[[str, str], bool]) -> Function:

    return Function(
        names,
        f"{names[0]}(x: text, y: text) → boolean",
        summary,
        type=returns(BOOLEAN, text, text),
        interval=interval_of(0, 1),
        domain=_domain,
        python=strict(python),
    )


def _position(args: Args) -> Interval:
    """At least 0; at most one more than the size in bytes, where one is known."""
    hi = args[0].interval.hi if args[0].type.kind is Kind.VARCHAR else None
    return iv.interval(0, None if hi is None else hi + 1, args[0].interval.why)


def _like_type(args: Args) -> SqlType:
    count(args, 2, 3)
    text(args[0])
    pattern = constant_text(args[1], "the pattern")
    if len(pattern) > 1000:
        raise SignatureError("expects a pattern of at most 1000 characters")
    _pieces(pattern, _escape(args))
    return BOOLEAN


def _escape(args: Args) -> str:
    if len(args) < 3:
        return ""
    escape = constant_text(args[2], "the escape character")
    if len(escape) != 1 or not escape.isascii() or escape.isalnum() or escape in "%_":
        raise SignatureError("expects one ASCII character after ESCAPE, no letter or digit, nor % or _")
    return escape


def _expression(pattern: str, escape: str) -> str:
    """The pattern as a regular expression that is matched in time linear in the text, times the pattern's length.

    Behind a %, the first place where the piece up to the next one fits is as good as any later one: a group that does
    not look back (`(?>…)`) takes it.
    """
    first, *behind = _pieces(pattern, escape)
    if not behind:
        return first
    *inner, last = behind
    return first + "".join(f"(?>.*?{piece})" for piece in inner) + ".*" + last


def _pieces(pattern: str, escape: str) -> list[str]:
    """What stands between the % of a pattern, as regular expressions of one character each."""
    found = [""]
    characters = iter(pattern)
    for c in characters:
        if c == escape:
            c = next(characters, "")
            if not c:
                raise SignatureError("expects a pattern that does not end with its escape character")
            if c not in ("%", "_", escape):
                raise SignatureError(f"expects %, _ or {escape} after the escape character {escape}")
            found[-1] += re.escape(c)
        elif c == "%":
            found.append("")
        else:
            found[-1] += "." if c == "_" else re.escape(c)
    return found


def _like(x: str, pattern: str, escape: str = "") -> bool:
    take(len(x) * len(pattern) // 1024)
    return re.fullmatch(_expression(pattern, escape), x, re.DOTALL) is not None


def _ilike(x: str, pattern: str, escape: str = "") -> bool:
    if not (x.isascii() and pattern.isascii()):
        raise ValueError("only ASCII letters have one case mapping everywhere")
    return _like(x.lower(), pattern.lower(), escape.lower())


def _matches(name: str, summary: str, python: Callable[..., Scalar]) -> Function:
    return Function(
        (name,),
        f"x {name.upper()} pattern: text, literal → boolean",
        summary,
        type=_like_type,
        interval=interval_of(0, 1),
        domain=_domain,
        python=strict(python),
        literal=frozenset({1, 2}),
        operator=True,
    )


FUNCTIONS = (
    _test(("starts_with", "prefix"), "True where x starts with y.", str.startswith),
    _test(("ends_with", "suffix"), "True where x ends with y.", str.endswith),
    _test(("contains",), "True where y occurs in x.", lambda x, y: y in x),
    Function(
        ("strpos", "instr", "position"),
        "strpos(x: text, y: text) → integer",
        "Where y first occurs in x, counted from 1; 0 if it does not.",
        type=returns(BIGINT, text, text),
        interval=_position,
        python=strict(lambda x, y: x.find(y) + 1),
    ),
    _matches("like", "True where x matches a pattern: % is any text, _ any character.", _like),
    _matches("ilike", "Like LIKE, without regard to case.", _ilike),
)
