"""The tables of `dashboards.py` and the counts that are asked of them.

Both tables have some 95,000 cells: of a larger table neither MWEM nor PMW could hold a histogram. So delays of flights
come in seven classes. The census is made up (no real one is in a package): incomes, trades and marriages depend on age
and schooling as one would expect, drawn from a fixed seed.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from benchmarks.quantile_sets import _flights as flights_file
from dpsql.planner.batch.workload import Number

Array = NDArray[np.float64]
LATE = (
    "(CASE WHEN dep_delay IS NULL THEN 0 WHEN dep_delay < 0 THEN 1 WHEN dep_delay < 15 THEN 2 "
    "WHEN dep_delay < 30 THEN 3 WHEN dep_delay < 60 THEN 4 WHEN dep_delay < 120 THEN 5 ELSE 6 END)::BIGINT"
)
PEOPLE = 48_842


@dataclass(frozen=True, slots=True)
class Question:
    """A count. columns: by their place in the table, sorted. chosen: of each of them the values that count."""

    columns: tuple[int, ...]
    chosen: tuple[tuple[int, ...], ...]
    where: str

    def number(self, sizes: Sequence[int]) -> Number:
        """Its weights on the cells of its columns."""
        weights = np.ones(())
        for column, values in zip(self.columns, self.chosen, strict=True):
            axis = np.zeros(sizes[column])
            axis[list(values)] = 1
            weights = np.multiply.outer(weights, axis)
        return Number(self.columns, weights)


@dataclass(frozen=True)
class Table:
    """A table of rows. columns: name → its values in order; whole numbers are asked by ranges, texts by = and IN."""

    name: str
    file: Path
    columns: Mapping[str, Sequence[Any]]

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many values each column has."""
        return tuple(len(values) for values in self.columns.values())

    @cached_property
    def cells(self) -> Array:
        """How many rows each cell has."""
        names = list(self.columns)
        found = np.zeros(self.sizes)
        places = [{value: i for i, value in enumerate(values)} for values in self.columns.values()]
        sql = f"SELECT {', '.join(names)}, COUNT(*) FROM '{self.file}' GROUP BY ALL"
        for *row, count in duckdb.sql(sql).fetchall():
            found[tuple(at[value] for at, value in zip(places, row, strict=True))] = count
        return found

    def marginal(self, columns: Sequence[int], cells: Array | None = None) -> Array:
        """Cells added up over all but these columns."""
        gone = tuple(i for i in range(len(self.sizes)) if i not in columns)
        found: Array = (self.cells if cells is None else cells).sum(axis=gone)
        return found

    def policy(self, gaussian: bool) -> str:
        """One row is the privacy unit."""
        lines = [
            f"      {name}: {{type: bigint, bounds: [{values[0]}, {values[-1]}], nullable: false}}"
            if isinstance(values[0], int)
            else f"      {name}: {{type: varchar, domain: [{', '.join(values)}], nullable: false}}"
            for name, values in self.columns.items()
        ]
        accountant, total = ("zcdp", "rho") if gaussian else ("pure_dp", "epsilon")
        return "\n".join([
            "version: 1", "name: dashboards", "units: {row: {}}", f"privacy: {{accountant: {accountant}}}",
            "tables:", "  t:", f"    source: read_parquet('{self.file.resolve()}')", "    unit: {of: row, rows: 1}",
            "    columns:", *lines, f"budgets: {{total: {{{total}: 100000}}}}", "ledger: ledger.sqlite", "",
        ])  # fmt: skip

    def questions(self, count: int) -> list[Question]:
        """Counts on one to three columns, always the same; some come again."""
        dice = random.Random(7)
        return [self._question(dice) for _ in range(count)]

    def _question(self, dice: random.Random) -> Question:
        columns = tuple(sorted(dice.sample(range(len(self.sizes)), dice.choice([1, 2, 2, 3]))))
        chosen, terms = [], []
        for column in columns:
            name, values = list(self.columns.items())[column]
            if isinstance(values[0], int):
                low = dice.randrange(len(values))
                places = list(range(low, dice.randrange(low, len(values)) + 1))
                terms.append(f"{name} BETWEEN {values[low]} AND {values[places[-1]]}")
            else:
                places = sorted(
                    dice.sample(range(len(values)), dice.choice([n for n in (1, 1, 3, 5) if n <= len(values)]))
                )
                terms.append(
                    f"{name} IN ({', '.join(repr(values[i]) for i in places)})"
                    if len(places) > 1
                    else f"{name} = '{values[places[0]]}'"
                )
            chosen.append(tuple(places))
        return Question(columns, tuple(chosen), " AND ".join(terms))


def flights(folder: Path) -> Table:
    """336,776 real flights by carrier, origin, month, hour and class of delay."""
    source, file = flights_file(folder), folder / "dashboard-flights.parquet"
    if not file.exists():
        duckdb.sql(f"COPY (SELECT carrier, origin, month, hour, {LATE} AS late FROM '{source}') TO '{file}'")
    carriers = [c for (c,) in duckdb.sql(f"SELECT DISTINCT carrier FROM '{file}' ORDER BY 1").fetchall()]
    return Table("flights", file, {
        "carrier": carriers, "origin": ["EWR", "JFK", "LGA"], "month": range(1, 13), "hour": range(24),
        "late": range(7),
    })  # fmt: skip


def census(folder: Path) -> Table:
    """As many people as in the well-known Adult extract of a census, all made up."""
    columns: dict[str, Sequence[Any]] = {
        "age": range(15), "education": range(16), "marital": [f"m{i}" for i in range(7)],
        "occupation": [f"o{i}" for i in range(14)], "sex": ["f", "m"], "income": ["low", "high"],
    }  # fmt: skip
    file = folder / "dashboard-census.parquet"
    if not file.exists():
        rng = np.random.default_rng(7)
        age = np.minimum(rng.gamma(3.0, 1.6, PEOPLE).astype(int), 14)
        education = np.clip(np.round(rng.normal(9 - 0.15 * np.abs(age - 5), 2.6)), 0, 15).astype(int)
        sex = (rng.random(PEOPLE) < 0.67).astype(int)
        marital = np.where(
            rng.random(PEOPLE) < 0.75 / (1 + np.exp(3.0 - age)), 0, np.minimum(1 + rng.geometric(0.5, PEOPLE), 6)
        )
        marital = np.where((marital > 0) & (age < 4), 1, marital)
        occupation = np.clip(np.round(rng.normal(0.75 * education + 2 * sex, 2.5)), 0, 13).astype(int)
        chance = 1 / (1 + np.exp(7.5 - 0.45 * education - 0.25 * np.minimum(age, 8) - 1.2 * (marital == 0) - 0.4 * sex))
        places = {"age": age, "education": education, "marital": marital, "occupation": occupation, "sex": sex,
                  "income": (rng.random(PEOPLE) < chance).astype(int)}  # fmt: skip
        rows = {name: np.asarray(columns[name])[place] for name, place in places.items()}
        con = duckdb.connect()
        con.register("made_up", rows)
        con.sql(f"COPY (FROM made_up) TO '{file}'")
    return Table("census", file, columns)
