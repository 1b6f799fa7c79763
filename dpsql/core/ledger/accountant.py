"""What a query costs in a ledger's own terms.

*Claim.* The sum of the costs given here, taken over adaptively chosen queries with adaptively chosen parameters, bounds
the privacy loss of all of them together. *Why.* Σε and (Σε, Σδ): Rogers, Roth, Ullman & Vadhan 2016. Σρ and
(Σρ, Σδ): Feldman & Zrnic 2021; Bun & Steinke 2016 for the conversions. *When it would be false.* If a part's loss
were itself chosen after seeing that part's answer, or if a query's shares were re-planned after its first noisy value.
*Tested by* tests/core/ledger/test_accountant.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Literal, assert_never

from dpsql.core.privacy_loss import PrivacyLoss, compose, pure_to_rho, rho_to_epsilon, show_spent
from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.diagnostics.errors import BudgetExceeded
from dpsql.diagnostics.note import NOTHING_RAN

Accountant = Literal["pure_dp", "approx_dp", "zcdp"]

ACCOUNTANTS: tuple[Accountant, ...] = ("pure_dp", "approx_dp", "zcdp")


def cost(accountant: Accountant, parts: Sequence[PrivacyLoss], conversion_delta: Fraction = Fraction(0)) -> PrivacyLoss:
    """The charge for one query whose components have the losses `parts`.

    pure_dp: Σε; any δ or ρ is refused. approx_dp: (Σε, Σδ), where Gaussian parts are composed in ρ first and converted
    once with `conversion_delta`, which is charged too (not charged if nothing needs converting). zcdp: pure ε counts
    ε²/2, part by part, so thresholded Laplace (ε, δ) is (ε²/2, δ); ρ counts itself; no conversion.
    Raises BudgetExceeded (DP405) where the accountant cannot express the loss, ValueError if a conversion is needed
    and `conversion_delta` is not inside (0, 1).
    """
    match accountant:
        case "pure_dp":
            whole = compose(parts)
            if whole.delta or whole.rho:
                raise _impure(whole)
            return whole
        case "approx_dp":
            whole = compose(parts)
            if not whole.rho:
                return whole
            epsilon = rho_to_epsilon(whole.rho, conversion_delta)
            return PrivacyLoss(whole.epsilon + epsilon, whole.delta + conversion_delta)
        case "zcdp":
            return compose(PrivacyLoss(delta=part.delta, rho=part.rho + pure_to_rho(part.epsilon)) for part in parts)
        case _:
            assert_never(accountant)


def in_terms_of(accountant: Accountant, loss: PrivacyLoss) -> bool:
    """True if a charge or a cap is written in this accountant's currency: ε; ε and δ; or ρ and δ."""
    match accountant:
        case "pure_dp":
            return not loss.delta and not loss.rho
        case "approx_dp":
            return not loss.rho
        case "zcdp":
            return not loss.epsilon
        case _:
            assert_never(accountant)


def _impure(whole: PrivacyLoss) -> BudgetExceeded:
    needs = f"δ {show_spent(whole.delta)}" if whole.delta else "Gaussian noise"
    return BudgetExceeded(
        [
            Diagnostic(
                "DP405",
                f"this query needs {needs}, and the policy's accountant is pure_dp, which allows none per query",
                help=(
                    "group by public keys (a declared `domain:`), which need no δ, and use Laplace noise",
                    "custodian: set  privacy.accountant: approx_dp  and give budgets.total a delta (a new ledger)",
                ),
                notes=(NOTHING_RAN,),
            )
        ]
    )
