"""Limits that a search finds: error and time beside limits that are declared, known, or found by others.

    python -m benchmarks.limits [--size short] [--folder DIR] [--json FILE]

Six numbers of TPC-H and 28 made-up sets of totals per unit, at ε of 0.1, 0.8 and 10. Each release is drawn by the real
sampler from the real totals and judged by the real rules, without the engine; a few run through the whole product, to
show that both agree. `dpsql` is told no limit. The others:

oracle    the limit with the least mean error of all, which nobody knows
declared  limits of 1, 2, 10 times the largest total, and half of it
R2T       published figures (Dong et al., R2T, SIGMOD 2022), with a bound of 10⁶ and more
Google    its approximate bounds with half of ε, by our own re-make of the published algorithm

What is measured is |answer - truth| / truth in percent. A run that ends without an answer (DP212: no octave holds
enough units) is no error, and is counted apart.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np

from benchmarks.frame import Figures, Settings, command, number, table, times
from benchmarks.limit_rules import Errors, Totals, approximate_bounds, known, oracle, searched
from benchmarks.limits_asked import asked, paces
from benchmarks.tpch import made

TITLE = "Limits that nobody declared"
EPSILONS = (Fraction(1, 10), Fraction(8, 10), Fraction(10))
MIDDLE = 0.8
"""The ε of the targets."""


@dataclass(frozen=True, slots=True)
class Row:
    """One number of TPC-H. unit: whose totals. source: FROM and WHERE. total: what is added up, in integer units."""

    name: str
    unit: str
    id: str
    total: str
    source: str

    @property
    def sql(self) -> str:
        """The totals of all units."""
        return f"SELECT SUM({self.total})::BIGINT AS total {self.source} GROUP BY {self.id} HAVING total > 0"


_LINES = "FROM orders JOIN lineitem ON l_orderkey = o_orderkey"
ROWS = (
    Row("Q3", "customer", "o_custkey", "1", f"{_LINES} WHERE o_orderdate < '1997-01-01' AND l_shipdate > '1994-01-01'"),
    Row("Q10", "customer", "o_custkey", "1", "FROM orders"),
    Row("Q18", "customer", "o_custkey", "100 * l_quantity", _LINES),
    Row("Q12", "order", "l_orderkey", "1", "FROM lineitem"),
    Row("Q11", "supplier", "ps_suppkey", "100 * ps_supplycost * ps_availqty", "FROM partsupp"),
    Row("Q20", "supplier", "l_suppkey", "1", "FROM lineitem"),
)
R2T: dict[tuple[str, Fraction], float] = {
    ("Q3", Fraction(1, 10)): 2.0,
    ("Q3", Fraction(8, 10)): 0.25,
    ("Q10", Fraction(8, 10)): 0.18,
    ("Q18", Fraction(8, 10)): 0.14,
    ("Q18", Fraction(10)): 0.012,
    ("Q12", Fraction(8, 10)): 0.022,
    ("Q11", Fraction(1, 10)): 11,
    ("Q11", Fraction(8, 10)): 1.3,
    ("Q20", Fraction(8, 10)): 0.67,
}
"""Relative errors in percent, as published."""
MADE_UP = ("ones", "Poisson 20", "lognormal 1", "lognormal 2", "Pareto 1.1", "Pareto 1.5", "Pareto 2.5")
SIZES = (100, 1_000, 10_000, 100_000)
TIMES = {"declared 1 ×": Fraction(1), "2 ×": Fraction(2), "10 ×": Fraction(10), "½": Fraction(1, 2)}
WAYS = ("oracle", "dpsql", *TIMES, "Google")


def made_up(kind: str, n: int) -> Totals:
    """Totals of n units, the same every time."""
    rng = np.random.default_rng([n, MADE_UP.index(kind)])
    name, _, value = kind.partition(" ")
    match name:
        case "ones":
            found = np.ones(n)
        case "Poisson":
            found = rng.poisson(float(value), n) + 1.0
        case "lognormal":
            found = 100 * rng.lognormal(0, float(value), n)
        case _:
            found = 100 * (1 + rng.pareto(float(value), n))
    return Totals(np.sort(np.ceil(found).astype(np.int64)))


def ways(totals: Totals, epsilon: Fraction, runs: int) -> dict[str, Errors]:
    """The errors of every contestant."""
    largest = int(totals.sorted[-1])
    found = {
        "oracle": known(oracle(totals, epsilon), totals, epsilon, runs),
        "dpsql": searched(totals, epsilon, runs),
        "Google": approximate_bounds(totals, epsilon, runs),
    }
    for name, factor in TIMES.items():
        found[name] = known(max(1, math.ceil(largest * factor)), totals, epsilon, runs)
    return found


def told(errors: Errors) -> Figures:
    """Median, p90, p99.5, and the share of runs without an answer."""
    answered = [e for e in errors if e is not None]
    quantiles = {f"p{q}": float(np.quantile(answered, q / 100)) if answered else None for q in (50, 90, 99.5)}
    return quantiles | {"without": 1 - len(answered) / len(errors)}


def measure(totals: Totals, epsilon: Fraction, runs: int) -> Figures:
    """All contestants on one set of totals."""
    return {name: told(errors) for name, errors in ways(totals, epsilon, runs).items()}


def run(settings: Settings) -> Figures:
    """All rows and sets, at every ε."""
    runs, scale = settings.pick(20, 400, 2_000), settings.pick("0.01", "1", "1")
    sizes = settings.pick(SIZES[:1], SIZES, SIZES)
    folder = made(settings.folder, scale)
    rows = tpch_totals(folder)
    return {
        "scale": scale,
        "runs": runs,
        "sizes": sizes,
        "tpch": [
            {"row": name, "epsilon": float(epsilon), "ways": measure(totals, epsilon, runs)}
            for name, totals in rows
            for epsilon in EPSILONS
        ],
        "made_up": [of_sets(epsilon, sizes, runs) for epsilon in EPSILONS],
        "asked": asked(folder, dict(rows), settings.pick(1, 5, 20)),
        "paces": paces(folder, settings.turns(1, 9, 15)),
    }


def of_sets(epsilon: Fraction, sizes: Sequence[int], runs: int) -> Figures:
    """Over the made-up sets: the geometric mean of the median error over the oracle's, where most runs have an answer;
    and the sets where some have none.
    """
    ratios: dict[str, list[float]] = {way: [] for way in WAYS}
    without = []
    for kind in MADE_UP:
        for n in sizes:
            found = measure(made_up(kind, n), epsilon, runs)
            for way, figures in found.items():
                if figures["without"] < 0.5:
                    ratios[way].append(figures["p50"] / found["oracle"]["p50"])
            if found["dpsql"]["without"]:
                without.append(f"{kind}, {n:,} units: {found['dpsql']['without']:.1%}")
    over = {way: statistics.geometric_mean(each) if each else None for way, each in ratios.items()}
    sets = {way: len(each) for way, each in ratios.items()}
    return {"epsilon": float(epsilon), "over_oracle": over, "sets": sets, "without": without}


def tpch_totals(folder: Path) -> list[tuple[str, Totals]]:
    """The totals of the units of each row."""
    found = []
    with duckdb.connect() as con:
        for name in ("orders", "lineitem", "partsupp"):
            con.execute(f"CREATE VIEW {name} AS FROM '{folder / 'data' / f'{name}.parquet'}'")
        for row in ROWS:
            numbers = con.execute(row.sql).fetchnumpy()["total"]
            found.append((row.name, Totals(np.sort(np.asarray(numbers, dtype=np.int64)))))
    return found


def markdown(figures: Figures) -> str:
    """The tables."""
    sets, others = figures["made_up"], [way for way in WAYS if way != "oracle"]
    units = ", ".join(f"{n:,}" for n in figures["sizes"])
    parts = [
        f"Median error in percent, TPC-H at scale {figures['scale']}, {figures['runs']} releases each, drawn by the "
        "real sampler and judged by the real rules. `dpsql` is told no limit; *oracle* is the best fixed limit in "
        "hindsight; *declared* limits are multiples of the largest total; *Google* is our re-make of its approximate "
        "bounds with half of ε; *R2T* are published figures.",
        table(("", "ε", *WAYS, "R2T", "dpsql p99.5 / oracle p90"), map(_tpch_row, figures["tpch"])),
        "The last column compares tails. One search in about 1,000 takes noise for units: its ± is wide, never "
        "wrong, and where two of so many releases do, p99.5 shows it.",
        f"{len(MADE_UP)} kinds of totals of {units} units: geometric mean of the median error over the oracle's, over "
        "the sets where most runs have an answer; in brackets how many these are.",
        table(
            ("ε", *others),
            ([r["epsilon"], *(f"{number(r['over_oracle'][w])} ({r['sets'][w]})" for w in others)] for r in sets),
            left=0,
        ),
        "Runs of dpsql without an answer (DP212: no octave holds enough units), of all runs; they are charged:",
        "\n".join(f"- ε {r['epsilon']}: {'; '.join(r['without']) or 'none'}" for r in sets),
        f"Through the whole product at ε {MIDDLE}, in SQL's units: limits that it found, and those of releases "
        "that are drawn without the engine.",
        table(
            ("", "limit: runs", "drawn: runs", "median error, %"),
            ([r["row"], _counted(r["limits"]), _counted(r["drawn"]), _percent(r["error"])] for r in figures["asked"]),
            left=3,
        ),
        "Time of a query with a search, over that of the same query whose limit is declared.",
        table(
            ("", "× declared", "× declared, processor time"),
            (
                [name, times(each["search"]["over"]["declared"]), number(each["search"]["cpu_over"]["declared"])]
                for name, each in figures["paces"].items()
            ),
        ),
    ]
    return "\n\n".join(parts)


def _tpch_row(r: Figures) -> list[object]:
    published = R2T.get((r["row"], Fraction(str(r["epsilon"]))))
    own, best = r["ways"]["dpsql"]["p99.5"], r["ways"]["oracle"]["p90"]
    medians = [_percent(r["ways"][w]["p50"]) for w in WAYS]
    return [r["row"], r["epsilon"], *medians, _percent(published), number(own / best if own and best else None)]


def _counted(runs: Mapping[str, int]) -> str:
    return ", ".join(f"{limit}: {n}" for limit, n in runs.items())


def _percent(x: float | None) -> str:
    return "–" if x is None else f"{x:.2g}"


if __name__ == "__main__":
    command(__doc__, "limits", run, markdown)
