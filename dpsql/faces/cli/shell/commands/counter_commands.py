"""Counters in the shell: make, receive, tick or drop one, list them, and say what one would cost."""

from __future__ import annotations

from dpsql.answers.results.cell_texts import cell
from dpsql.answers.results.counter_rows import LISTED, listed
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.faces.cli import exits
from dpsql.faces.cli.commands.queries.query import said_of_counter
from dpsql.faces.cli.shell.state import Shell
from dpsql.faces.cli.table_layout import plain_table
from dpsql.frontend.text.counter_statements import CounterStatement, CreateCounter


def do(shell: Shell, statement: CounterStatement, sql: str) -> None:
    """Do what it says; of one that is made, after its price was told. Raises dpsql.Error."""
    amounts = shell.asked.get("epsilon"), shell.asked.get("rho")
    if isinstance(statement, CreateCounter):
        price = shell.connection.counter_of(sql).cost(amounts[0], rho=amounts[1])
        asked = f"This counter costs {price} of each period from {statement.first} on. Make it?"
        if price != PrivacyLoss() and shell.confirm is not None and not shell.yes and not shell.confirm(asked):
            exits.say("not made; nothing was spent")
            return
    shell.output.line(said_of_counter(shell.connection.do_counter(statement, sql, *amounts)))


def explain(shell: Shell, statement: CounterStatement, sql: str) -> None:
    """What a counter would count, at which price. Raises dpsql.Error."""
    amounts = shell.asked.get("epsilon"), shell.asked.get("rho")
    shell.output.line(shell.connection.explain_counter(statement, sql, *amounts))


def show(shell: Shell) -> None:
    """All that the ledger knows."""
    rows = [[cell(value) for value in row] for row in listed(shell.connection.counters)]
    shell.output.write(plain_table([name for name, _ in LISTED], rows) + "\n", shell.looks.pager)
