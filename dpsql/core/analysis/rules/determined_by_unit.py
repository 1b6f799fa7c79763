"""Columns of joined rows that are functions of the id.

Claim: where at most one row of the other side matches, and all columns that it is found by are functions of the id, so
    are the stored columns of that row, and what one aggregate per id made. In an inner join, so is a stored column that
    equals a function of the id.
Why: all rows of an id look for the same row, and find it, or none. Of an outer join without another condition, all
    rows of an id have their partner or none has; an inner join drops those without. Equal values are one value.
When it would be false:
    - a residual condition of an outer join, which pads some rows of an id and not others;
    - a key that repeats (a promise that `policy audit` lists; of public tables the run checks it, DP409);
    - a function of an equal value of another form (DOUBLE: 0.0 and -0.0);
    - a function of only some of the columns that find the row;
    - a column that an expression computes: two rows of an id may evaluate it at two places.
Not proved: functions of the id
Tested by: tests/deep/core/analysis/test_public_groups.py, tests/core/analysis/test_determined.py

Example:
    >>> facts("SELECT * FROM visits v JOIN patients p ON v.patient = p.patient", "by_id")
    join inner patient = patient   stability patient=1 id · by id: age, patient, region, town
    ├─ scan visits                 stability patient=1 id · by id: patient
    └─ scan patients               stability patient=1 id · by id: age, patient, region, town
"""

from __future__ import annotations

from dpsql.core.analysis.facts import Columns, Facts
from dpsql.core.analysis.stored_columns import stored_columns
from dpsql.core.ir.expressions import Column
from dpsql.core.ir.nodes import Join, JoinKind
from dpsql.core.numbers.cap import ONE, Cap, Finite


def determined_columns(node: Join, by_id: Columns, other: Facts, m: Cap, from_left: bool) -> Columns:
    """Columns of the other side that are functions of the id.

    by_id: such columns of the side that is known, the left one if `from_left`. m: rows of the other side that match.
    """
    inner = node.kind is JoinKind.INNER
    if not inner and node.residual is not None:
        return frozenset()
    ends = [(e.left, e.right) if from_left else (e.right, e.left) for e in node.equalities]
    fixed = [theirs for ours, theirs in ends if isinstance(ours, Column) and ours.uid in by_id]
    if not fixed:
        return frozenset()
    held = other.by_id | stored_columns(node.right if from_left else node.left)
    if len(fixed) == len(ends) and (m is ONE or (isinstance(m, Finite) and m.value <= 1)):
        return held & other.columns.keys()
    equal = (e.uid for e in fixed if isinstance(e, Column) and e.type.one_form and e.uid in held)
    return frozenset(equal) if inner else frozenset()
