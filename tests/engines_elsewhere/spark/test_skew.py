"""One person has a third of the rows: the same integers, and what is shuffled is as much as without."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import dpsql
from dpsql.core.release.noisy import exact_totals
from dpsql.service.preparing.prepare import prepare
from tests.engines_elsewhere.spark.servers import Server

pytestmark = pytest.mark.long_on_spark

ROWS, PERSONS, FILES = 120_000, 999, 4
POLICY = """\
version: 1
name: shop
units: {buyer: {}}
tables:
  orders:
    source: read_parquet('FOLDER/orders/*.parquet')
    unit: {column: buyer}
    max_rows_per_unit: LIMIT
    max_groups_per_unit: 3
    columns:
      buyer: {type: bigint}
      cents: {type: 'decimal(12,2)', bounds: [0, 30]}
      kind: {type: varchar, domain: [a, b, c, d, e]}
budgets: {total: {epsilon: 1e12}}
"""
SCALED = ("SELECT COUNT(*), SUM(cents) FROM orders", "SELECT AVG(cents) FROM orders WHERE kind <> 'a'")
QUERIES = (
    *SCALED,
    "SELECT kind, COUNT(*), SUM(cents) FROM orders GROUP BY kind",
    "SELECT COUNT(DISTINCT buyer) FROM orders",
)
WIDE = str(ROWS)
"""A limit that cuts nothing, so that it does not matter which rows of a person would be kept."""


def totals(policy: Path, queries: tuple[str, ...] = QUERIES) -> list[object]:
    with dpsql.connect(policy, ledger=":memory:") as con:
        plans = [con.sql(sql).plan(epsilon=1, delta=1e-9) for sql in queries]
        return [exact_totals(r, con.service.engine, 7) for plan in plans for r in plan.releases]


def records(policy: Path, sql: str) -> int:
    """How many records the statements of a query shuffle, by Spark's own count."""
    with dpsql.connect(policy, ledger=":memory:") as con:
        session, found = con.service.engine._session, 0  # type: ignore[attr-defined]
        for release in con.sql(sql).plan(epsilon=1, delta=1e-9).releases:
            for statement in release.statements:
                frame = session.sql(statement.salted(7))
                frame.toArrow()
                metrics = [m for plan in frame.executionInfo.metrics._metrics for m in plan.metrics]
                found += sum(m.value for m in metrics if m.name == "shuffleRecordsWritten")
        return found


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("skew")
    (folder / "orders").mkdir()
    with duckdb.connect() as con:
        for at in range(FILES):
            con.execute(
                f"""COPY (SELECT CASE WHEN i % 3 = 0 THEN 0 ELSE 1 + i % {PERSONS - 1} END AS buyer,
                    (i % 3500 / 100)::DECIMAL(12, 2) AS cents, chr(97 + (i % 5)::INTEGER) AS kind
                    FROM range({at * ROWS // FILES}, {(at + 1) * ROWS // FILES}) t(i))
                    TO '{folder}/orders/{at}.parquet'"""
            )
    return folder


def say(folder: Path, limit: str, cluster: Server | None = None, prepared: bool = False) -> Path:
    text = POLICY.replace("FOLDER", str(folder)).replace("LIMIT", limit)
    if cluster is not None:
        place = f"database: {cluster.address}\n" + f"prepared_at: {folder}/copies\n" * prepared
        text = text.replace("/*.parquet", "").replace("units:", place + "units:")
    if prepared:
        text = text.replace("    source:", "    prepared: true\n    source:")
    (folder / "shop.yaml").write_text(text)
    return folder / "shop.yaml"


def test_the_same_integers_and_the_rows_of_one_person_are_not_shuffled(shop: Path, cluster: Server) -> None:
    """A task writes one partial sum for each person, or person and kind: never the person's 40,000 rows."""
    here = totals(say(shop, "5"), SCALED)
    policy = say(shop, "5", cluster)
    assert totals(policy, SCALED) == here
    assert FILES * PERSONS >= records(policy, SCALED[0]) >= PERSONS
    assert records(policy, QUERIES[2]) <= 2 * 5 * FILES * PERSONS < ROWS // 3 * 5


def test_prepared_the_same_and_only_groups_are_shuffled(shop: Path, cluster: Server) -> None:
    policy = say(shop, WIDE, prepared=True)
    prepare(policy)
    here = totals(policy)
    policy = say(shop, WIDE, cluster, prepared=True)
    made = prepare(policy)
    assert made.tables["orders"].kept == ROWS
    assert totals(policy) == here
    assert records(policy, SCALED[0]) <= FILES and records(policy, QUERIES[2]) <= 5 * FILES
    made = prepare(say(shop, "5", cluster, prepared=True))
    assert made.tables["orders"].kept == 5 * PERSONS
