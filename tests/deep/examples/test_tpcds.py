"""TPC-DS: how many of the 99 queries are planned under a customer unit, and that each refusal is one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import dpsql
from dpsql.core.ledger.memory import MemoryLedger
from tests.support.tpcds import make, policy

pytestmark = pytest.mark.exhaustive  # it installs an extension from the network

PLANNED = 69
LISTED = (30, 34, 46, 68, 73, 79, 81)
"""They ask for rows or groups of single customers."""


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[int, str]]:
    """Number of a query → the code it is refused with; what is planned is not there."""
    folder: Path = tmp_path_factory.mktemp("tpcds")
    try:
        texts = make(folder / "tpcds.duckdb")
    except duckdb.Error:
        pytest.skip("DuckDB's extension tpcds cannot be installed here: it makes the data and the texts")
    (folder / "tpcds.yaml").write_text(policy(folder / "tpcds.duckdb"), encoding="utf-8")
    found: dict[int, str] = {}
    with dpsql.connect(folder / "tpcds.yaml", ledger=MemoryLedger()) as con:
        for number, text in enumerate(texts, 1):
            try:
                con.plan(text)
            except dpsql.Rejected as refusal:
                first = refusal.diagnostics[0]
                assert first.span is not None and first.help, number
                found[number] = first.code
    yield found


def test_most_queries_are_planned(refused: dict[int, str]) -> None:
    assert 99 - len(refused) >= PLANNED, refused


def test_single_customers_are_not_listed(refused: dict[int, str]) -> None:
    assert {refused.get(number) for number in LISTED} <= {"DP301", "DP110", "DP112"}, refused
