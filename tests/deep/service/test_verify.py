"""Every promise, broken one at a time by changing the data: the broken one is found, and no other."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from dpsql.policy.load import parse_policy
from dpsql.policy.policy import Policy
from tests.service.test_verify import BROKEN, DATA, TEXT, named, run


@pytest.fixture
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute(DATA)
        yield connection


@pytest.fixture(scope="module")
def shop() -> Policy:
    return parse_policy(TEXT, "shop.yaml")


@pytest.mark.parametrize(("change", "expected"), BROKEN)
def test_what_is_broken(
    con: duckdb.DuckDBPyConnection, shop: Policy, change: str, expected: dict[tuple[str, str], int]
) -> None:
    con.execute(change)
    found = run(con, shop)
    assert named(found.broken) == expected and not found.holds
    assert all(c.when_false and c.repair and c.promised is not None for c in found.broken)
