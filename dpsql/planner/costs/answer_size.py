"""How many rows an answer will have, where that is public before anything is paid.

*Claim.* What is told is the number of rows of the answer, and depends on no private row. *Why.* A release over public
keys has a row for each, and what stands above it here neither adds nor drops rows by what is in them. *When it would be
false.* If a release with private keys, or a filter over noisy numbers, were counted. *Tested by*
tests/planner/test_answer_size.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.nodes import Limit, Project, Release, Sort, Window
from dpsql.core.ir.walk import Tagged

if TYPE_CHECKING:
    from dpsql.planner.plan import Plan


def known_size(plan: Plan) -> int | None:
    """Rows of the answer; None where noise or public tables decide."""
    return _rows(plan, plan.tree)


def _rows(plan: Plan, tree: Tagged[Facts]) -> int | None:
    match tree.node:
        case Release() as node:
            return next(
                (r.measured.contribution.released_groups for r in plan.releases if r.measured.node == node), None
            )
        case Project() | Sort() | Window():
            return _rows(plan, tree.inputs[0])
        case Limit(count=count, offset=offset):
            found = _rows(plan, tree.inputs[0])
            rest = None if found is None else max(found - offset, 0)
            return rest if rest is None or count is None else min(rest, count)
    return None
