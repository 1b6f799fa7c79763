"""Prepared tables of all examples give the numbers of the tables as they are, where no limit cuts anything.

Before noise and exactly: each integer times what it is worth. All limits are at or above the data's largest counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import dpsql
from dpsql.core.noise.integer_columns import Integers
from dpsql.core.release.noisy import NoisyRelease, exact_totals
from dpsql.planner.plan import Plan
from dpsql.planner.postprocessing.noisy_rows import as_query, released_columns
from tests.support.example_data import make_tpch

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
LIMIT = {
    "flights": (
        r"max_rows_per_unit: \d+",
        "max_rows_per_unit: 1000",
        r"\n    max_(rows_per_group|groups_per_unit): .*",
    ),
    "tpch": (r"max_rows_per_unit: 50", "max_rows_per_unit: 60", "$^"),
    "tpch-supplier": (r"max_rows_per_unit: 80", "max_rows_per_unit: 90", "$^"),
}
"""Policy → a limit, a higher one, and what is left out: limits of groups, which copies do not have."""
Sessions = Mapping[str, tuple[dpsql.Connection, dpsql.Connection]]


def texts(policy: str) -> dict[str, str]:
    folder = EXAMPLES / policy.partition("-")[0] / "queries"
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.sql"))}


ALL = [(policy, name) for policy in LIMIT for name in texts(policy)]


@pytest.fixture(scope="module")
def sessions(flights_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sessions]:
    """policy → sessions over the tables as they are, and prepared."""
    folders = {"flights": flights_folder, "tpch": tmp_path_factory.mktemp("tpch-prepared")}
    make_tpch(folders["tpch"], "0.01")
    found = {}
    for policy, (limit, higher, without) in LIMIT.items():
        folder = folders[policy.partition("-")[0]]
        text = (folder / f"{policy}.yaml").read_text(encoding="utf-8")
        text = re.sub(without, "", re.sub(limit, higher, text))
        as_it_is, prepared = folder / f"{policy}-as-it-is.yaml", folder / f"{policy}-prepared.yaml"
        as_it_is.write_text(re.sub("(?m)^name: .*", f"name: {policy}-as-it-is", text), encoding="utf-8")
        text = re.sub(r"(?m)^(    unit: .*)$", r"\1\n    prepared: true", text)
        prepared.write_text(re.sub("(?m)^name: .*", f"name: {policy}-prepared", text), encoding="utf-8")
        made = dpsql.prepare(prepared)
        assert made.tables and all(table.kept == table.rows for table in made.tables.values()) == (policy != "flights")
        found[policy] = tuple(dpsql.connect(file, ledger=":memory:") for file in (as_it_is, prepared))
    yield found  # type: ignore[misc]
    for pair in found.values():
        for con in pair:
            con.close()


def rows_without_noise(con: dpsql.Connection, plan: Plan) -> list[dict[Any, tuple[Any, ...]]]:
    """Release by release: key → what would be released if all noise were 0. Groups without rows are left out."""
    earlier: dict[str, str] = {}
    found = []
    for planned in plan.releases:
        exact = exact_totals(planned, con.service.engine, 0, earlier)
        columns = [
            Integers.of([row[i] for row in exact.values()]) for i in range(len(planned.measured.node.components))
        ]
        free = NoisyRelease(planned, tuple(exact), tuple(columns))
        earlier[planned.label] = as_query(free, con.service.engine.dialect)
        rows = zip(exact.items(), zip(*released_columns(free), strict=True), strict=True)
        found.append({key: row for (key, integers), row in rows if any(integers)})
    return found


def grids(plan: Plan) -> set[Fraction]:
    """Those of all components."""
    return {c.grid for release in plan.releases for c in release.measured.node.components}


@pytest.mark.sampled(3)
@pytest.mark.filterwarnings("ignore::dpsql.UtilityWarning")
@pytest.mark.parametrize(("policy", "name"), ALL)
def test_the_numbers_are_the_same(policy: str, name: str, sessions: Sessions) -> None:
    """Exactly where both are added up on one grid. A query that scales an id's rows has room for a coarser one only:
    there each value is rounded otherwise, and the sums agree as far as rounding lets them.
    """
    sql, (as_it_is, prepared) = texts(policy)[name], sessions[policy]
    try:
        plans = as_it_is.plan(sql, epsilon=1), prepared.plan(sql, epsilon=1)
    except dpsql.Rejected as refusal:
        with pytest.raises(dpsql.Rejected, match=refusal.diagnostics[0].code):
            prepared.plan(sql, epsilon=1)
        return
    expected, found = rows_without_noise(as_it_is, plans[0]), rows_without_noise(prepared, plans[1])
    if grids(plans[0]) == grids(plans[1]):
        assert found == expected
    else:
        assert [r.keys() for r in found] == [r.keys() for r in expected]
        for key, row in ((key, row) for release in expected for key, row in release.items()):
            (other,) = (release[key] for release in found if key in release)
            assert [float(x) for x in other] == pytest.approx([float(x) for x in row], rel=1e-4)
