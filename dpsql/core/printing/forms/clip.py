"""The clip (F1): each integer that is added lies between two ends.

*Claim.* What a row adds is an integer of [low, high], or nothing. *Why.* The clip stands outermost and reads a column
of integers: of one value one branch gives an end, or that value, which lies between the ends or is NULL. Engines that
merge projections may compute what it reads at each place where it is named: there GREATEST and LEAST name it once, and
whether it is NULL is asked beside them; or what PostgreSQL's MIN and MAX compare by names it once, and keeps its NULL.
*When it would be false.* A clip of an analyst's text, which is computed at each place; an operation above it that is
not of integers; a column of floating-point numbers, whose arithmetic rounds.
*Not proved:* that a clipped integer is within its ends is E2.
*Tested by*
tests/core/printing/test_clip_of_columns.py, tests/core/printing/test_grid_integers.py,
tests/deep/core/analysis/test_value_intervals.py. Example: `CASE WHEN i.a0 < 0 THEN 0 WHEN i.a0 > 9 THEN 9 ELSE i.a0
END`.

What is clipped already, as it is meant to be, by the projection below, is in a SUM or a histogram better asked to lie
between the ends than clipped anew: FILTER (WHERE y BETWEEN low AND high) costs 1.05 of the sum, CASE 1.3 (DuckDB,
measured). A value beyond them would add nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpsql.core.ir.components import Component
from dpsql.core.ir.types import SqlType
from dpsql.core.printing.dialect import Dialect
from dpsql.core.printing.forms.every_row import filled


def clipped(d: Dialect, c: Component, y: str, low: str, high: str, *, cast: SqlType | None = None) -> str:
    """An integer column within [low, high]; NULL for NULL, unless every row counts.

    cast: the type that the column has in the engine, where it was cast to it.
    """
    full = filled(c, y, low)
    if not d.computes_apart:
        # One comparison of each end, of one mention: whatever the value is at another place.
        if cast is not None and (once := d.clip_once(full, low, high, cast)) is not None:
            return once
        held = d.greatest(d.least(full, high), low)
        return held if c.counts_every_row else f"CASE WHEN {y} IS NOT NULL THEN {held} END"
    return f"CASE WHEN {full} < {low} THEN {low} WHEN {full} > {high} THEN {high} ELSE {full} END"


def within(y: str, low: str, high: str) -> str:
    """A condition on rows: an integer column lies between the ends. For engines that compute columns apart."""
    return f"{y} BETWEEN {low} AND {high}"


def only(conditions: Sequence[str]) -> str:
    """The FILTER of an aggregate, with a blank before it."""
    return f" FILTER (WHERE {' AND '.join(conditions)})" if conditions else ""


def only_if(conditions: Sequence[str], value: str) -> str:
    """A value of the rows that fulfil all conditions; NULL of the others."""
    return f"CASE WHEN {' AND '.join(conditions)} THEN {value} END" if conditions else value
