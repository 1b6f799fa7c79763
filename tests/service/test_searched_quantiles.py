"""Quantiles of values without bounds: a search finds these, and the answer lies where the quantile is.

With ε this large the octaves are sure, and a cell in which the quantile lies is chosen, but once in 10^20 runs.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import dpsql
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.diagnostics.diagnostic import Source
from dpsql.planner.searches.limits_to_search import Rule
from dpsql.service.checks.check import examine

SURE = 400_000
TABLE: dict[str, Any] = {
    "columns": {
        "id": {"type": "bigint", "nullable": False},
        "place": {"type": "varchar", "domain": ["hill", "lake"], "nullable": False},
        "tag": {"type": "varchar", "nullable": False},
        "n": {"type": "integer"},
        "cost": {"type": "decimal(9,2)"},
        "km": {"type": "double"},
        "far": {"type": "bigint"},
        "day": {"type": "date"},
    }
}
POLICY: dict[str, Any] = {
    "version": 1,
    "name": "walks",
    "units": {"walker": {}},
    "tables": {
        "walks": {"unit": {"column": "id", "of": "walker"}, **TABLE},
        "rows": {"unit": {"rows": 1}, **TABLE},
    },
    "budgets": {"total": {"epsilon": 10**12, "delta": 0.1}},
}
WALKS = 6000
N = [i % 31 - 5 for i in range(WALKS)]
EDGES = [-(2**63), 2**63 - 1]
FRAME = pa.table(
    {
        "id": pa.array([i % 1000 for i in range(WALKS)], pa.int64()),
        "place": ["hill" if i // 1000 % 2 else "lake" for i in range(WALKS)],
        "tag": [f"t{i // 1000 % 2}" for i in range(WALKS)],
        "n": pa.array(N, pa.int32()),
        "cost": pa.array([Decimal(n) / 4 for n in N], pa.decimal128(9, 2)),
        "km": pa.array([n / 4 for n in N], pa.float64()),
        "far": pa.array([EDGES[i % 2] if i < 600 else 7 for i in range(WALKS)], pa.int64()),
        "day": pa.array([dt.date(2020, 1, 1) + dt.timedelta(days=n) for n in N]),
    }
)


def opened(**more: Any) -> dpsql.Connection:
    policy = dpsql.Policy.from_dict({**POLICY, **more})
    return dpsql.connect(policy, frames={"walks": FRAME, "rows": FRAME}, ledger=MemoryLedger("walks"))


@pytest.fixture(scope="module")
def con() -> Iterator[dpsql.Connection]:
    with opened() as connection:
        yield connection


def lies(value: Any, p: float, values: list[Any]) -> bool:
    """Whether this is a quantile: as many values at or below it as p says, and at or above it as the rest."""
    below, above = sum(v <= value for v in values), sum(v >= value for v in values)
    return below >= p * len(values) and above >= (1 - p) * len(values)


@pytest.mark.parametrize("table", ["walks", "rows"])
@pytest.mark.parametrize(
    ("aggregate", "p", "values", "bounds"),
    [
        ("MEDIAN(n)", 0.5, N, (-64, 256)),
        ("QUANTILE_DISC(cost, 0.99)", 0.99, [Decimal(n) / 4 for n in N], (-1024, 8192)),
        ("MEDIAN(CLIP(n, 0, AUTO))", 0.5, N, (0, 256)),
        ("QUANTILE_DISC(CLIP(n, AUTO, 15), 0.9)", 0.9, [min(n, 15) for n in N], (-64, 15)),
        ("MEDIAN(2 * CLIP(n, AUTO))", 0.5, [2 * n for n in N], (-64, 256)),
        ("MEDIAN(n) FILTER (WHERE n > 0)", 0.5, [n for n in N if n > 0], (0, 256)),
    ],
)
def test_the_quantile_is_found(
    con: dpsql.Connection, table: str, aggregate: str, p: float, values: list[Any], bounds: tuple[int, int]
) -> None:
    query = con.sql(f"SELECT {aggregate} AS q FROM {table}")
    answer = query.run(epsilon=SURE, limits="search")
    (found,) = (f for f in answer.plan.found if f.octaves.ordered)
    assert found.limit == bounds and lies(answer.rows[0][0], p, values)
    assert any("(of quantiles) found:" in note for note in answer.notes)


@pytest.mark.parametrize("table", ["walks", "rows"])
def test_the_widest_bounds_leave_small_values_apart(con: dpsql.Connection, table: str) -> None:
    """Of ±2^62 there are 2^60 cells at most, each 4 wide; and no difference of two ends leaves 64 bits."""
    answer = con.sql(f"SELECT MEDIAN(far) AS m FROM {table}").run(epsilon=SURE, limits="search")
    (found,) = (f for f in answer.plan.found if f.octaves.ordered)
    assert found.limit == (-(2**62), 2**62) and answer.rows[0][0] == pytest.approx(7, abs=4)


def test_doubles_are_as_fine_as_their_cells(con: dpsql.Connection) -> None:
    answer = con.sql("SELECT MEDIAN(km) AS m FROM rows").run(epsilon=SURE, limits="search")
    assert answer.rows[0][0] == pytest.approx(sorted(N)[WALKS // 2] / 4, rel=1 / 256)
    assert answer.bounds[0].what == "km (of quantiles)" and answer.bounds[0].limit == (-16, 64)


@pytest.mark.parametrize("key", ["place", "tag"])
def test_groups_and_other_aggregates_stand_beside(con: dpsql.Connection, key: str) -> None:
    sql = f"SELECT {key}, MEDIAN(n) AS m, AVG(n) AS a, COUNT(*) AS c FROM walks GROUP BY {key} ORDER BY {key}"
    plan = con.sql(sql).plan(epsilon=SURE, delta=1e-6, limits="search")
    assert plan.searches is not None
    of_n = {s.limit.rule: s.release for s in plan.searches.limits if s.limit.rule.of_values}
    assert of_n[Rule.RANGE] == of_n[Rule.QUANTILE], "one search finds the bounds of both"
    answer = con.sql(sql).run(epsilon=SURE, delta=1e-6, limits="search")
    assert len(answer.rows) == 2 and all(lies(m, 0.5, N) and c == 3000 for _, m, _, c in answer.rows)


def test_held_octaves_serve_for_nothing() -> None:
    with opened() as con:
        query = con.sql("SELECT MEDIAN(n) AS m FROM rows")
        assert query.cost(epsilon=SURE, limits="search").epsilon == SURE
        assert query.run(epsilon=SURE, limits="search").spent.epsilon == SURE
        later = con.sql("SELECT QUANTILE_DISC(n, 0.9) AS q FROM rows")
        plan = later.plan(epsilon=SURE, limits="search")
        assert plan.searches is None and "is clipped to [-64, 256]" in " ".join(plan.notes)
        assert later.run(epsilon=SURE, limits="search").spent.epsilon == SURE * 3 // 4


@pytest.mark.parametrize("table", ["walks", "rows"])
def test_explain_shows_what_holds_whatever_is_found(con: dpsql.Connection, table: str) -> None:
    query = con.sql(f"SELECT MEDIAN(cost + 1) AS m FROM {table}")
    told = query.explain(epsilon=1, limits="search")
    assert "one of at most 262,144 cells of the bounds that are found" in told
    assert re.search(r"≤ [0-9.]+(·2\^k1)? rows", told) and "ε 1 of each" in told
    assert ("at 95 %, at most" in told) == (table == "rows"), "of ids it depends on the limit of rows"
    (release,) = json.loads(query.explain(epsilon=1, limits="search", format="json"))["releases"]
    assert release["components"][0]["cells"] == 2**18


def test_a_check_knows_that_bounds_are_found_later(con: dpsql.Connection) -> None:
    (found,) = examine(Source("SELECT MEDIAN(n) AS m FROM rows"), con.policy, search=True).diagnostics
    assert found.code == "DP506" and "of n" in found.message


def test_refusals_say_how_to_go_on(con: dpsql.Connection) -> None:
    with pytest.raises(dpsql.Rejected, match="DP201") as refused:
        con.sql("SELECT MEDIAN(n) AS m FROM rows").plan(epsilon=1)
    assert any("/* dpsql: limits=search */" in text for text in refused.value.diagnostics[0].help)
    with pytest.raises(dpsql.Rejected, match="DP106") as refused:
        con.sql("SELECT MEDIAN(CLIP(day, AUTO)) AS m FROM rows").plan(epsilon=1, limits="search")
    repair = refused.value.diagnostics[0].help[0].partition(":  ")[2]
    for day in (repair, "day"):
        answer = con.sql(f"SELECT MEDIAN({day}) AS m FROM rows").run(epsilon=SURE, limits="search")
        assert lies((answer.rows[0][0] - dt.date(2020, 1, 1)).days, 0.5, N)


def test_an_error_in_rows_is_planned_once_the_bounds_are_found() -> None:
    """Before it is refused, by name; then it is met, with the cells of the bounds that were found."""
    with opened() as con:
        query = con.sql("SELECT MEDIAN(CLIP(n, AUTO)) AS middle FROM rows")
        with pytest.raises(dpsql.Error) as refusal:
            query.plan(max_error={"middle": 30})
        assert "DP411" in str(refusal.value) and "run the query with an epsilon first" in str(refusal.value)
        query.run(epsilon=SURE)
        text = query.explain(max_error={"middle": 30})
        assert text.startswith("epsilon ") and " for middle within 30 rows" in text and " 30 rows\n" in text
