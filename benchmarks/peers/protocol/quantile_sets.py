"""What the adapters of quantiles share, with nothing but the standard library.

Task: `sets` (name, `file` of doubles as the machine has them, `lower`, `upper`, `step`: 1 where values are integers,
else null), `quantiles` and `epsilons` (numbers), `draws` (how many are wanted), `seconds` (of processor time,
after which no further one is begun). A query is `name|quantile|epsilon`; its one row holds all answers.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

from serve import Asked, Rows

Draw = Callable[[], float]
Opened = Callable[[Any, float, float], Draw]


def values_of(one: dict[str, Any]) -> array[float]:
    """The values of a set."""
    found = array("d")
    found.frombytes(Path(one["file"]).read_bytes())
    return found


def asked(task: dict[str, Any], load: Callable[[dict[str, Any]], Any], draw_of: Opened) -> dict[str, Asked | str]:
    """All queries of a task. load: a set as the library wants it; draw_of: of that, a quantile and an ε, one draw."""
    held: dict[str, Any] = {}

    def query(one: dict[str, Any], p: float, epsilon: float) -> Asked:
        def run() -> Rows:
            if one["name"] not in held:
                held.clear()
                held[one["name"]] = load(one)
            draw, found = draw_of(held[one["name"]], p, epsilon), []
            begun = time.process_time()
            while len(found) < task["draws"] and (not found or time.process_time() - begun < task["seconds"]):
                answer = draw()
                found.append(round(answer) * 1.0 if one["step"] else answer)
            return [(None, found)]

        return run

    every = product(task["sets"], task["quantiles"], task["epsilons"])
    return {f"{one['name']}|{p}|{epsilon}": query(one, p, epsilon) for one, p, epsilon in every}


def spaced(one: dict[str, Any], most: int) -> list[float]:
    """So many candidates from bound to bound, at equal steps; every integer where there are no more."""
    lower, upper = one["lower"], one["upper"]
    if one["step"] and upper - lower < most:
        return [lower + i * 1.0 for i in range(int(upper - lower) + 1)]
    found = [lower + (upper - lower) * i / (most - 1) for i in range(most)]
    return [float(round(x)) for x in found] if one["step"] else found
