"""COVAR_POP(y, x) of a public number n of rows from one number, n·Σyx - Σy·Σx, instead of three sums.

Claim: what is measured has a sensitivity of its own, and is n² times the covariance.
Why: the number of rows is public, all of them count, and they are one group.
When it would be false:
    - a filter, or an argument that can be NULL or NaN: the rows that count are another number than n;
    - rows that are added or removed, groups, ids with limits. `measures/comoment.py` refuses to price such a number.
Tested by: tests/frontend/aggregates/test_covariances.py, tests/deep/core/analysis/test_products_of_neighbours.py

Why it helps: a row moves it by (n - 1)·R·S of its n²; the sum of centred products by n·R·S/2, with a third of ε, and
both other sums add noise where means are not in the middle. Where CORR, AVG or another covariance needs these sums
anyway they are better: the total error says which.

Example:
    >>> release_before_after(  # doctest: +NORMALIZE_WHITESPACE
    ...     size_covariances, "SELECT COVAR_POP(reading, load) FROM sensors"
    ... )
    release SUM(CLIP(reading, 0, 99) - middle), SUM(CLIP(load, 0, 9) - middle),
            SUM((CLIP(reading, 0, 99) - middle) · (CLIP(load, 0, 9) - middle)), COUNT(*)
    → release 1000² · COVAR_POP(reading, load)
"""

from __future__ import annotations

from dataclasses import replace

from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.components import Comoment, Component, ProductSum
from dpsql.core.ir.nodes import BoundContributions, Release
from dpsql.core.ir.step_count import take
from dpsql.frontend.aggregates.covariance import Covariance, SizedCovariance
from dpsql.planner.rewrites.releases.share_sums import pruned

MOST_ROWS = 2**32
"""With factors of 2³⁰ units, what the engine multiplies fits 128 bits."""


def size_covariances(node: Release, facts: Facts) -> Release:
    """The release with each covariance of all rows as one number; itself where there is none."""
    size = facts.size
    if size is None or not facts.replaced_rows or not 2 <= size < MOST_ROWS:
        return node
    if node.keys or isinstance(node.input, BoundContributions):
        return node
    components, outputs = list(node.components), []
    for output in node.outputs:
        recipe, whole = output.recipe, None
        if isinstance(recipe, Covariance) and not recipe.square:
            whole = _whole(node.components[recipe.moments[0].product], size, facts)
        if whole is not None and isinstance(recipe, Covariance):
            take(1 + len(components) // 4)
            if whole not in components:
                components.append(whole)
            output = replace(output, recipe=SizedCovariance(components.index(whole), recipe.over))
        outputs.append(output)
    changed = tuple(outputs)
    return node if changed == node.outputs else pruned(replace(node, components=tuple(components)), changed)


def _whole(product: Component, size: int, facts: Facts) -> Component | None:
    """What all rows make together, if all of them count."""
    if not isinstance(product, ProductSum) or product.times is None:
        return None
    values = map(facts.value, product.arguments)
    if product.filter is not None or any(v.nullable or not v.finite for v in values):
        return None
    return Comoment(product.arg, times=product.times, rows=size, every_row=True)
