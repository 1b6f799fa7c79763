"""Membership of a value in a public list: a condition on the row alone."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from dpsql.core.ir.components import KeySource
from dpsql.core.ir.expressions import LiteralValue
from dpsql.core.ir.types import SqlType
from dpsql.core.printing.dialect import Dialect


def member(d: Dialect, sql: str, type_: SqlType, source: KeySource, place: int = 0) -> str:
    """Whether a printed value is one of the list's values at this place, NULL included where it is one of them."""
    if source.ends is not None:
        inside, null = _between(d, sql, type_, *source.ends), source.keys[-1] == (None,)
    else:
        values = [key[place] for key in source.keys]
        held, null = [v for v in values if v is not None], None in values
        if not held:
            return f"({sql} IS NULL)" if null else "FALSE"
        if _is_run(held):
            inside = _between(d, sql, type_, held[0], held[-1])
        else:
            inside = d.member(sql, [d.constant(v, type_) for v in held])
    return f"({inside} OR {sql} IS NULL)" if null else f"({inside})"


def _between(d: Dialect, sql: str, type_: SqlType, first: LiteralValue, last: LiteralValue) -> str:
    return f"{sql} BETWEEN {d.constant(first, type_)} AND {d.constant(last, type_)}"


def _is_run(values: Sequence[LiteralValue]) -> bool:
    """True for consecutive integers or days: a range is shorter to print and faster to check."""
    first = values[0]
    if len(values) < 4 or isinstance(first, bool | dt.datetime):
        return False
    if isinstance(first, dt.date):
        return all(isinstance(v, dt.date) and v.toordinal() == first.toordinal() + i for i, v in enumerate(values))
    return isinstance(first, int) and all(v == first + i for i, v in enumerate(values))
