"""Statements through the DB-API and the shell: both say and do the same."""

from __future__ import annotations

import pytest

import dpsql
from dpsql.faces.cli.shell.commands.run_statement import run_statement
from dpsql.faces.cli.shell.input.items import InputPlace
from dpsql.faces.cli.shell.state import Shell
from tests.api.conftest import Opener

STATEMENTS = (
    "SET epsilon = 0.2",
    "SET epsilon = '1/3'",
    "SET epsilon = x",
    "SET epsilon = 1 2",
    "SET rho = -1",
    "SET delta = 2",
    "SET colour = red",
    "SET epsilon = DEFAULT",
    "RESET delta",
    "RESET colour",
    "SHOW colour",
    "SHOW ALL",
    "EXPLAIN ANALYZE SELECT COUNT(*) FROM members",
    "EXPLAIN SELECT nmae FROM members",
    "EXPLAIN SELECT COUNT(*) AS n FROM members\nWHERE agee > 1",
)


@pytest.mark.parametrize("sql", STATEMENTS)
def test_both_faces_say_and_do_the_same(opened: Opener, sql: str) -> None:
    """The same settings afterwards; the same findings, at the same places of the same text (help names the face's)."""
    outcomes = []
    for shell in (True, False):
        with opened(epsilon=3) as con:
            con.set("delta", "1e-8")
            said: object = None
            try:
                if shell:
                    run_statement(Shell(con), sql, InputPlace())
                else:
                    con.execute(sql)
            except dpsql.Rejected as refusal:
                said = [(d.code, d.message, d.span, d.source, d.notes) for d in refusal.diagnostics]
            outcomes.append((said, con.settings))
    assert outcomes[0] == outcomes[1]
