"""Every row counts (F2): with a public number of rows, one whose value cannot be computed counts as its lower end.

*Claim.* Where the number of rows is public, a row that another one replaces moves a sum of [low, high] by at most
high - low, and a count by nothing. *Why.* Each row adds an integer of [low, high]: what is NULL becomes low before it
is clipped, and a COUNT counts rows. Price and statement read one flag, `Component.counts_every_row`, and nothing else:
that the planner guessed it from what it knows of the value is no matter. *When it would be false.* A FILTER, which
leaves rows out; a price that is lowered by what is known of a value (NOT NULL, finite), which may be wrong of what an
engine computes (1/x where x is rounded to 0).
*Not proved:* replaced rows.
*Tested by* tests/core/printing/test_every_row.py,
tests/core/analysis/test_rounding_of_doubles.py, tests/service/test_public_size.py.
"""

from __future__ import annotations

from dpsql.core.ir.components import Component


def filled(c: Component, units: str, low: str) -> str:
    """A column that is clipped, and the lower end where it is NULL, if every row counts."""
    return f"COALESCE({units}, {low})" if c.counts_every_row else units
