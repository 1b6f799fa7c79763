"""The quantile tree of Google's differential privacy library, by PyDP: four levels of sixteen branches, its default.

Each call draws the noise of all nodes that it visits anew.
"""

from __future__ import annotations

from typing import Any

from pydp.algorithms.quantile_tree import QuantileTree
from quantile_sets import Draw, asked, values_of
from serve import Asked, serve


def open_task(task: dict[str, Any]) -> dict[str, Asked | str]:
    def load(one: dict[str, Any]) -> Any:
        tree = QuantileTree(one["lower"], one["upper"], 4, 16)
        for value in values_of(one):
            tree.add_entry(value)
        return tree

    def draw_of(tree: Any, p: float, epsilon: float) -> Draw:
        return lambda: float(tree.compute_quantiles(epsilon, 0.0, 1, 1, [p], "laplace")[0])

    return asked(task, load, draw_of)


serve(open_task, "python-dp")
