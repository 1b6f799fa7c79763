"""`\\batch FILE`: the counts and sums of a file, measured together and paid for once."""

from __future__ import annotations

from pathlib import Path

from dpsql.cli import exits
from dpsql.cli.batch_answers import tables
from dpsql.cli.shell.commands import statements
from dpsql.cli.shell.commands.query_commands import read_queries
from dpsql.cli.shell.state import Shell
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.diagnostics.errors import reject
from dpsql.frontend.text.unfinished import with_variables
from dpsql.service.settings import settled

_WORDS = frozenset({"skip", "explain"})


def batch(shell: Shell, arguments: list[str]) -> None:
    """Show the price, ask where a query of that price is asked about, and run. Raises dpsql.Error."""
    file, *words = arguments or [""]
    if not file or not set(words) <= _WORDS:
        raise reject("DP903", "\\batch needs a file", help=["write  \\batch FILE [skip] [explain]"])
    source = read_queries(shell, Path(file))
    text = with_variables(source.text, shell.variables.get, shell.dialect)
    found = shell.connection.batch_of(text, source.name, skip_refused="skip" in words)
    plan = found.planned_with(settled(shell.asked, shell.connection.settings))
    for refusal in found.design.refused.values():
        exits.complain(refusal.diagnostics)
    if "explain" in words:
        shell.output.write(found.explained(plan) + "\n", shell.looks.pager)
        return
    price = shell.connection.charge(plan, fresh=shell.fresh).loss
    count = len(found.design.members)
    costs = "nothing" if price == PrivacyLoss() else str(price)
    shell.output.line(f"{count} {'query' if count == 1 else 'queries'}, together: would cost {costs}")
    if not statements.agreed(shell, plan, bool(found.design.refused)):
        exits.say("not run; nothing was spent")
        return
    release = statements.run(shell, plan)
    shell.output.write(tables(found.answered(release)), shell.looks.pager)
