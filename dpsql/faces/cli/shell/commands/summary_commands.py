"""Summaries in the shell: make one, drop one, list them, and say what one would cost."""

from __future__ import annotations

from dpsql.answers.results.cell_texts import cell
from dpsql.answers.results.summary_rows import LISTED, listed
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.diagnostics.layout import one_line
from dpsql.faces.cli import exits
from dpsql.faces.cli.commands.queries.query import said
from dpsql.faces.cli.shell.state import Shell
from dpsql.faces.cli.table_layout import plain_table
from dpsql.frontend.text.summary_statements import CreateSummary, SummaryStatement


def do(shell: Shell, statement: SummaryStatement, sql: str) -> None:
    """Make a summary, and pay for it; or drop one. Raises dpsql.Error."""
    if not isinstance(statement, CreateSummary):
        shell.connection.drop_summary(statement.name)
        shell.output.tell(f"summary {one_line(statement.name)} is dropped; what was paid for stays stored")
        return
    query = shell.connection.summary_of(sql)
    amounts = (None, None) if statement.amounts else (shell.asked.get("epsilon"), shell.asked.get("rho"))
    price = query.cost(*amounts[:1], rho=amounts[1])
    asked = f"This summary costs {price}. Make it?"
    if price != PrivacyLoss() and shell.confirm is not None and not shell.yes and not shell.confirm(asked):
        exits.say("not made; nothing was spent")
        return
    shell.output.line(said(query.run(*amounts[:1], rho=amounts[1])))


def explain(shell: Shell, sql: str) -> None:
    """What a summary would measure, and its price. Raises dpsql.Error."""
    shell.output.line(shell.connection.summary_of(sql).explain(shell.asked.get("epsilon"), rho=shell.asked.get("rho")))


def show(shell: Shell, arguments: list[str]) -> None:
    """All that the ledger knows."""
    rows = [[cell(value) for value in row] for row in listed(shell.connection.summaries)]
    shell.output.write(plain_table([name for name, _ in LISTED], rows) + "\n", shell.looks.pager)
