"""What callers hand over with a query, which in Python may be anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dpsql.diagnostics.errors import reject

Parameters = Sequence[Any] | Mapping[str, Any] | None
"""Values for `?` or for `$name`; None for none of them."""


def checked_parameters(sql: object, parameters: object, dialect: object) -> Sequence[Any] | Mapping[str, Any]:
    """The parameters of a query; whether there are as many as it wants is seen later.

    Raises Rejected DP903: one of the three is of another kind. A text is no list of parameters, but one that was meant
    to stand in a list.
    """
    given = () if parameters is None else parameters
    listed = isinstance(given, Sequence | Mapping) and not isinstance(given, str | bytes | bytearray)
    if isinstance(sql, str) and listed and isinstance(dialect, str):
        return given  # type: ignore[return-value]  # which `listed` says
    raise reject(
        "DP903", "a query is a text, its parameters a list or a dict, its dialect a name",
        help=["con.sql('SELECT … WHERE x > ?', [5])"],
    )  # fmt: skip
