"""Lists: how long one is, and whether it holds a value; and those of an answer, several quantiles in one column."""

from __future__ import annotations

from dpsql.core.ir.types import BIGINT, BOOLEAN, Kind, SqlType, list_of
from dpsql.core.values.value import Args, Value
from dpsql.functions.function import Function, SignatureError, null_if_any_is_null
from dpsql.functions.signature import count, interval_of, truth_domain

_COMPARED = frozenset({Kind.INTEGER, Kind.VARCHAR, Kind.BOOLEAN, Kind.DATE, Kind.UUID})
"""Kinds of values of which the engine's = is this project's, without a cast that may fail."""


def _listed(args: Args) -> SqlType:
    kinds = {a.type for a in args}
    if len(kinds) != 1:
        raise SignatureError("expects values of one type")
    return list_of(kinds.pop())


def _item(a: Value) -> SqlType:
    """The type of the values in a list. Raises SignatureError for what is none."""
    if a.type.kind is not Kind.LIST or a.type.item is None:
        raise SignatureError(f"expects a list, got {a.type}")
    return a.type.item


def _length(args: Args) -> SqlType:
    count(args, 1)
    _item(args[0])
    return BIGINT


def _contained(args: Args) -> SqlType:
    count(args, 2)
    item, value = _item(args[0]), args[1].type
    if item.kind is not value.kind or item.kind not in _COMPARED:
        raise SignatureError(f"cannot look for {value} in {args[0].type}", f"convert it first: CAST(… AS {item})")
    return BOOLEAN


NAMED = (
    Function(
        ("list_length", "array_length", "array_size"),
        "list_length(x: list) → integer",
        "Number of values in a list, NULL among them.",
        type=_length,
        interval=interval_of(0, None),
    ),
    Function(
        ("list_contains", "array_contains", "list_has", "array_has"),
        "list_contains(x: list, value) → boolean",
        "True where a list holds a value.",
        type=_contained,
        interval=interval_of(0, 1),
        domain=lambda args: truth_domain(args, null_if_any_is_null(args)),
    ),
)
"""What queries can name."""

FUNCTIONS = (
    Function(
        ("list_of",),
        "list_of(x, …) → list",
        "The values in their order; NULL if any of them is.",
        type=_listed,
        operator=True,
    ),
)
