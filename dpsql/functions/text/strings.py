"""Functions of text. Lengths and positions count characters (code points); results never grow out of control."""

from __future__ import annotations

from collections.abc import Callable

from dpsql.core.ir.types import BIGINT, INTEGER, VARCHAR, Kind, SqlType
from dpsql.core.numbers import interval as iv
from dpsql.core.numbers.interval import Interval
from dpsql.core.values.value import Args, Scalar, Value
from dpsql.functions.function import Function, SignatureError
from dpsql.functions.signature import constant_int, constant_text, count, integer, returns, strict, text

FAR = 1_000_000_000
"""Positions and lengths beyond this give NULL; the engine's own limit is 2³²."""


LONGEST = 100_000
"""Bytes that `replace` may make of one text: nested in itself it would grow exponentially, on chosen rows alone."""


def ascii_only(f: Callable[..., Scalar]) -> Callable[..., Scalar]:
    """`f` on ASCII text; elsewhere Python and the engine may differ in letters and spaces, so nothing is folded."""

    def checked(*values: Scalar) -> Scalar:
        if not all(v.isascii() for v in values if isinstance(v, str)):
            raise ValueError("not ASCII")
        return f(*values)

    return strict(checked)


def _simple(names: tuple[str, ...], summary: str, python: Callable[..., Scalar] | None) -> Function:
    return Function(
        names,
        f"{names[0]}(x: text) → text",
        summary,
        type=returns(VARCHAR, text),
        python=python,
    )


def _size(args: Args) -> Interval:
    """At least 0; at most the size in bytes, where one is known (it is for ranges)."""
    hi = args[0].interval.hi if args[0].type.kind is Kind.VARCHAR else None
    return Interval(iv.interval(0, None).lo, hi, args[0].interval.why)


def _bits(args: Args) -> Interval:
    return iv.mul(_size(args), iv.point(8))


def _measure(
    names: tuple[str, ...],
    summary: str,
    python: Callable[..., Scalar],
    interval: Callable[[Args], Interval] = _size,
) -> Function:

    return Function(
        names,
        f"{names[0]}(x: text) → integer",
        summary,
        type=returns(BIGINT, text),
        interval=interval,
        python=strict(python),
    )


def _trim(name: str, summary: str, cut: Callable[[str, str], str]) -> Function:
    def type_of(args: Args) -> SqlType:
        count(args, 1, 2)
        for a in args:
            text(a)
        if len(args) == 2 and args[1].constant is not None:
            constant_text(args[1], "the characters to remove")
        return VARCHAR

    return Function(
        (name,),
        f"{name}(x: text, characters: literal = ' ') → text",
        summary,
        type=type_of,
        python=ascii_only(lambda x, characters=" ": cut(x, characters)),
        literal=frozenset({1}),
    )


# Parts of a text


def is_near(a: Value) -> bool:
    """True if no row can lie too far from zero for a position in a text."""
    return a.interval.within(iv.interval(-FAR, FAR))


def _part_nullable(args: Args) -> bool:
    return any(a.nullable for a in args) or not all(is_near(a) for a in args[1:])


def _left(x: str, n: int) -> Scalar:
    return None if abs(n) > FAR else x[:n]


def _right(x: str, n: int) -> Scalar:
    if abs(n) > FAR:
        return None
    return x[len(x) - n :] if 0 <= n <= len(x) else x[-n:] if n < 0 else x


def _substring(x: str, start: int, length: int | None = None) -> Scalar:
    if abs(start) > FAR or abs(length or 0) > FAR:
        return None
    if start < 1 or (length is not None and length < 0):
        raise ValueError("positions before the first character follow the engine's own rules")
    return x[start - 1 :] if length is None else x[start - 1 : start - 1 + length]


def _part(
    names: tuple[str, ...], signature: str, summary: str, optional: int, python: Callable[..., Scalar]
) -> Function:
    checks = (text, integer, integer) if optional else (text, integer)
    return Function(
        names,
        signature,
        summary,
        type=returns(VARCHAR, *checks, optional=optional),
        nullable=_part_nullable,
        python=strict(python),
    )


def _pad_type(args: Args) -> SqlType:
    count(args, 3)
    text(args[0])
    constant_int(args[1], 0, 1000, "the length")
    if not constant_text(args[2], "the padding"):
        raise SignatureError("expects a padding that is not empty")
    return VARCHAR


def _pad(name: str, summary: str, python: Callable[..., Scalar]) -> Function:

    return Function(
        (name,),
        f"{name}(x: text, length: literal 0…1000, padding: literal) → text",
        summary,
        type=_pad_type,
        python=strict(python),
        literal=frozenset({1, 2}),
    )


def _padding(missing: int, pad: str) -> str:
    return (pad * (missing // len(pad) + 1))[:missing] if missing > 0 else ""


def _replace_type(args: Args) -> SqlType:
    count(args, 3)
    text(args[0])
    constant_text(args[1], "the text to replace")
    if len(constant_text(args[2], "the replacement")) > 100:
        raise SignatureError("expects a replacement of at most 100 characters")
    return VARCHAR


def _room(old: str, new: str) -> int | None:
    """Longest text in bytes whose replacements stay within LONGEST; None if replacing makes nothing longer."""
    before, after = len(old.encode()), len(new.encode())
    return None if not before or after <= before else LONGEST * before // after


def _replace(x: str, old: str, new: str) -> Scalar:
    room = _room(old, new)
    if room is not None and len(x.encode()) > room:
        return None
    return x.replace(old, new) if old else x


def _replace_nullable(args: Args) -> bool:
    return any(a.nullable for a in args) or replace_room(args) is not None


def replace_room(args: Args) -> int | None:
    """Bytes of a text from which on `replace` gives NULL; None if it never does."""
    old, new = args[1].constant, args[2].constant
    return _room(old, new) if isinstance(old, str) and isinstance(new, str) else None


def _translate_type(args: Args) -> SqlType:
    count(args, 3)
    text(args[0])
    constant_text(args[1], "the characters to replace")
    constant_text(args[2], "their replacements")
    return VARCHAR


def _split_type(args: Args) -> SqlType:
    count(args, 3)
    text(args[0])
    if not constant_text(args[1], "the separator"):
        raise SignatureError("expects a separator that is not empty")
    constant_int(args[2], 1, 1000, "the number of the part")
    return VARCHAR


def _split_part(x: str, separator: str, n: int) -> Scalar:
    parts = x.split(separator)
    return parts[n - 1] if n <= len(parts) else ""


FUNCTIONS = (
    _simple(("lower", "lcase"), "Lower-case letters.", ascii_only(str.lower)),
    _simple(("upper", "ucase"), "Upper-case letters.", ascii_only(str.upper)),
    _simple(("reverse",), "The characters in reverse order.", ascii_only(lambda x: x[::-1])),
    _simple(("strip_accents",), "Letters without their accents.", ascii_only(lambda x: x)),
    _simple(("md5",), "The MD5 digest in hexadecimal.", None),
    _simple(("sha256",), "The SHA-256 digest in hexadecimal.", None),
    _trim("trim", "x without the given characters at both ends.", str.strip),
    _trim("ltrim", "x without the given characters at its start.", str.lstrip),
    _trim("rtrim", "x without the given characters at its end.", str.rstrip),
    _measure(("length", "len", "char_length", "character_length"), "Number of characters.", len),
    _measure(("strlen", "octet_length"), "Number of bytes in UTF-8.", lambda x: len(x.encode())),
    _measure(("bit_length",), "Number of bits in UTF-8.", lambda x: 8 * len(x.encode()), _bits),
    _part(
        ("left",), "left(x: text, n: integer) → text", "The first n characters; all but the last -n if n < 0.", 0, _left
    ),
    _part(
        ("right",),
        "right(x: text, n: integer) → text",
        "The last n characters; all but the first -n if n < 0.",
        0,
        _right,
    ),
    _part(
        ("substring", "substr", "mid"),
        "substring(x: text, start: integer, length: integer = all) → text",
        "The characters from a position (counted from 1) on.",
        1,
        _substring,
    ),
    _pad("lpad", "x brought to a length by padding at its start.", lambda x, n, p: _padding(n - len(x), p) + x[:n]),
    _pad("rpad", "x brought to a length by padding at its end.", lambda x, n, p: x[:n] + _padding(n - len(x), p)),
    Function(
        ("replace",),
        "replace(x: text, old: literal, new: literal) → text",
        "x with every occurrence of one text replaced by another; NULL where that could exceed 100,000 bytes.",
        type=_replace_type,
        nullable=_replace_nullable,
        python=strict(_replace),
        literal=frozenset({1, 2}),
    ),
    Function(
        ("translate",),
        "translate(x: text, from: literal, to: literal) → text",
        "x with each character of one list replaced by its partner in the other.",
        type=_translate_type,
        literal=frozenset({1, 2}),
    ),
    Function(
        ("split_part",),
        "split_part(x: text, separator: literal, n: literal 1…1000) → text",
        "The n-th part between separators; '' if there are fewer.",
        type=_split_type,
        python=strict(_split_part),
        literal=frozenset({1, 2}),
    ),
    Function(
        ("ascii",),
        "ascii(x: text) → integer",
        "The number of the first character; 0 for ''.",
        type=returns(INTEGER, text),
        interval=lambda args: iv.interval(0, 0x10FFFF),
        python=strict(lambda x: ord(x[0]) if x else 0),
    ),
    Function(
        ("unicode", "ord"),
        "unicode(x: text) → integer",
        "The number of the first character; -1 for ''.",
        type=returns(INTEGER, text),
        interval=lambda args: iv.interval(-1, 0x10FFFF),
        python=strict(lambda x: ord(x[0]) if x else -1),
    ),
)
