"""`Query.accuracy` and `run(max_error=…)` against the errors of real runs.

Truth is plain SQL over data that no clip and no limit touches. An accuracy is right if the error stays within it in at
least 95 % of all runs, and tight if in at most 97 %; the noise is fine against whole numbers everywhere here. Exact
binomial tests at ALPHA, seven standard errors from what is claimed. Twins show that they can fail: widths 30 % narrower
hold 87.7 % of Laplace errors and fewer of Gaussian ones, widths twice as wide 99.7 % and more; both are twelve and more
standard errors of their own beyond what the tests accept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pytest
from scipy import stats

import dpsql
from dpsql.api.connection import Connection
from dpsql.core.ledger.memory import MemoryLedger

ALPHA = 1e-12
NUMBERS = 6_000
"""How many released numbers each question looks at, all groups and runs together."""
POLICY = """\
version: 1
name: firm
privacy: {accountant: ACCOUNTANT}
tables:
  staff:
    unit: {column: id}
    primary_key: [id]
    columns:
      id:    {type: bigint, nullable: false}
      team:  {type: varchar, domain: [TEAMS], nullable: false}
      wage:  {type: integer, bounds: [0, 100], nullable: false}
      bonus: {type: double, bounds: [-5, 30], nullable: false}
budgets: {total: CAP}
"""
CAPS = {"pure_dp": "{epsilon: 1e9}", "approx_dp": "{epsilon: 1e9, delta: 0.1}", "zcdp": "{rho: 1e9, delta: 0.1}"}
TEAMS = [f"t{i}" for i in range(40)]
DATA = """\
CREATE TABLE staff AS SELECT i AS id, 't' || i % 37 AS team, CAST(i % 101 AS INTEGER) AS wage,
  CAST(i % 29 AS DOUBLE) / 8 AS bonus FROM range(5000) t(i)
"""
ONE = "SELECT team, COUNT(*) AS n FROM staff GROUP BY team"
SHARED = (
    "SELECT team, SUM(wage) AS s, COUNT(*) AS n, AVG(bonus) AS b, COUNT(*) * 2 AS m, SUM(bonus) AS t "
    "FROM staff GROUP BY team"
)
UNION = (
    "SELECT team, 'count' AS kind, COUNT(*) AS n FROM staff GROUP BY team "
    "UNION ALL SELECT team, 'sum', SUM(wage) FROM staff GROUP BY team"
)
ROLLUP = "SELECT team, SUM(bonus) AS n FROM staff GROUP BY ROLLUP (team)"


@dataclass(frozen=True)
class Errors:
    """The absolute errors of one column over many runs."""

    found: list[float]

    def within(self, width: float) -> int:
        return sum(error <= width * (1 + 1e-12) for error in self.found)

    def too_few(self, width: float) -> bool:
        """Whether "at least 95 % are within the width" is refuted."""
        return bool(stats.binom.cdf(self.within(width), len(self.found), 0.95) < ALPHA)

    def too_many(self, width: float) -> bool:
        """Whether "at most 97 % are" is refuted."""
        return bool(stats.binom.sf(self.within(width) - 1, len(self.found), 0.97) < ALPHA)


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as opened:
        opened.execute(DATA)
        yield opened


def session(database: duckdb.DuckDBPyConnection, accountant: str, folder: Path) -> Connection:
    path = folder / f"{accountant}.yaml"
    text = POLICY.replace("ACCOUNTANT", accountant).replace("CAP", CAPS[accountant]).replace("TEAMS", ", ".join(TEAMS))
    path.write_text(text, encoding="utf-8")
    return dpsql.connect(database.cursor(), policy=path, ledger=MemoryLedger("firm", accountant), optimizers="ours")


Group = tuple[str | None, ...]


def group(row: tuple[Any, ...]) -> Group:
    """What tells a row of an answer from the others: its texts, and the NULL of a grand total."""
    return tuple(value for value in row if value is None or isinstance(value, str))


def truths(database: duckdb.DuckDBPyConnection, sql: str) -> dict[Group, tuple[Any, ...]]:
    """The rows without noise; a team without people has no row."""
    return {group(row): row for row in database.execute(sql).fetchall()}


def errors(
    con: Connection, sql: str, truth: dict[Group, tuple[Any, ...]], **wish: Any
) -> dict[Group, dict[str, Errors]]:
    """Group → column → the absolute errors of as many runs as it takes."""
    plan = con.sql(sql).plan(**wish)
    found: dict[Group, dict[str, Errors]] = {}
    for _ in range(NUMBERS // len(TEAMS)):
        for row in con.run(plan, fresh=True):
            own = truth.get(group(row), [0] * len(row))
            columns = found.setdefault(group(row), {})
            for column, noisy, exact in zip(plan.columns, row, own, strict=True):
                if isinstance(noisy, int | float) and column.name != "b":
                    columns.setdefault(column.name, Errors([])).found.append(abs(noisy - exact))
    return found


def pooled(found: dict[Group, dict[str, Errors]], column: str, *marks: str | None) -> Errors:
    """The errors of one column over all groups whose texts hold these marks."""
    return Errors([e for group, own in found.items() if set(marks) <= set(group) for e in own[column].found])


WISHES: list[tuple[str, dict[str, Any]]] = [
    ("pure_dp", {"epsilon": 0.02}),
    ("approx_dp", {"epsilon": 0.02, "delta": "1e-9"}),
    ("approx_dp", {"epsilon": 0.02, "weights": {"n": 3}}),
    ("zcdp", {"rho": "1e-4"}),
    ("zcdp", {"epsilon": 0.02}),
    ("pure_dp", {"max_error": {"n": 150}}),
    ("approx_dp", {"max_error": {"n": 150}, "delta": "1e-9"}),
    ("zcdp", {"max_error": {"n": 150}}),
]


QUERIES = {"one": (ONE, ["n"]), "shared": (SHARED, ["s", "n", "t"])}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("accountant", "wish", "sql", "columns"),
    [  # in CI each wish of one of the two
        pytest.param(*wish, *query, id=f"{wish}-{name}", marks=[pytest.mark.exhaustive] if (at + one) % 2 else [])
        for one, (name, query) in enumerate(QUERIES.items())
        for at, wish in enumerate(WISHES)
    ],
)
def test_accuracy_is_right_and_tight(
    database: duckdb.DuckDBPyConnection,
    tmp_path: Path,
    accountant: str,
    wish: dict[str, Any],
    sql: str,
    columns: list[str],
) -> None:
    with session(database, accountant, tmp_path) as con:
        said = con.sql(sql).accuracy(**wish)
        found = errors(con, sql, truths(database, sql), **wish)
    if "max_error" in wish:
        assert said["n"] == wish["max_error"]["n"]
    for column in columns:
        width, own = said[column], pooled(found, column)
        assert width is not None and not own.too_few(width) and not own.too_many(width), column
        assert own.too_few(width * 0.7) and own.too_many(width * 2), "a twin was not seen"


@pytest.mark.parametrize(
    ("accountant", "wish"),
    [WISHES[0], WISHES[7], *(pytest.param(*WISHES[at], marks=pytest.mark.exhaustive) for at in (3, 5))],
)
def test_of_several_numbers_in_one_column_the_worst_counts(
    database: duckdb.DuckDBPyConnection, tmp_path: Path, accountant: str, wish: dict[str, Any]
) -> None:
    with session(database, accountant, tmp_path) as con:
        width = con.sql(UNION).accuracy(**wish)["n"]
        found = errors(con, UNION, truths(database, UNION), **wish)
        assert width is not None
        counts, sums = pooled(found, "n", "count"), pooled(found, "n", "sum")
        assert not counts.too_few(width) and not sums.too_few(width)
        assert sums.too_few(width * 0.7) and not sums.too_many(width), "of the worst it says no more than is true"
        rolled = con.sql(ROLLUP).accuracy(**wish)["n"]
        found = errors(con, ROLLUP, truths(database, ROLLUP), **wish)
        assert rolled is not None
        assert not pooled(found, "n").too_few(rolled) and pooled(found, "n").too_few(rolled * 0.7)
