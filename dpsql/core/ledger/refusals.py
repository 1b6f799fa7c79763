"""The words of the budget's refusals: a charge does not fit (DP403, DP404, DP405, DP413); no usable ledger (DP407)."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from dpsql.core.privacy_loss import NO_LOSS, PrivacyLoss, remaining, show_left, show_spent
from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.diagnostics.errors import BudgetExceeded, CannotOpen
from dpsql.diagnostics.note import NOTHING_RAN

CHARGED = "nothing was run, but the charge was made and stays"
KEPT_BACK = "the answer is not shown, and the charge stays; what was stored is free when it is asked for again"
PERHAPS_CHARGED = "nothing was run, but the charge may have been made, and stays then"
ACCEPTANCE_HELP = (
    "custodian: restore the newest ledger (with its -wal file) and its head file",
    "if they are lost, accept the file as it stands, forgetting what was spent since:  "
    "dpsql budget POLICY --accept-head  (with --ledger, if one was given)",
)
"""The repairs for a ledger that does not agree with its head."""


@dataclass(frozen=True, slots=True)
class CapReached:
    """One cap that one charge meets: the code it is refused with, its name, its place in the policy, what is spent.

    received: the part of `asked` that stored answers cost. whole: it is the cap that is looked at, not what is left.
    of: whose budget a custodian may add to; none: it is none that the ledger fixes.
    """

    code: str
    name: str
    setting: str
    asked: PrivacyLoss
    cap: PrivacyLoss
    spent: PrivacyLoss = NO_LOSS
    received: PrivacyLoss = NO_LOSS
    whole: bool = False
    of: str = ""

    @property
    def left(self) -> PrivacyLoss:
        """What is left of the cap, exact."""
        return remaining(self.cap, self.spent)


def over_budget(limits: Sequence[CapReached]) -> BudgetExceeded | None:
    """The refusal for every limit that its charge does not fit into, or None if all fit."""
    broken = [limit for limit in limits if not limit.asked.within(limit.left)]
    if not broken:
        return None
    repairs = _repairs(broken, limits)
    return BudgetExceeded([_diagnostic(limit, repairs) for limit in broken])


def _diagnostic(limit: CapReached, repairs: tuple[str, ...]) -> Diagnostic:
    left, word = limit.left, "allowed" if limit.whole or limit.code == "DP405" else "left"
    parts = [
        f"{symbol} {show_spent(asked, plain=symbol != 'δ')} asked, {show_left(fits, plain=symbol != 'δ')} {word}"
        for symbol, asked, fits in (
            ("ε", limit.asked.epsilon, left.epsilon),
            ("ρ", limit.asked.rho, left.rho),
            ("δ", limit.asked.delta, left.delta),
        )
        if asked > fits
    ]
    if limit.received != NO_LOSS:
        parts.append(f"stored answers, new to this account, cost {limit.received} of it")
    if limit.cap == NO_LOSS and limit.code in ("DP404", "DP405"):  # such as `*`, where the policy names analysts only
        repairs = ("ask as an analyst to whom the policy gives something:  --analyst NAME,  in Python  analyst='NAME'",)
        custodian = (
            "custodian: name the analyst in the policy's  budgets.analysts,  or let everybody ask:  " + _EVERYBODY
        )
    elif limit.code in ("DP403", "DP404") and limit.asked.delta and not limit.cap.delta:
        custodian = f"custodian: give {limit.setting} a delta in the policy; left out it is 0"
    else:
        place = "users.yaml, or let time pass" if limit.code == "DP413" else "the policy"
        custodian = f"custodian: raise {limit.setting} in {place}{_and_add(limit)}; what is spent stays spent"
    return Diagnostic(limit.code, f"{limit.name}: {'; '.join(parts)}", help=(*repairs, custodian), notes=(NOTHING_RAN,))


def _and_add(limit: CapReached) -> str:
    """What is fixed in the ledger grows by an entry only, before or after the policy says so."""
    of = limit.of if limit.of == key(limit.of) else repr(limit.of)
    return f", and add to it:  dpsql budget POLICY --add … --of {of} --reason …" if limit.of else ""


_EVERYBODY = '"*": {epsilon: 0.5, delta: 1e-8}'
_FRESH = " with fresh=True (--fresh), which pays for new noise in place of the stored answers"


def _repairs(broken: Sequence[CapReached], limits: Sequence[CapReached]) -> tuple[str, ...]:
    """The largest settings that fit, rounded down, for each part in which a limit is broken.

    A smaller ε does not make stored answers cheaper, but new noise can replace them: then every limit has to hold the
    whole charge, also those that were not broken.
    """
    fresh = any(limit.received != NO_LOSS for limit in broken)
    way = _FRESH if fresh else ""
    repairs: list[str] = []

    def fits(part: Literal["epsilon", "delta", "rho"]) -> Sequence[tuple[Fraction, Fraction]]:
        found = [(getattr(limit.asked, part), getattr(limit.left, part)) for limit in limits]
        exceeded = [(asked, left) for asked, left in found if asked > left]
        return [(asked, left) for asked, left in found if asked] if fresh and exceeded else exceeded

    deltas = fits("delta")
    public = "group by public keys (a declared `domain:`), which need no delta"
    if deltas and not min(left for _, left in deltas):  # a smaller ε would not help
        return ("no delta is left, so that nothing fits that needs one", public)
    if epsilons := fits("epsilon"):
        repairs.append(_largest("epsilon", min(left for _, left in epsilons), way))
    if rhos := fits("rho"):
        repairs.append(_largest("rho", min(left for _, left in rhos), way, in_epsilon=True))
    if deltas:
        repairs.append(_largest("delta", min(left for _, left in deltas), way))
        repairs.append(f"or {public}")
    return tuple(repairs)


def _largest(setting: str, left: Fraction, way: str, *, in_epsilon: bool = False) -> str:
    """in_epsilon: a ρ was left, and an ε of a query under zCDP means ρ = ε²/2."""
    if not left:
        return f"nothing is left: no {setting} above 0 fits"
    same = f" (epsilon = {show_left(_floor_sqrt(2 * left))})" if in_epsilon else ""
    return f"use {setting} = {show_left(left)}{same} or less{way}"


def _floor_sqrt(x: Fraction) -> Fraction:
    scale = 10**30
    return Fraction(math.isqrt(math.floor(x * scale * scale)), scale)


def unusable(path: object, what: str, *help: str, nothing_ran: bool = True) -> CannotOpen:
    """The DP407 refusal: this ledger cannot be used, why, and what to do."""
    return CannotOpen(
        [Diagnostic("DP407", f"ledger {path}: {what}", help=tuple(help), notes=(NOTHING_RAN,) if nothing_ran else ())]
    )


def unnamed_units(path: object, units: Sequence[str]) -> CannotOpen:
    """The DP407 refusal of a policy in which a unit may have another name: nobody's budget begins anew."""
    return unusable(
        path,
        f"it has spent for unit {', '.join(map(repr, units))}, which this policy does not name: under another name the "
        "same people would have a second budget",
        "custodian: where a unit was renamed, say what it is called now, and what was spent counts for it:  "
        f"former_units: {{{', '.join(f'{key(unit)}: NAME' for unit in units)}}}",
        "the key stands at the top of the policy, beside  tables:,  and names every unit; null in place of NAME says "
        "that one is gone with its tables",
    )


def key(name: str) -> str:
    """A name as a key of the policy."""
    return name if name.isidentifier() else json.dumps(name, ensure_ascii=False)


def after_commit(failure: CannotOpen) -> CannotOpen:
    """The same refusal for something that fails once a charge is committed: it does not say that nothing was spent."""
    return CannotOpen([replace(d, notes=(CHARGED,)) for d in failure.diagnostics])


def kept_back(failure: CannotOpen) -> CannotOpen:
    """The same refusal for something that fails once the query has run."""
    return CannotOpen([replace(d, notes=(KEPT_BACK,)) for d in failure.diagnostics])


def perhaps_charged(path: object) -> CannotOpen:
    """The DP407 refusal where nobody can tell what a commit has come to. It is the same whatever happened."""
    what = "the connection was lost while the charge was committed, and whether it was made could not be looked up"
    refusal = unusable(path, what, "when the server answers, see whether it was:  dpsql budget POLICY --history")
    return CannotOpen([replace(d, notes=(PERHAPS_CHARGED,)) for d in refusal.diagnostics])
