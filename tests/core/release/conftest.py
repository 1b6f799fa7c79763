"""The club: a session over four small tables. And its members alone, under policies of a test's own."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from dpsql.core.policy.policy import Policy
from tests.support.built_once import build
from tests.support.club import club_folder, con, ledger, shared
from tests.support.opened_once import Kept, opened

__all__ = ["club_folder", "con", "ledger", "shared"]

DATA = "CREATE TABLE members AS SELECT i AS id, CAST(i % 80 AS INTEGER) AS age FROM range(1000) t(i)"
Members = Callable[[Mapping[str, Any]], tuple[Policy, Kept]]


@pytest.fixture(scope="session")
def members(tmp_path_factory: pytest.TempPathFactory) -> Members:
    """Opens a table `members` under a policy, once for each."""
    folder = tmp_path_factory.mktemp("members")
    build(folder / "members.duckdb", DATA)
    named: dict[str, int] = {}

    def opened_under(policy: Mapping[str, Any]) -> tuple[Policy, Kept]:
        text = json.dumps({**policy, "database": "members.duckdb"})
        path = folder / f"{named.setdefault(text, len(named))}.yaml"
        path.write_text(text, encoding="utf-8")
        return opened(path)

    return opened_under
