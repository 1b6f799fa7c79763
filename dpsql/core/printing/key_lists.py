"""Membership of a value in a public list: a condition on the row alone."""

from __future__ import annotations

from dpsql.core.functions.key_lists import LazyKeys, run_of
from dpsql.core.ir.components import KeySource
from dpsql.core.ir.expressions import LiteralValue
from dpsql.core.ir.types import Kind, SqlType
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
            held, null = _values(source, place)
            run = run_of(held)
        if not held:
            return f"({sql} IS NULL)" if null else "FALSE"
        if run is not None:
            inside = _between(d, sql, type_, *run)
        else:
            inside = d.member(sql, [d.constant(v, type_) for v in held])
    return f"({inside} OR {sql} IS NULL)" if null else f"({inside})"


def member_of_groups(d: Dialect, sql: str, type_: SqlType, source: KeySource, place: int = 0) -> str | None:
    """`member` of a text as the groups are asked, once for each. None if rows are, as of numbers, which is cheap.

    *Claim.* Of groups inside the list the integers are the same. *Why.* Rows of one key are all inside or all outside.
    *When it would be false.* A condition on more than the key; what rows outside a list add to anything but their own
    group (weights of ids: shapes/weighted.py asks the rows). *Tested by* tests/core/printing/test_group_conditions.py.
    """
    held, null = _values(source, place) if type_.kind is Kind.VARCHAR else ([], False)
    if not held:
        return None
    inside = d.having_member(sql, [d.constant(v, type_) for v in held])
    return f"({inside} OR {sql} IS NULL)" if inside is not None and null else inside


def _values(source: KeySource, place: int) -> tuple[list[LiteralValue], bool]:
    """The values at a place of a list, and whether NULL is one."""
    values = [key[place] for key in source.keys]
    return [v for v in values if v is not None], None in values


def _between(d: Dialect, sql: str, type_: SqlType, first: LiteralValue, last: LiteralValue) -> str:
    return f"{sql} BETWEEN {d.constant(first, type_)} AND {d.constant(last, type_)}"
