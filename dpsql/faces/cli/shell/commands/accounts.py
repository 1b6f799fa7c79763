"""What is left of the budget: for the prompt, the footer and the question before a large query."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from dpsql.core.ledger.ledger import Receipt
from dpsql.core.privacy_loss import NO_LOSS, PrivacyLoss, largest, show_left
from dpsql.faces.cli.commands.budgets.budget import BudgetLine, read_accounts
from dpsql.service.accounts.remaining_budgets import limits_of

if TYPE_CHECKING:
    from dpsql.faces.cli.shell.state import Shell


@dataclass(frozen=True, slots=True)
class Left:
    """The tightest limit: what is left of it and how large it is, both in ε or (zCDP) in ρ."""

    symbol: str
    left: Fraction
    limit: Fraction

    def __str__(self) -> str:
        return f"{self.symbol} {short(self.left)}/{short(self.limit)}"


def tightest(shell: Shell) -> Left | None:
    """The limit of which least is left, over all units, of the analyst and in total; None if none is declared.

    Raises CannotOpen DP407.
    """
    policy, account = shell.connection.policy, shell.connection.analyst
    caps = limits_of(policy, shell.connection.ledger if shell.connection.has_ledger else None, account)
    budget = shell.connection.budget if shell.connection.has_ledger else {}
    found: list[tuple[PrivacyLoss, PrivacyLoss]] = []
    for unit in policy.units:
        now = budget.get(unit)
        for cap, left in (
            (caps.analyst.get(unit), None if now is None else now.remaining),
            (caps.total.get(unit), None if now is None else now.total_remaining),
        ):
            if cap is not None:
                found.append((cap if left is None else left, cap))
    if not found:
        return None
    if policy.privacy.accountant == "zcdp":
        return Left("ρ", *min((a.rho, b.rho) for a, b in found))
    return Left("ε", *min((a.epsilon, b.epsilon) for a, b in found))


def charged(shell: Shell, ids: Collection[str]) -> PrivacyLoss:
    """What the account was charged by the ledger's entries of these ids, of the unit that was charged most.

    Whatever others charge the same account meanwhile is no part of it. Raises CannotOpen DP407.
    """
    if not ids:
        return NO_LOSS
    found = [r.entry for r in shell.connection.ledger.find(ids)]
    return largest(entry.in_account(unit) for entry in found for unit in entry.units)


def spent(shell: Shell, analyst: str | None) -> tuple[list[BudgetLine], Sequence[Receipt]]:
    """`read_accounts` of the shell's ledger, which looking does not make. Raises CannotOpen DP407."""
    connection = shell.connection
    return read_accounts(connection.policy, connection.ledger if connection.has_ledger else None, analyst)


def share(price: PrivacyLoss, left: PrivacyLoss | None) -> Fraction:
    """How much of what is left a price takes: of ε, δ or ρ, whichever is most; 1 if nothing is left of it."""
    if left is None:
        return Fraction(0)
    parts = ((price.epsilon, left.epsilon), (price.delta, left.delta), (price.rho, left.rho))
    return max((min(Fraction(1), p / rest) if rest else Fraction(1) for p, rest in parts if p), default=Fraction(0))


def short(amount: Fraction) -> str:
    """Two decimals, rounded down; more where they would show nothing."""
    step = Decimal("0.01")
    if amount and amount < Fraction(1, 100):
        return show_left(amount, plain=True)
    shown = Decimal(int(amount * 100)) * step
    return str(shown.quantize(step, rounding=ROUND_FLOOR))
