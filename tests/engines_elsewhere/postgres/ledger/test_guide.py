"""What docs/howto/many-gateways.md shows, done to a server as it stands there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dpsql.core.ledger.ledger import Caps, Entry
from dpsql.core.ledger.postgres import accept_head
from dpsql.core.ledger.postgres_schema import TABLES
from dpsql.core.ledger.postgres_server import GRANTS
from dpsql.diagnostics.errors import CannotOpen
from tests.deep.meta.test_docs import read
from tests.engines_elsewhere.postgres.ledger.conftest import Cluster, Database

PAGE = "docs/howto/many-gateways.md"


@pytest.fixture
def guided(cluster: Cluster, tmp_path: Path) -> Iterator[Database]:
    """The database of the page, made by its own words."""
    database = Database(cluster, "spent", tmp_path)
    administrator, owner = (block.text for block in read(PAGE) if block.language == "sql")
    cluster.run(*(statement for statement in administrator.split(";") if statement.strip()))
    try:
        with cluster.connected("spent", "spent_owner") as connection:
            connection.execute(owner)
        yield database
    finally:
        cluster.run("DROP DATABASE spent WITH (FORCE)", "DROP ROLE gateway", "DROP ROLE spent_owner")


def test_its_tables_are_those_that_dpsql_makes() -> None:
    _, owner = (block.text for block in read(PAGE) if block.language == "sql")
    assert owner.startswith(TABLES)
    rights = owner.removeprefix(TABLES).strip().splitlines()
    assert all(right.rstrip(";").replace(" gateway", " ROLE") in GRANTS for right in rights) and len(rights) == 3


def test_its_role_is_enough_and_no_more(guided: Database, charge: Callable[[object], Entry]) -> None:
    url = guided.cluster.url("spent", "gateway")
    with guided.open(url=url) as ledger:
        assert ledger.reserve(charge("a"), Caps()).sequence == 1
    with guided.cluster.connected("spent", "gateway") as connection:
        for statement in (
            "DELETE FROM dpsql.entries",
            "UPDATE dpsql.entries SET id = 'x'",
            "CREATE TEMP TABLE t (i int)",
        ):
            with pytest.raises(Exception, match="permission denied"):
                connection.execute(statement)
    with pytest.raises(CannotOpen, match="has not seen it before"):
        guided.open(url=url, gateway="two")
    accept_head(url, guided.head("two"))
    with guided.open(url=url, gateway="two") as ledger:
        assert ledger.verify() == 2
