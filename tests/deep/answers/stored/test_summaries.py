"""Summaries: neighbours of what is stored, how far estimates are off, and that no price depends on a number."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pytest

import dpsql
from dpsql.answers.stored.ledger_summaries import Summary, SummaryPart, definitions
from dpsql.core.noise.integer_columns import Integers
from dpsql.core.noise.mechanisms import AdditiveNoise, made_by
from dpsql.core.release.noisy import Estimate, NoisySource, exact_totals
from dpsql.planner.plan import Plan
from dpsql.policy.policy import Policy
from tests.support.summary_board import CREATE, TILES, make_board

# --- neighbours -------------------------------------------------------------------------------------------------------

SMALL = {
    "version": 1,
    "name": "small",
    "units": {"flight": {}, "person": {}},
    "tables": {
        "flights": {
            "unit": {"of": "flight", "rows": 1},
            "columns": {
                "hour": {"type": "bigint", "bounds": [1, 3]},
                "carrier": {"type": "varchar", "domain": ["AA"]},
                "late": {"type": "boolean"},
            },
        },
        "visits": {
            "unit": {"of": "person", "column": "id"},
            "max_rows_per_unit": 2,
            "columns": {
                "id": {"type": "bigint", "nullable": False},
                "ward": {"type": "varchar", "domain": ["a", "b"], "nullable": False},
                "day": {"type": "bigint", "bounds": [1, 2]},
            },
        },
    },
    "budgets": {"total": {"epsilon": 1000}},
}


def marginals(statement: str, table: str) -> Iterator[tuple[Plan, duckdb.DuckDBPyConnection, dpsql.Connection]]:
    database = duckdb.connect()
    database.execute(
        "CREATE TABLE flights (hour BIGINT, carrier VARCHAR, late BOOLEAN);"
        "CREATE TABLE visits (id BIGINT NOT NULL, ward VARCHAR NOT NULL, day BIGINT)"
    )
    with dpsql.connect(database.cursor(), policy=Policy.from_dict(SMALL), ledger=":memory:", optimizers="ours") as con:
        for plan in con.summary_of(statement).begun(epsilon=1).plans.values():
            yield plan, database, con


def counted(plan: Plan, con: dpsql.Connection) -> dict[object, int]:
    (release,) = plan.releases
    return {key: int(row[0]) for key, row in exact_totals(release, con.service.engine, 5).items()}  # type: ignore[call-overload]


def moved(one: dict[object, int], other: dict[object, int]) -> int:
    assert one.keys() == other.keys()
    return sum(abs(one[key] - other[key]) for key in one)


def test_a_row_is_in_one_cell_of_each_marginal() -> None:
    """Whatever its values: listed, not listed, NULL. So the losses of all marginals add up to the price, and no more.

    Every row beside none, several and all others.
    """
    kinds = list(itertools.product((None, 0, 1, 3, 4, 9), (None, "AA", "zz"), (None, True, False)))
    tables: list[list[tuple[object, ...]]] = [[], list(kinds[::7]), kinds * 2]
    cost = Fraction(0)
    for plan, database, con in marginals("CREATE DP SUMMARY s ON flights (hour, carrier, late)", "flights"):
        (m,) = plan.releases[0].measured.measurements
        cost += m.loss.epsilon
        for rows in tables:
            database.execute("DELETE FROM flights")
            if rows:
                database.executemany("INSERT INTO flights VALUES (?, ?, ?)", rows)
            before = counted(plan, con)
            assert sum(before.values()) == len(rows)
            for row in kinds:
                database.execute("INSERT INTO flights VALUES (?, ?, ?)", row)
                assert moved(before, counted(plan, con)) == 1 <= m.sensitivity.l1
                database.execute("DELETE FROM flights")
                if rows:
                    database.executemany("INSERT INTO flights VALUES (?, ?, ?)", rows)
    assert cost <= 1


def test_an_id_moves_each_marginal_by_its_limit_at_most() -> None:
    """Of up to four rows, where two count in full; and the limit is reached."""
    kinds = list(itertools.product(("a", "b", "z"), (None, 1, 2, 5)))
    people = [[k] for k in kinds] + [list(p) for p in itertools.combinations(kinds, 2)] + [kinds[:4], kinds[::3]]
    for plan, database, con in marginals("CREATE DP SUMMARY s ON visits (ward, day)", "visits"):
        (m,) = plan.releases[0].measured.measurements
        most = 0
        for others in ([], kinds[:6]):
            database.execute("DELETE FROM visits")
            for i, (ward, day) in enumerate(others):
                database.execute("INSERT INTO visits VALUES (?, ?, ?)", [i % 3, ward, day])
            before = counted(plan, con)
            for own in people:
                database.executemany("INSERT INTO visits VALUES (99, ?, ?)", own)
                most = max(most, moved(before, counted(plan, con)))
                database.execute("DELETE FROM visits WHERE id = 99")
        assert most == m.sensitivity.l1


# --- errors -----------------------------------------------------------------------------------------------------------

DRAWS = 60_000


@pytest.fixture(scope="module")
def con(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dpsql.Connection]:
    with dpsql.connect(make_board(tmp_path_factory.mktemp("board")), analyst="ana") as found:
        found.execute(CREATE.replace("month, origin, carrier, hour, late", "month, late, origin"))
        yield found


def summary_of(con: dpsql.Connection) -> Summary:
    account = con.service.account("ana")
    (definition,) = definitions(account.ledger).values()
    found = con.service.summaries.summary(definition, account)
    assert found is not None
    return found


def first_numbers(estimate: Estimate, draws: int, narrower: Fraction = Fraction(1)) -> np.ndarray:
    """The first number of the first component, computed of fresh noise: so often. narrower: of a broken twin."""
    sums = estimate.sums[0]
    parts, total = [], np.zeros(draws)
    for source in estimate.sources:
        parts.append(len(source.values))
    place, own = 0, dict(zip(sums.cells[: sums.start[1]].tolist(), sums.coefficients[: sums.start[1]], strict=True))
    for source, count in zip(estimate.sources, parts, strict=True):
        mechanism = source.mechanism
        assert isinstance(mechanism, AdditiveNoise)
        noise = made_by(mechanism.name, mechanism.parameter * narrower)
        assert isinstance(noise, AdditiveNoise)
        for cell in range(place, place + count):
            if cell in own:
                drawn = (
                    noise.add_noise([0] * (draws * source.copies)).floats().reshape(draws, source.copies).sum(axis=1)
                )
                total += own[cell] * drawn
        place += count
    return total


def predicted(estimate: Estimate) -> float:
    sums, variances = estimate.sums[0], list[float]()
    for source in estimate.sources:
        variances += [source.mechanism.variance() * source.copies] * len(source.values)
    own = slice(0, sums.start[1])
    return float((sums.coefficients[own] ** 2 * np.array(variances)[sums.cells[own]]).sum())


def part_of(con: dpsql.Connection, sql: str) -> tuple[Summary, SummaryPart]:
    summary = summary_of(con)
    part = summary.parts(con.plan(sql, epsilon=0.001))[0]
    assert isinstance(part, SummaryPart)
    return summary, part


@pytest.mark.parametrize("sql", [TILES[0], "SELECT COUNT(*) AS n FROM flights WHERE month < 3 AND late"])
def test_variances_are_as_predicted_and_widths_hold(con: dpsql.Connection, sql: str) -> None:
    """Within 5 %, in 60,000 draws: of a kurtosis below 4, that is 7 deviations. A twin whose noise is narrower by a
    tenth, so that its variance is by a fifth, is found."""
    summary, part = part_of(con, sql)
    estimate = summary.estimate(part)
    found = first_numbers(estimate, DRAWS)
    assert found.var() == pytest.approx(predicted(estimate), rel=0.05)
    outside = float((np.abs(found) > part.widths[0]).mean())
    assert 0.02 < outside < 0.05 + 7 * (0.05 * 0.95 / DRAWS) ** 0.5
    twin = first_numbers(estimate, DRAWS, Fraction(9, 10))
    assert twin.var() != pytest.approx(predicted(estimate), rel=0.05)


def test_estimates_are_those_of_least_squares(con: dpsql.Connection) -> None:
    """The number of every cell of a marginal, and of all rows, against dense linear algebra over all cells."""
    summary = summary_of(con)
    sizes = summary.design.sizes
    cells = list(itertools.product(*(range(n) for n in sizes.values())))
    rows, weights, values = [], [], []
    for (marginal, stored), noise, answer in zip(
        summary.marginals.items(), summary.noise, summary.answers, strict=True
    ):
        for key, value in zip(itertools.product(*(range(sizes[c]) for c in marginal)), answer.values, strict=True):
            rows.append([float(tuple(cell[c] for c in marginal) == key) for cell in cells])
            weights.append(1 / (noise.variance() * stored.grain**2))
            values.append(value * stored.grain)
    m, w = np.array(rows), np.array(weights)
    x = np.linalg.pinv(m.T @ (w[:, None] * m)) @ (m.T @ (w * np.array(values)))
    months = [c.example for c in summary.design.classes[0].classes]
    found = dict(con.sql(TILES[0]).run(epsilon=0.001).rows)
    for place, month in enumerate(months):
        if month in found:
            dense = sum(x[i] for i, cell in enumerate(cells) if cell[0] == place)
            assert found[month] == pytest.approx(dense, abs=0.51)
    assert con.sql(TILES[5]).run(epsilon=0.001).rows[0][0] == pytest.approx(x.sum(), abs=0.51)


# --- what prices depend on --------------------------------------------------------------------------------------------


def test_no_price_and_no_word_depends_on_a_stored_number(tmp_path: Path) -> None:
    """For accounts that hold the summary and for others: other numbers in its answers, and EXPLAIN says the same."""
    asked = [*TILES, "SELECT COUNT(*) AS n FROM flights WHERE month = 1 AND late AND hour < 7"]
    with dpsql.connect(make_board(tmp_path), analyst="ana") as con:
        con.execute(CREATE)

        def told() -> list[str]:
            return [
                con.service.session(name).sql(sql).explain(epsilon=epsilon, allow_dearer=dearer)
                for name in ("ana", "bob")
                for sql in asked
                for epsilon, dearer in ((0.001, False), (0.01, True), (1, False))
            ]

        before = told()
        summary = summary_of(con)
        summary._kept.clear()
        summary._sources.clear()
        other = tuple(replace(a, values=[v * 1000 + 7 for v in a.values]) for a in summary.answers)
        object.__setattr__(summary, "answers", other)
        assert told() == before
        assert con.sql(TILES[5]).run(epsilon=0.001).rows[0][0] > 100_000  # the other numbers are those that it computes


def test_sources_add_up_what_they_stand_for() -> None:
    values = Integers.of(range(6))
    assert NoisySource(made_by("laplace", Fraction(1)), 2, values).values == values  # type: ignore[arg-type]
