"""Relations that have no row, whatever the data hold.

Claim: a node of which `no_rows` is true gives no row in any database.
Why: LIMIT 0 keeps no row, and WHERE, HAVING and ON keep those alone whose condition is true, which a constant FALSE or
    NULL is for none; AND is never true where one of its terms never is, OR where none of them ever is. What is made of
    no rows row by row, put in order, cut, grouped by keys or taken from a list of private keys is no rows again.
When it would be false: a condition that a value could make true, be it a released number (constant are literals and
    parameters alone, folded as the engine computes them); rows that appear where others are missing: the padded ones of
    an outer join, those that an ANTI join or EXCEPT keeps, the one row of an aggregate without groups, public keys.
Tested by: tests/deep/planner/test_no_rows.py, tests/core/analysis/test_empty.py

Nothing private rests on it: what is taken for empty is not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.expressions import Call, Expr, columns_of
from dpsql.core.ir.nodes import (
    Aggregate,
    BoundContributions,
    Filter,
    GroupKeys,
    Join,
    JoinKind,
    Limit,
    Node,
    Project,
    Release,
    Scan,
    SetKind,
    SetOperation,
    Sort,
    Truncate,
    Unnest,
    Values,
    Window,
    key_sources,
)
from dpsql.core.ir.step_count import take
from dpsql.core.values.meaning import evaluate


def no_rows(node: Node, below: Sequence[Facts]) -> bool:
    """Whether a node gives no row in any database. below: the facts of its inputs."""
    empty = [facts.empty for facts in below]
    match node:
        case Scan():
            return False
        case Values(rows=rows):
            return not rows
        case Filter(predicate=predicate):
            return empty[0] or never(predicate)
        case Limit(count=count):
            return empty[0] or count == 0
        case Project() | Unnest() | Truncate() | Window() | Sort() | GroupKeys() | BoundContributions():
            return empty[0]
        case Aggregate(keys=keys):
            return empty[0] and bool(keys)
        case Release():
            return empty[0] and key_sources(node) is None
        case Join(kind=kind, residual=residual):
            match kind:
                case JoinKind.INNER | JoinKind.CROSS | JoinKind.SEMI:
                    return any(empty) or (residual is not None and never(residual))
                case JoinKind.LEFT | JoinKind.ANTI:
                    return empty[0]
                case JoinKind.FULL:
                    return all(empty)
        case SetOperation(kind=set_kind):
            match set_kind:
                case SetKind.UNION:
                    return all(empty)
                case SetKind.INTERSECT:
                    return any(empty)
                case SetKind.EXCEPT:
                    return empty[0]
        case _:
            assert_never(node)


def never(condition: Expr) -> bool:
    """Whether a condition is true for no row, whatever the row holds: by its constants alone."""
    take()
    match condition:
        case Call(function="and", args=terms):
            return any(map(never, terms))
        case Call(function="or", args=terms):
            return all(map(never, terms))
    if columns_of(condition):
        return False
    value = evaluate(condition, {})
    return value.is_constant and (value.constant is None or value.constant is False)
