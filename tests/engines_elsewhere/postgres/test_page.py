"""docs/howto/postgresql.md, done as it says: its grants for its role, its policy, its query."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import dpsql
from dpsql.faces.cli.main import main
from tests.engines_elsewhere.postgres.servers import Server

PAGE = Path(__file__).resolve().parents[3] / "docs" / "howto" / "postgresql.md"


def block(language: str) -> str:
    found = re.search(rf"^```{language}[^\n]*\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


def test_the_page_is_true(
    server: Server, database: Callable[[str], str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = database("")
    with server.admin(name) as admin:
        admin.execute(
            """CREATE SCHEMA sales; CREATE TABLE sales.customers (id bigint PRIMARY KEY, secret text);
            CREATE TABLE sales.orders (customer bigint, amount numeric(10,2), region text, note text);
            INSERT INTO sales.orders SELECT i % 100, i % 90, CASE WHEN i % 3 = 0 THEN 'north' ELSE 'south' END, 'x'
            FROM generate_series(1, 3000) AS t(i)"""
        )
        grants = block("sql").replace("CREATE ROLE reader LOGIN NOINHERIT;\n", "")
        assert "CREATE ROLE" not in grants
        admin.execute(grants.encode())
    policy = tmp_path / "policy.yaml"
    text = re.sub(r"database: postgresql://\S+", f"database: '{server.address(name)}'", block("yaml"))
    policy.write_text(text, encoding="utf-8")
    with dpsql.connect(policy) as con:
        answer = con.sql("SELECT region, COUNT(*) AS n FROM orders GROUP BY region ORDER BY n").run(epsilon=5)
        (north, fewer), (south, more) = answer.rows
        assert (north, south) == ("north", "south") and abs(fewer - 1000) < 300 and abs(more - 2000) < 300
        assert not any("may also write" in note or "not tested" in note for note in answer.notes)
    for command in (["policy", "verify", str(policy)], ["policy", "init", server.address(name)]):
        assert main(command) == 0
    shown = capsys.readouterr().out
    assert "breaks none of" in shown and '"sales.orders":' in shown and "primary_key: [id]" in shown
    with server.admin(name) as admin:
        admin.execute("ALTER ROLE reader RESET ALL")
