"""Error of counts within one price: each asked alone, from stored GROUP BYs, and as a batch.

    python -m benchmarks.batch [--queries 100,1000] [--rho 0.005] [--folder DIR] [--picture FILE.svg]

Counts over the real flights, of one to three columns with =, ranges and IN, drawn once from a fixed seed. Alone and
GROUP BYs are the exact standard deviations at equal parts of ρ, repeated questions free; the batch is run, and its
errors are those against the data, beside what it predicts of itself.
"""

from __future__ import annotations

import argparse
import math
import random
import tempfile
import time
from pathlib import Path

import duckdb

import dpsql
from benchmarks.quantile_sets import _flights as flights_file

POLICY = """
version: 1
name: flights
units: {flight: {}}
privacy: {accountant: zcdp}
tables:
  flights:
    source: read_parquet('FILE')
    unit: {of: flight, rows: 1}
    columns:
      month: {type: bigint, bounds: [1, 12], nullable: false}
      dep_delay: {type: bigint, bounds: [-30, 180]}
      carrier: {type: varchar, domain: [CARRIERS], nullable: false}
      origin: {type: varchar, domain: [EWR, JFK, LGA], nullable: false}
      hour: {type: bigint, bounds: [0, 23], nullable: false}
budgets: {total: {rho: 1000}}
ledger: flights.sqlite
"""
COLUMNS = ("carrier", "origin", "month", "hour", "dep_delay")


def condition(column: str, carriers: list[str], dice: random.Random) -> str:
    """One condition on a column."""
    match column:
        case "carrier":
            chosen = [f"'{c}'" for c in sorted(dice.sample(carriers, dice.choice([1, 1, 3, 5])))]
            return f"carrier IN ({', '.join(chosen)})"
        case "origin":
            return f"origin = '{dice.choice(['EWR', 'JFK', 'LGA'])}'"
        case "dep_delay":
            return f"dep_delay {dice.choice(['>', '<='])} {dice.choice([-5, 0, 15, 30, 60, 120])}"
        case _:
            low, high = (1, 12) if column == "month" else (0, 23)
            first = dice.randint(low, high)
            return f"{column} BETWEEN {first} AND {dice.randint(first, high)}"


def questions(count: int, carriers: list[str]) -> list[tuple[tuple[str, ...], str]]:
    """Queries, each with the columns that it reads. Always the same."""
    dice = random.Random(7)
    found = []
    for _ in range(count):
        columns = tuple(sorted(dice.sample(COLUMNS, dice.choice([1, 2, 2, 3]))))
        found.append((columns, " AND ".join(condition(c, carriers, dice) for c in columns)))
    return found


def main() -> None:
    """Print a line for each number of queries."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--queries", default="100,1000")
    parser.add_argument("--rho", type=float, default=0.005)
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--folder", type=Path, default=Path("benchmarks/cache"))
    given = parser.parse_args()
    file = flights_file(given.folder)
    data = duckdb.connect()
    data.execute(f"CREATE TABLE flights AS SELECT * FROM '{file}'")
    carriers = [c for (c,) in data.execute("SELECT DISTINCT carrier FROM flights ORDER BY 1").fetchall()]
    print(
        f"dpsql {dpsql.__version__}, duckdb {duckdb.__version__}, ρ {given.rho}; root of the mean square error in rows"
    )
    lines: list[tuple[int, float, float, float]] = []
    print("queries  alone  group-bys  batch  predicted  seconds of processor")
    for count in map(int, given.queries.split(",")):
        asked = questions(count, carriers)
        alone = math.sqrt(len(set(asked)) / (2 * given.rho))
        sets = {columns for columns, _ in asked}
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder) / "flights.yaml"
            text = POLICY.replace("FILE", str(file.resolve())).replace(
                "CARRIERS", ", ".join(f"'{c}'" for c in carriers)
            )
            place.write_text(text, encoding="utf-8")
            with dpsql.connect(place, ledger=":memory:") as con:
                begun = time.process_time()
                batch = con.batch([f"SELECT COUNT(*) AS n FROM flights WHERE {w}" for _, w in asked])
                answers = batch.run(rho=str(given.rho))
                seconds = time.process_time() - begun
                # a count from the GROUP BY of its columns, over the same classes, adds up the cells that it holds
                cells = [n.weights.sum() for t in batch.design.tables.values() for c in t.numbers for n in c]
        grouped = math.sqrt(sum(cells) / len(cells) * len(sets) / (2 * given.rho))
        truth = [data.execute(f"SELECT COUNT(*) FROM flights WHERE {w}").fetchall()[0][0] for _, w in asked]
        errors = [a.rows[0][0] - t for a, t in zip(answers, truth, strict=True)]
        rms, predicted = math.sqrt(sum(e * e for e in errors) / count), answers.predicted_error
        print(f"{count:>7} {alone:>6.0f} {grouped:>10.0f} {rms:>6.0f} {predicted:>10.0f} {seconds:>21.1f}")
        lines.append((count, alone, grouped, predicted))
    if given.picture is not None:
        draw(lines, given.rho, given.picture)


def draw(lines: list[tuple[int, float, float, float]], rho: float, target: Path) -> None:
    """Error against the number of questions, for each way to ask them."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    with mpl.rc_context(
        {"svg.fonttype": "none", "svg.hashsalt": "dpsql", "font.family": "sans-serif", "font.size": 11}
    ):
        figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
        counts = [line[0] for line in lines]
        styles = (("each alone", "#b0413e"), ("stored GROUP BYs", "#c98f2b"), ("a batch", "#2a6f4e"))
        for i, (name, color) in enumerate(styles, 1):
            errors = [line[i] for line in lines]
            axes.plot(counts, errors, color=color, marker="o", linewidth=2)
            axes.annotate(
                name,
                (counts[-1], errors[-1]),
                (0, -17 if i == 2 else 8),
                textcoords="offset points",
                ha="right",
                color=color,
            )
        axes.set(xscale="log", yscale="log", xlabel="questions within one price", ylabel="error of a count (rows)")
        axes.set_title(f"336,776 flights, ρ = {rho:g} in all", fontsize=11, loc="left")
        for axis, marks in ((axes.xaxis, (10, 30, 100, 300, 1000, 3000)), (axes.yaxis, (20, 50, 100, 200, 500))):
            axis.set_major_locator(FixedLocator(marks))
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
            axis.set_minor_locator(NullLocator())
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
        figure.savefig(target, facecolor="white", metadata={"Date": None})


if __name__ == "__main__":
    main()
