"""Kept groups (F6): an id is in at most G groups, of those that its rows are in the first G in an order of its own.

*Claim.* No id adds to more than G groups, whatever its keys are. *Why.* An id's groups have places 1, 2, … in an order
by their keys' hash and the keys themselves; what is beyond place G is left out. Of rows, all of a group have one place.
Where keys are guessed to be functions of the id, G is 1, and the first group has all of its rows. *When it would
be false.* An order that is not total over an id's groups; a place that is computed of other rows than are kept; groups
without rows that count left out before: then which are kept would depend on what does not count.
*Not proved:* which groups are kept.
*Tested by*
tests/deep/core/printing/test_order_and_truncation.py, tests/deep/core/analysis/test_whole_statements.py,
tests/deep/planner/test_falsified_guesses.py.

    f AS (SELECT * FROM p QUALIFY ROW_NUMBER() OVER (PARTITION BY u ORDER BY …) <= G)                   DuckDB, Spark
    f AS (SELECT * FROM (SELECT *, (ROW_NUMBER() … <= G) AS is_kept FROM p) AS q WHERE is_kept)         PostgreSQL
"""

from __future__ import annotations

from collections.abc import Sequence

from dpsql.core.ir.nodes import BoundContributions
from dpsql.core.printing.dialect import Dialect, Typed
from dpsql.core.printing.forms.kept_first import first


def kept_groups(d: Dialect, b: BoundContributions, group: Sequence[Typed], source: str) -> str:
    """Each id's first G groups. group: the id, then the keys. source: a row for each."""
    return d.first_rows("SELECT *", f" FROM {source} ", _kept(d, b, group, "ROW_NUMBER"))


def rows_of_kept_groups(d: Dialect, b: BoundContributions, group: Sequence[Typed], source: str, value: str) -> str:
    """The rows of these groups, each with a value."""
    listed = ", ".join([*(sql for sql, _ in group), value])
    return d.first_rows(f"SELECT {listed}", f" FROM {source} ", _kept(d, b, group, "DENSE_RANK"))


def _kept(d: Dialect, b: BoundContributions, group: Sequence[Typed], place: str) -> str:
    assert b.groups is not None
    return first(d, b.groups, group[0][0], group, place=place)
