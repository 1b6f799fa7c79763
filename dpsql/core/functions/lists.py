"""Lists of values of one type, in an answer: several quantiles in one column. No query can name the function."""

from __future__ import annotations

from dpsql.core.functions.function import Args, Function, SignatureError
from dpsql.core.ir.types import SqlType, list_of


def _listed(args: Args) -> SqlType:
    kinds = {a.type for a in args}
    if len(kinds) != 1:
        raise SignatureError("expects values of one type")
    return list_of(kinds.pop())


FUNCTIONS = (
    Function(
        ("list_of",),
        "list_of(x, …) → list",
        "The values in their order; NULL if any of them is.",
        type=_listed,
        operator=True,
    ),
)
