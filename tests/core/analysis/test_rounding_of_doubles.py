"""What is known of a DOUBLE holds after rounding; what rounding makes of it tells of no row and moves no sum more.

Sums that cancel (`x + 8 + 8 - x`) are rounded by more than their value. A constant that no DECIMAL holds is here, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import duckdb
import pytest

import dpsql
from dpsql.api.connection import Connection
from dpsql.core.release.noisy import exact_totals
from tests.support.checklist_clinic import DELTA, Attack

EXACT = "CAST(CLIP(income, 2147483647, 2147483647) AS DECIMAL(20,10))"
"""1.024e-7 more than its bounds: the engine multiplies by 10¹⁰ in DOUBLE."""
FAR = f"(CLIP(income, 1e30, 1e30){' + 1e14' * 20} - 1e30 - 2e15) / 3.8e5"
"""0, and 2·10⁹ after rounding."""

ORACLES = {
    "a remainder by a DECIMAL that was a DOUBLE": (f"5 % ({EXACT} - 2147483647.0000001024) > 0", 0),
    "a remainder by a sum that cancels": (
        "5 % CAST(CLIP(income, 1e17, 1e17) + 1.3 + 1.3 - 1e17 AS DECIMAL(3,1)) >= 0", 0,
    ),
    "a quotient by a sum that cancels": ("5 // CAST(CLIP(income, 1e17, 1e17) + 3 - 1e17 AS INTEGER) >= 0", 0),
    "a whole number whose least value alone is known": (
        "CAST(GREATEST(income, 1e17) + 3 - 1e17 AS BIGINT) % 5 = 3", 0,
    ),
    "days that are far more than known": (f"YEAR(DATE '2000-12-31' + CAST({FAR} AS INTEGER)) > 3", 0),
}  # fmt: skip


@pytest.mark.parametrize(("condition", "rows"), ORACLES.values(), ids=ORACLES)
def test_probe_rounding_tells_of_no_row(attack: Attack, condition: str, rows: int) -> None:
    """A query that meets bob is answered like any other."""
    assert attack.answer(f"SELECT COUNT(*) FROM patients WHERE name = 'bob' AND {condition}") == [(rows,)]


def test_probe_38_places_tell_of_no_row(attack: Attack) -> None:
    sql = "SELECT COUNT(*), COUNT(CAST(income / 1e30 AS DECIMAL(38,38))) FROM patients WHERE name = 'bob'"
    assert attack.answer(sql) == [(1, 1)]


POLICY = """
version: 1
name: sized
database: {name}.duckdb
ledger: spent.sqlite
ledger_head: spent.head
privacy: {{neighbours: replace_one}}
budgets: {{total: {{epsilon: 1000, delta: 0.9}}}}
tables:
  sized:
    unit: {{rows: 1}}
    size: {{exact: 2}}
    columns:
      big: {{type: bigint, nullable: false}}
"""
ROUNDED = f"(CAST(CLIP(big, 100000000000000000, 100000000000000016) AS DOUBLE){' + 8' * 20} - 1e17)"
"""From 160 to 176, and 0 for the least after rounding."""


@pytest.fixture(scope="module")
def sized(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Connection]]:
    """Sessions over two databases of two rows, of which one is another."""
    folder = tmp_path_factory.mktemp("sized")
    with ExitStack() as stack:
        opened = []
        for name, big in (("low", 0), ("high", 10**18)):
            with duckdb.connect(str(folder / f"{name}.duckdb")) as data:
                data.execute("CREATE TABLE sized (big BIGINT)")
                data.execute("INSERT INTO sized VALUES (0), (?)", [big])
            policy = folder / f"{name}.yaml"
            policy.write_text(POLICY.format(name=name))
            opened.append(stack.enter_context(dpsql.connect(policy)))
        yield opened


@pytest.mark.parametrize("argument", [f"CLIP(1 / {ROUNDED}, 0, 1)", f"CLIP(LN({ROUNDED}), -9, 9)"])
def test_probe_every_row_counts_where_the_size_is_public(sized: list[Connection], argument: str) -> None:
    """A row that rounding made NULL would move a sum by more than from one end to the other."""
    plan = sized[0].sql(f"SELECT SUM({argument}) FROM sized").plan(epsilon=1, delta=DELTA)
    for release in plan.releases:
        low, high = (next(iter(exact_totals(release, con.service.engine, 7).values())) for con in sized)
        for measured, a, b in zip(release.measured.measurements, low, high, strict=True):
            assert abs(a - b) <= measured.sensitivity.linf, (measured.component.kind, a, b)
