"""Texts put together to one. What comes out has a longest length, or a text could be made to grow exponentially."""

from __future__ import annotations

from dpsql.core.ir.types import VARCHAR, SqlType
from dpsql.core.values.value import Args, Scalar
from dpsql.functions.function import Function
from dpsql.functions.signature import constant_text, count, strict, text

JOINED = 10_000
"""Characters of joined texts; the rest is cut off. A text of one chosen row, doubled in each of thirty subqueries,
would use up all memory, and the error would tell that the row is there."""


def _texts(args: Args) -> SqlType:
    count(args, 1, -1)
    for a in args:
        text(a)
    return VARCHAR


def _joined(*parts: Scalar, separator: str = "") -> str:
    return separator.join(p for p in parts if isinstance(p, str))[:JOINED]


def _ws_type(args: Args) -> SqlType:
    count(args, 2, -1)
    constant_text(args[0], "the separator")
    return _texts(args)


def _concat_ws(separator: str, *parts: Scalar) -> Scalar:
    return _joined(*parts, separator=separator)


FUNCTIONS = (
    Function(
        ("concat_op",),
        "x || y: text, text → text",
        "The texts one after the other, up to 10,000 characters; NULL if one is NULL.",
        type=_texts,
        python=strict(_joined),
        operator=True,
    ),
    Function(
        ("concat",),
        "concat(x: text, …) → text",
        "The texts one after the other, up to 10,000 characters; NULLs are left out.",
        type=_texts,
        nullable=lambda args: False,
        python=_joined,
    ),
    Function(
        ("concat_ws",),
        "concat_ws(separator: literal, x: text, …) → text",
        "The texts with a separator between them, up to 10,000 characters; NULLs are left out.",
        type=_ws_type,
        nullable=lambda args: False,
        python=_concat_ws,
        literal=frozenset({0}),
    ),
)
