"""COUNT(*) from the counts of disjoint slices that are measured beside it, and the count of all other rows.

Claim: where no row satisfies two of f₁ … fⱼ, COUNT(x) is Σ COUNT(x) FILTER (fᵢ) plus
    COUNT(x) FILTER ((f₁ OR … OR fⱼ) IS NOT TRUE). What is measured stays counts, each with its own sensitivity.
Why: each row with a valid x counts in exactly one of them. Under limits on contributions all have the weights of all
    rows of the id. Rounding takes less than 1/F of a row from each part of an id that is above its limit.
When it would be false:
    - NOT in place of IS NOT TRUE: where an fᵢ is NULL, a row would count nowhere;
    - filters that one row satisfies both;
    - totals that are clipped per id and group, presence of ids, distinct values, sums that are clipped by themselves:
      what an id adds to all parts is not the sum of what it adds to each.
    The count of other rows is left out where there are none because a column is promised never to be NULL. COUNT(x) is
    taken for COUNT(*) there, too.
Tested by: tests/planner/test_split_counts.py, tests/deep/planner/test_split_counts.py

Why it helps: by parallel composition the parts cost together what one of them costs
(`core/noise/parallel_composition.py`), so that ε is not divided between the total and its slices. The total error says
where that is better. A count that an average or a sum needs as well stays as it is: beside its parts it would take from
the share of other columns.

Example:
    >>> release_before_after(split_counts, "SELECT COUNT(*), COUNT(*) FILTER (WHERE age < 18) FROM patients")
    release COUNT(*), COUNT(*) FILTER (age < 18)
    → release COUNT(*) FILTER (age < 18), COUNT(*) FILTER ((age < 18) IS NOT TRUE)
"""

from __future__ import annotations

from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.components import Component, RowCount
from dpsql.core.ir.contributions import Weighing
from dpsql.core.ir.expressions import Call, Expr, Literal
from dpsql.core.ir.nodes import Release
from dpsql.core.ir.types import BOOLEAN
from dpsql.core.value_classes import replace
from dpsql.frontend.aggregates.formula import formula
from dpsql.planner.exclusive_conditions import Cases, are_disjoint, cases_of
from dpsql.planner.rewrites.releases.share_sums import pruned


def split_counts(node: Release, facts: Facts) -> Release:
    """The release with each count of all rows made of parts, where slices of the same count are measured anyway."""
    components = list(node.components)
    needed = {i for o in node.outputs for i in o.recipe.components if not formula(o).splits} | {node.threshold}
    parts = {
        i: found
        for i, component in enumerate(node.components)
        if i not in needed
        and _counted(component)
        and component.filter is None
        and (found := _split(component, node, components, facts)) is not None
    }

    outputs = tuple(replace(o, recipe=formula(o).with_parts(parts)) for o in node.outputs)
    return pruned(replace(node, components=tuple(components)), outputs) if outputs != node.outputs else node


def _counted(component: Component) -> bool:
    """A count in which each row counts once, by its weight."""
    return isinstance(component, RowCount) and component.contribution is Weighing.BY_ROW


def _split(
    total: Component, node: Release, components: list[Component], facts: Facts
) -> tuple[int, tuple[int, ...]] | None:
    """Of a count of all rows the places of the rest and of the slices; the rest is added to the components."""
    found: list[tuple[int, Expr, Cases]] = []
    for i, c in enumerate(node.components):
        if i == node.threshold or not _counted(c) or c.arg != total.arg or c.filter is None:
            continue
        cases = cases_of(c.filter)
        if all(are_disjoint(cases, other) for _, _, other in found):
            found.append((i, c.filter, cases))
    if not found:
        return None
    places = tuple(i for i, _, _ in found)
    some = found[0][1]
    for _, condition, _ in found[1:]:
        some = Call("or", (some, condition), BOOLEAN)
    rest = Call("not", (Call("is_not_distinct_from", (some, Literal(True, BOOLEAN)), BOOLEAN),), BOOLEAN)
    if _never(cases_of(rest), facts):
        return places[0], places[1:]
    own = replace(total, filter=rest)
    if own not in components:
        components.append(own)
    return components.index(own), places


def _never(cases: Cases, facts: Facts) -> bool:
    """Whether every case asks for the NULL of a column that is never NULL."""
    return all(
        any(replace(p, null=False).nothing and not facts.value(expr).nullable for (expr, _), p in case.items())
        for case in cases
    )
