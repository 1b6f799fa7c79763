"""Membership of a value in a public list: a condition on the row alone."""

from __future__ import annotations

from dpsql.core.functions.key_lists import LazyKeys, run_of
from dpsql.core.ir.components import KeySource
from dpsql.core.ir.expressions import LiteralValue
from dpsql.core.ir.types import SqlType
from dpsql.core.printing.dialect import Dialect


def member(d: Dialect, sql: str, type_: SqlType, source: KeySource, place: int = 0) -> str:
    """Whether a printed value is one of the list's values at this place, NULL included where it is one of them."""
    keys = source.keys
    if source.ends is not None:
        inside, null = _between(d, sql, type_, *source.ends), keys[-1] == (None,)
    else:
        if isinstance(keys, LazyKeys):
            held, null, run = keys.domain.values, keys.domain.null, keys.run
        else:
            values = [key[place] for key in keys]
            held, null = [v for v in values if v is not None], None in values
            run = run_of(held)
        if not held:
            return f"({sql} IS NULL)" if null else "FALSE"
        if run is not None:
            inside = _between(d, sql, type_, *run)
        else:
            inside = d.member(sql, [d.constant(v, type_) for v in held])
    return f"({inside} OR {sql} IS NULL)" if null else f"({inside})"


def _between(d: Dialect, sql: str, type_: SqlType, first: LiteralValue, last: LiteralValue) -> str:
    return f"{sql} BETWEEN {d.constant(first, type_)} AND {d.constant(last, type_)}"
