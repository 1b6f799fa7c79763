"""Batches in the shell, `\\batch FILE` and `DP BATCH (…)`: counts and sums, measured together and paid for once."""

from __future__ import annotations

from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.faces.cli import exits
from dpsql.faces.cli.batch_answers import tables
from dpsql.faces.cli.shell.commands import running
from dpsql.faces.cli.shell.state import Shell
from dpsql.planner.plan import Plan
from dpsql.service.batches.batch import Batch
from dpsql.service.privacy_settings import settled


def explain(shell: Shell, batch: Batch) -> None:
    """What a batch would measure, its price and its ±. Raises dpsql.Error."""
    plan = batch.previewed(settled(shell.asked, shell.connection.settings))
    _complain(batch)
    shell.output.write(batch.explained(plan) + "\n", shell.looks.pager)


def cost(shell: Shell, batch: Batch) -> None:
    """What a batch would be charged now. Raises dpsql.Error."""
    _tell_price(shell, batch, _plan(shell, batch))


def do(shell: Shell, batch: Batch) -> None:
    """Show the price, ask where a query of that price is asked about, and run. Raises dpsql.Error, Cancelled."""
    plan = _plan(shell, batch)
    _tell_price(shell, batch, plan)
    if not running.agreed(shell, plan, bool(batch.design.refused)):
        exits.say("not run; nothing was spent")
        return
    shell.output.write(tables(batch.answered(running.run(shell, plan))), shell.looks.pager)


def _plan(shell: Shell, batch: Batch) -> Plan:
    plan = batch.planned_with(settled(shell.asked, shell.connection.settings))
    _complain(batch)
    return plan


def _complain(batch: Batch) -> None:
    for refusal in batch.design.refused.values():
        exits.complain(refusal.diagnostics)


def _tell_price(shell: Shell, batch: Batch, plan: Plan) -> None:
    price = shell.connection.charge(plan, fresh=shell.fresh).loss
    count = len(batch.design.members)
    costs = "nothing" if price == PrivacyLoss() else str(price)
    shell.output.line(f"{count} {'query' if count == 1 else 'queries'}, together: would cost {costs}")
