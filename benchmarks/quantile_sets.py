"""The columns that `quantiles.py` measures on, each with a policy whose unit is one row, and whole queries of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
from numpy.typing import NDArray

import dpsql
from benchmarks.data import kept
from benchmarks.tpch import made
from dpsql.core.ir.components import QuantileChoice
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.core.noise.measurement import Measurement
from dpsql.core.noise.mechanisms import Exponential
from dpsql.core.noise.sampler import powers
from dpsql.core.noise.sampler.entropy import Kernel
from dpsql.core.noise.sampler.exponential_mechanism import CellChoice
from dpsql.core.numbers.cells import Cells
from dpsql.core.release.drawing import EngineAsk
from dpsql.core.release.histograms import Histograms
from examples.flights.build import build

POLICY = """\
version: 1
name: benchmark-quantiles
tables:
  t:
    source: read_parquet('{file}')
    unit: {{rows: 1}}
    columns:
      v: {{type: "{type}", bounds: [{lower}, {upper}], nullable: false}}
budgets:
  total: {{epsilon: 1e18}}
"""
Values = NDArray[np.float64]
_KERNEL = Kernel()


@dataclass(frozen=True, slots=True)
class Set:
    """One column. type: of SQL. lower, upper: its declared bounds. tied, tailed: what a quantile has to cope with.

    rows: a folder, a scale of TPC-H, and a connection → SQL of its column v. tiny: of fewer than 1,000 rows.
    """

    name: str
    type: str
    lower: float | str
    upper: float | str
    rows: Callable[[duckdb.DuckDBPyConnection, Path, str], str]
    tied: bool = False
    tailed: bool = False

    @property
    def timed(self) -> bool:
        """Whether it holds timestamps: others are told seconds of 2013."""
        return self.type == "timestamp"

    @property
    def step(self) -> int | None:
        """1 where values are integers."""
        return 1 if self.type in ("bigint", "timestamp") else None


def _delays(rows: str) -> Callable[[duckdb.DuckDBPyConnection, Path, str], str]:
    def sql(con: duckdb.DuckDBPyConnection, folder: Path, scale: str) -> str:
        return f"SELECT dep_delay AS v FROM '{_flights(folder)}' WHERE dep_delay IS NOT NULL {rows}"

    return sql


def _hours(con: duckdb.DuckDBPyConnection, folder: Path, scale: str) -> str:
    return f"SELECT time_hour AS v FROM '{_flights(folder)}'"


def _prices(con: duckdb.DuckDBPyConnection, folder: Path, scale: str) -> str:
    return f"SELECT l_extendedprice AS v FROM '{made(folder, scale) / 'data' / 'lineitem.parquet'}'"


def _incomes(n: int) -> Callable[[duckdb.DuckDBPyConnection, Path, str], str]:
    """Nine in ten lognormal around 30,000, one in ten Pareto of shape 1.5 from 60,000; in whole cents."""

    def sql(con: duckdb.DuckDBPyConnection, folder: Path, scale: str) -> str:
        rng = np.random.default_rng(n)
        many, few = 30_000 * rng.lognormal(0, 0.6, n), 60_000 * (1 + rng.pareto(1.5, n))
        con.register("made_up", {"v": np.floor(np.where(rng.random(n) < 0.9, many, few) * 100) / 100})
        return "SELECT v FROM made_up"

    return sql


def _shares(n: int) -> Callable[[duckdb.DuckDBPyConnection, Path, str], str]:
    """0: 30 %, 1: 18 %, 2: 50 %, 3: 2 %. The median is 2, and only two in a hundred lie above it."""
    return lambda con, folder, scale: (
        "SELECT CASE WHEN i % 100 < 30 THEN 0 WHEN i % 100 < 48 THEN 1 WHEN i % 100 < 98 THEN 2 ELSE 3 END::BIGINT "
        f"AS v FROM range({n}) AS r(i)"
    )


SETS = (
    Set("delays, 50 rows", "bigint", -30, 180, _delays("ORDER BY hash(carrier, flight, time_hour) LIMIT 50"), True),
    Set("delays, all", "bigint", -30, 180, _delays(""), True),
    Set("four values, 1,000 rows", "bigint", 0, 100, _shares(1_000), True),
    Set("incomes, 1,000 rows, to 10⁶", "decimal(12,2)", 0, 10**6, _incomes(1_000), tailed=True),
    Set("incomes, 1,000 rows, to 10⁹", "decimal(12,2)", 0, 10**9, _incomes(1_000), tailed=True),
    Set("incomes, 100,000 rows, to 10⁶", "decimal(12,2)", 0, 10**6, _incomes(100_000), tailed=True),
    Set("incomes, 100,000 rows, to 10⁹", "decimal(12,2)", 0, 10**9, _incomes(100_000), tailed=True),
    Set("TPC-H prices", "decimal(15,2)", 900, 105_000, _prices),
    Set("timestamps of flights", "timestamp", "2013-01-01", "2014-01-02", _hours, True),
)


@dataclass(frozen=True)
class Column:
    """A set on disk. sorted: its values as others are told them, clipped to the bounds, from the least."""

    set: Set
    connection: dpsql.Connection
    file: Path
    sorted: Values
    lower: float
    upper: float

    def task(self) -> dict[str, object]:
        """What an adapter is told of it."""
        own = self.set
        return {"name": own.name, "file": str(self.file), "lower": self.lower, "upper": self.upper, "step": own.step}

    def query(self, p: Fraction) -> str:
        """SQL of a quantile."""
        return f"SELECT QUANTILE_DISC(v, {float(p)}) AS q FROM t"

    def number(self, value: object) -> float:
        """An answer as others give it."""
        return _seconds(value) if self.set.timed else float(value)  # type: ignore[arg-type]

    def drawn(self, p: Fraction, epsilon: Fraction, draws: int) -> tuple[Values, Cells]:
        """Answers as the product gives them, without asking the engine for the histogram each time."""
        plan = self.connection.sql(self.query(p)).plan(epsilon=epsilon)
        (release,) = plan.releases
        (measurement,), (statement,) = release.measured.measurements, release.statements
        assert statement.cells is not None
        raw = EngineAsk(self.connection.service.engine, 0)(statement)
        found = Histograms.of(statement.cells, np.zeros(raw.height, np.intp), 1, *raw.columns)
        cells = chosen(found, measurement, draws)
        grid = measurement.component.grid
        middles = np.array([float(statement.cells.middle(cell) * grid) for cell in cells])
        return (middles / 1e6 - START if self.set.timed else middles), statement.cells

    def asked(self, p: Fraction, epsilon: Fraction, times: int) -> Values:
        """Answers of whole queries."""
        query = self.connection.sql(self.query(p))
        answers = [query.run(epsilon=epsilon, fresh=True).rows[0][0] for _ in range(times)]
        return np.array([self.number(answer) for answer in answers])


def chosen(found: Histograms, measurement: Measurement, draws: int, group: int = 0) -> list[int]:
    """Cells that the mechanism chooses."""
    assert isinstance(measurement.mechanism, Exponential) and isinstance(measurement.component, QuantileChoice)
    p = measurement.component.p
    first, counts, scores = found.runs(group, p.numerator, p.denominator)
    choice = CellChoice(counts, scores, powers(measurement.mechanism.eta))
    drawn = (choice.draw(_KERNEL) for _ in range(draws))
    return [first[run] + place for run, place in drawn]


START = float(np.datetime64("2013-01-01", "s").astype(np.int64))


def _seconds(moment: object) -> float:
    return float(np.datetime64(moment, "us").astype(np.int64)) / 1e6 - START  # type: ignore[call-overload]


def opened(one: Set, folder: Path, scale: str) -> Column:
    """The set as Parquet beside its policy, and as doubles for others; made anew, but of kept tables."""
    home = folder / "quantiles" / str(SETS.index(one))
    home.mkdir(parents=True, exist_ok=True)
    with duckdb.connect() as con:
        con.execute("SET TimeZone = 'UTC'")
        sql = one.rows(con, folder, scale)
        con.execute(f"COPY (SELECT v::{one.type} AS v FROM ({sql})) TO '{home / 'v.parquet'}' (FORMAT parquet)")
        shown = f"epoch_us(v) / 1e6 - {START}" if one.timed else "v::DOUBLE"
        values = con.execute(f"SELECT {shown} AS v FROM '{home / 'v.parquet'}' ORDER BY v").fetchnumpy()["v"]
    ends = [_seconds(x) if one.timed else float(x) for x in (one.lower, one.upper)]
    clipped = np.clip(np.asarray(values, dtype=np.float64), *ends)
    (home / "values").write_bytes(clipped.tobytes())
    text = POLICY.format(file=f"{home}{os.sep}v.parquet", type=one.type, lower=one.lower, upper=one.upper)
    (home / "policy.yaml").write_text(text, encoding="utf-8")
    connection = dpsql.connect(home / "policy.yaml", ledger=MemoryLedger())
    return Column(one, connection, home / "values", clipped, *ends)


def _flights(folder: Path) -> Path:
    return kept(folder / "flights" / "flights.parquet", lambda draft: _built(draft))


def _built(draft: Path) -> None:
    build(draft.parent)
    (draft.parent / "flights.parquet").rename(draft)
