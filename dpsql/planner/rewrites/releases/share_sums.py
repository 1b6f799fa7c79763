"""SUM(x) from the centred sum and the count that AVG(x) is made of: Σx = Σ(x - mid) + mid·COUNT(x).

Claim: over the same rows with the same weights both sides are the same number. What is measured stays a sum and a
    count, each with its own sensitivity.
Why: every row with a valid x adds (x - mid) to one and 1 to the other.
When it would be false:
    - rows that count in one and not in the other (NULL, NaN, FILTER): the count has the sum's argument and filter;
    - contributions that are bounded. There a sum alone is clipped per unit, and a paired one is scaled with its count,
      so that the two forms differ in more than noise. So nothing is changed below a BoundContributions node, nor for
      aggregates that bring their own bounds, or get a limit from a search.
Tested by: tests/deep/core/analysis/test_operators.py, tests/deep/core/analysis/test_replace_one.py,
tests/planner/test_share_sums.py

Why it helps: for x in [L, U] the squared errors of the two parts add up to (L² + U²)/2. That is never more than the
max(L², U²) of the plain sum, and a component that AVG or COUNT needs anyway is not paid twice. Where nothing else needs
the count, the plain sum is better. So `choose_components` compares the forms.

Example:
    >>> release_before_after(lambda r, f: [*sum_forms(r, f)][-1], "SELECT SUM(age), AVG(age) FROM patients")
    release SUM(CLIP(age, 0, 110)), SUM(CLIP(age, 0, 110) - middle), COUNT(*)
    → release SUM(CLIP(age, 0, 110) - middle), COUNT(*)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.components import Component, ValueSum
from dpsql.core.ir.contributions import Weighing
from dpsql.core.ir.nodes import BoundContributions, Release
from dpsql.core.ir.recipes import Output
from dpsql.core.ir.step_count import take
from dpsql.frontend.aggregates.count import count_of
from dpsql.frontend.aggregates.formula import formula


def sum_forms(node: Release, facts: Facts) -> Iterator[Release]:
    """The release with plain sums, with those shared whose count is measured anyway, and with all shared."""
    yield node
    if isinstance(node.input, BoundContributions):
        return
    counted = shared_sums(node, facts, only_counted=True)
    if counted is not node:
        yield counted
    every = shared_sums(node, facts, only_counted=False)
    if every is not node and every.components != counted.components:
        yield every


def shared_sums(node: Release, facts: Facts, *, only_counted: bool = False) -> Release:
    """The release with its sums made of two parts; only those whose count it measures anyway, or all.

    Below a BoundContributions node they are other sums then, scaled and not clipped.
    """
    components = list(node.components)

    def place(component: Component) -> int:
        take(1 + len(components) // 4)
        if component not in components:
            components.append(component)
        return components.index(component)

    def centred(at: int) -> tuple[int, int] | None:
        total = node.components[at]
        if not isinstance(total, ValueSum) or total.contribution is not Weighing.ALONE:
            return None
        count = count_of(total.arg, total.filter, facts)
        if only_counted and count not in node.components:
            return None
        return place(replace(total, contribution=Weighing.PAIRED)), place(count)

    outputs = tuple(replace(o, recipe=formula(o).with_count(centred)) for o in node.outputs)
    return node if outputs == node.outputs else pruned(replace(node, components=tuple(components)), outputs)


def pruned(node: Release, outputs: tuple[Output, ...]) -> Release:
    """Without the components that nothing is made of any more."""
    used = {i for o in outputs for i in o.recipe.components} | {node.threshold}
    kept = [i for i in range(len(node.components)) if i in used]
    to = {old: new for new, old in enumerate(kept)}
    return replace(
        node,
        components=tuple(node.components[i] for i in kept),
        outputs=tuple(replace(o, recipe=o.recipe.moved(to)) for o in outputs),
        threshold=None if node.threshold is None else to[node.threshold],
    )
