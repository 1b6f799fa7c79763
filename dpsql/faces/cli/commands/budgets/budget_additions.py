"""`dpsql budget --add`: an entry in the ledger's chain that makes a budget larger, or smaller, and says why."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from dpsql.core.ledger.ledger import Cap, Ledger
from dpsql.core.ledger.losses.fixed_budgets import Fixed, changed, least
from dpsql.core.policy.policy import Policy
from dpsql.core.privacy_loss import PrivacyLoss, exact
from dpsql.core.release.charge import change_budget
from dpsql.diagnostics.errors import reject
from dpsql.service.accounts.ledgers import AnyPlace, open_ledger

TOTAL = "total"


@dataclass(frozen=True, slots=True)
class Addition:
    """What is added, as it was typed: of ε (zCDP: ρ) and of δ. of: the total, or an analyst; unit: None for all."""

    amount: str | None
    delta: str | None
    of: str
    unit: str | None
    reason: str

    @property
    def text(self) -> str:
        """As the history shows it."""
        amounts = [t for t in (self.amount, None if self.delta is None else f"delta {self.delta}") if t is not None]
        of = self.of if self.unit is None else f"{self.of} of {self.unit}"
        return f"ADD {' and '.join(amounts)} TO {of}: {self.reason}"


def read(amount: str | None, delta: str | None, of: str, unit: str | None, reason: str | None) -> Addition | None:
    """What the options ask for; None for nothing. Raises Rejected DP903."""
    if amount is None and delta is None:
        if reason is not None or unit is not None:
            raise reject("DP903", "nothing is added", help=["--add AMOUNT  or  --add-delta AMOUNT"])
        return None
    if reason is None or not reason.strip():
        raise reject("DP903", "whoever adds to a budget says why", help=['--reason "…"; it is kept in the ledger'])
    return Addition(amount, delta, of, unit, reason)


def add(policy: Policy, place: AnyPlace | None, addition: Addition) -> None:
    """Add, durably, and say what holds then. Raises CannotOpen DP407, Rejected DP903."""
    if place is None:
        raise reject("DP903", "a ledger in memory keeps no budget", help=["name a file or a database: --ledger"])
    amount, delta = _amount(addition.amount), _amount(addition.delta)
    in_rho = policy.privacy.accountant == "zcdp"
    said = _said(policy, addition)

    def fixing(fixed: Fixed) -> Fixed:
        found: dict[Cap, PrivacyLoss] = {}
        for cap, number in said.items():
            try:
                own = fixed.get(cap, number)
                found[cap] = changed(own, Fraction(0) if in_rho else amount, delta, amount if in_rho else Fraction(0))
            except ValueError:
                raise reject(
                    "DP903", f"{_name(cap)} is {own}, and would be below nothing", help=["take less away"]
                ) from None
        return found

    ledger = open_ledger(policy, place)
    try:
        receipt = change_budget(ledger, policy.hash, addition.text, fixing)
        ledger.finish()
    finally:
        ledger.close()
    for cap, number in receipt.fixed.items():
        print(f"{_name(cap)}: {number} from entry {receipt.sequence} on", file=sys.stderr)


def differences(policy: Policy, ledger: Ledger) -> Iterator[str]:
    """Where policy and ledger say different numbers: the smaller one holds, part by part."""
    for cap, fixed in ledger.fixed().items():
        unit, analyst = cap
        caps = policy.caps_for(None if analyst in (None, "*") else analyst)
        said = (caps.total if analyst is None else caps.analyst).get(unit)
        if unit in policy.units and said is not None and said != fixed:
            yield f"{_name(cap)}: the policy says {said}, and the ledger {fixed}: {least(said, fixed)} holds"


def _said(policy: Policy, addition: Addition) -> dict[Cap, PrivacyLoss]:
    """The budgets that are meant, with the policy's numbers: for those that nothing was spent of yet."""
    if addition.of != TOTAL and addition.of not in policy.budgets.analysts:
        known = ", ".join(policy.budgets.analysts) or "no analyst has one"
        raise reject("DP903", f"there is no budget of {addition.of!r}", help=[f"--of total, or of an analyst: {known}"])
    analyst = None if addition.of == TOTAL else addition.of
    caps = policy.caps_for(None if analyst in (None, "*") else analyst)
    said = {(u, analyst): cap for u, cap in (caps.total if analyst is None else caps.analyst).items()}
    if addition.unit is not None:
        said = {cap: loss for cap, loss in said.items() if cap[0] == addition.unit}
    if not said:
        raise reject(
            "DP903", "the policy declares no such budget", help=["declare it: budgets.total, budgets.analysts"]
        )
    return said


def _amount(text: str | None) -> Fraction:
    try:
        return Fraction(0) if text is None else exact(text, "amount")
    except ValueError as error:
        raise reject("DP903", str(error), help=["a number such as  --add 0.5  or  --add=-0.5"]) from None


def _name(cap: Cap) -> str:
    unit, analyst = cap
    return f"total budget of {unit}" if analyst is None else f"budget of {analyst} on {unit}"
