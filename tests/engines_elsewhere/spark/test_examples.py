"""All queries of the examples on DuckDB and on Spark: the same exact integers, answers and EXPLAIN.

Both read the same Parquet files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dpsql.engines.spark import engine as spark_engine
from tests.engines_elsewhere import example_runs
from tests.engines_elsewhere.example_runs import POLICIES, Side, example_of, on_both
from tests.engines_elsewhere.spark.same_rows import PORTABLE

pytestmark = pytest.mark.long_on_spark


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The examples' data."""
    made = tmp_path_factory.mktemp("examples")
    example_runs.build(made)
    return made


@pytest.fixture(scope="module", params=[policy for policies in POLICIES.values() for policy in policies])
def sides(request: pytest.FixtureRequest, folder: Path, server: str) -> Iterator[tuple[Side, Side]]:
    """One policy on both engines."""
    policy = request.param
    data = folder / example_of(policy)
    text = (data / f"{policy}.yaml").read_text(encoding="utf-8")
    text = re.sub(r"read_parquet\('", f"read_parquet('{data}/", text).replace(
        "\ntables:\n", f"\ndatabase: '{server}'\ntables:\n"
    )
    with on_both(data.parent, policy, text, PORTABLE, (spark_engine,), (spark_engine.UNLOCKED,)) as both:
        yield both


@pytest.fixture
def anew(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Starts the stream of bits anew."""
    return example_runs.same_bits(monkeypatch)


def test_every_query_of_the_examples(
    sides: tuple[Side, Side], anew: Callable[[], None], request: pytest.FixtureRequest
) -> None:
    example_runs.compare(sides, request.node.callspec.params["sides"], anew)
