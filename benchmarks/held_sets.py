"""How often intervals under limits that a search found hold sums of made-up totals per unit: part of `truth.py`.

    python -m benchmarks.held_sets [--size short] [--json FILE]

28 sets of `limits.py` and 12 whose tails are thin, through the whole product at ε 1, several runs each: of how many
answers the interval at 95 % holds the sum, which knows no limit; and how many would hold it if what the limit cuts, as
octaves tell it, were not in it. Answers without an interval, of which the search saw too little, count apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from unittest.mock import patch

import duckdb
import numpy as np

import dpsql
from benchmarks.frame import Figures, Settings, command, number, table
from benchmarks.limits import MADE_UP, SIZES, made_up
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.planner.postprocessing.intervals import linear
from dpsql.planner.postprocessing.searches.octaves import SearchResult, WhatIsCut, what_is_cut

TITLE = "Intervals of made-up totals"
THIN = ("Poisson 4", "geometric 10", "uniform 100")
SUM = "SELECT SUM(total) AS x FROM totals"


def thin(kind: str, n: int) -> np.ndarray:
    """Totals of n units, the same every time, of which none is far above the others."""
    rng = np.random.default_rng([n, 100 + THIN.index(kind)])
    name, _, value = kind.partition(" ")
    match name:
        case "Poisson":
            return rng.poisson(float(value), n) + 1
        case "geometric":
            return rng.geometric(1 / float(value), n)
        case _:
            return rng.integers(1, int(value) + 1, n)


@contextmanager
def nothing_told() -> Iterator[None]:
    """The twin: intervals leave out what limits cut."""

    def without(found: SearchResult) -> WhatIsCut | None:
        told = what_is_cut(found)
        return None if told is None else replace(told, each={})

    with patch.object(linear, "what_is_cut", without):
        yield


def held(totals: np.ndarray, runs: int) -> Figures:
    """Of so many answers: with an interval, holding the sum; and of the twin. one_sided: with one end alone."""
    policy = dpsql.Policy.from_dict({
        "version": 1, "name": "totals", "search": "auto", "units": {"unit": {}},
        "tables": {"totals": {"unit": {"column": "id"}, "columns": {
            "id": {"type": "bigint", "nullable": False}, "total": {"type": "bigint", "nullable": False}}}},
        "budgets": {"total": {"epsilon": 10**6}},
    })  # fmt: skip
    data, true = duckdb.connect(), int(totals.sum())
    data.register("numbers", {"id": np.arange(len(totals)), "total": totals.astype(np.int64)})
    data.execute("CREATE TABLE totals AS SELECT id, total FROM numbers")
    data.unregister("numbers")
    found = {"runs": runs, "inside": 0, "twin": 0, "one_sided": 0, "none": 0}
    with dpsql.connect(data, policy=policy, ledger=MemoryLedger(), optimizers="ours") as con:
        for run in range(runs):  # at a little more each time, so that octaves are drawn, too
            answer = con.sql(SUM).run(epsilon=1 + Fraction(run, 1000), fresh=True)
            (row,) = answer.intervals()
            found["none"] += row["x"] is None
            low, high = row["x"] or (None, None)
            found["one_sided"] += (low is None) != (high is None)
            found["inside"] += row["x"] is not None and (low or 0) <= true and (high is None or true <= high)
            with nothing_told():
                (row,) = con.sql(SUM).run(epsilon=1 + Fraction(run, 1000)).intervals()
            low, high = row["x"] or (None, None)
            found["twin"] += row["x"] is not None and (low or 0) <= true and (high is None or true <= high)
    return found


def run(settings: Settings) -> Figures:
    """All sets."""
    runs, sizes = settings.turns(2, 10, 40), settings.pick(SIZES[:1], SIZES, SIZES)
    sets = [(kind, n, made_up(kind, n).sorted, False) for kind in MADE_UP for n in sizes]
    sets += [(kind, n, thin(kind, n), True) for kind in THIN for n in sizes]
    return {"sets": [{"kind": kind, "units": n, "thin": is_thin} | held(x, runs) for kind, n, x, is_thin in sets]}


def markdown(figures: Figures) -> str:
    """The tables."""
    of = {"all sets": figures["sets"], "thin tails": [s for s in figures["sets"] if s["thin"]]}
    rows = [
        [name, len(sets), number(_percent(sets, "inside")), number(_percent(sets, "twin")),
         sum(s["one_sided"] for s in sets), sum(s["none"] for s in sets)]
        for name, sets in of.items()
    ]  # fmt: skip
    worst = [s for s in figures["sets"] if s["inside"] < 0.95 * (s["runs"] - s["none"])]
    told = [f"- {s['kind']}, {s['units']:,} units: {s['inside']} of {s['runs'] - s['none']}" for s in worst]
    return "\n\n".join(
        [
            table(("", "sets", "held, %", "without what is cut, %", "one end", "no interval"), rows),
            "Sets of which fewer than 95 % held:",
            "\n".join(told) or "- none",
        ]
    )


def _percent(sets: Sequence[Figures], name: str) -> float | None:
    """Of the answers that have an interval."""
    there = sum(s["runs"] - s["none"] for s in sets)
    return 100 * sum(s[name] for s in sets) / there if there else None


if __name__ == "__main__":
    command(__doc__, "held_sets", run, markdown)
