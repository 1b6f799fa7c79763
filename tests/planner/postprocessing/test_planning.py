"""SQL that runs on the data without noise names public tables alone."""

from __future__ import annotations

import pytest

from dpsql.core.analysis.releases_of_plan import releases_of
from dpsql.core.ir.nodes import output_columns
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Rejected
from dpsql.planner.postprocessing.planning.answer_plan import post_processing
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.service.checks.check import static_plan
from dpsql.service.privacy_settings import settled
from dpsql.spelling.duckdb_functions import DUCKDB
from tests.support.planning import policy

POLICY = policy("""
people:
  unit: {column: id}
  max_rows_per_unit: 1
  columns: {id: {type: bigint}, town: {type: bigint, domain: [1, 2]}}
towns:
  public: true
  columns: {id: {type: bigint}, name: {type: varchar}}
""")


def test_without_releases_it_reads_the_engines_tables_and_else_copies() -> None:
    public = static_plan(Source("SELECT name FROM towns ORDER BY name"), POLICY)
    assert not public.releases and 'FROM "towns" AS' in public.post.sql
    assert [table for table, _ in public.post.public_tables] == ["towns"]
    both = "SELECT name, n FROM towns JOIN (SELECT town, COUNT(*) AS n FROM people GROUP BY town) ON id = town"
    mixed = static_plan(Source(both), POLICY, settings=settled({"epsilon": 1}, QuerySettings()))
    assert mixed.releases and '"memory"."main"."public towns"' in mixed.post.sql and '"people"' not in mixed.post.sql


@pytest.mark.parametrize(
    "sql",
    ["SELECT COUNT(*) FROM people", "SELECT town, COUNT(*) FROM people JOIN towns ON town = towns.id GROUP BY town"],
)
def test_a_private_table_that_nothing_covers_is_refused(sql: str) -> None:
    """As if a release had been forgotten: what is below it, as an answer."""
    plan = static_plan(Source(sql), POLICY, settings=settled({"epsilon": 1}, QuerySettings()))
    (below,) = releases_of(plan.tree).distinct[0].inputs
    with pytest.raises(Rejected, match=r"DP904.*people would be read without noise"):
        post_processing(below, output_columns(below.node), (), releases_of(below), DUCKDB, DUCKDB.identifier)
