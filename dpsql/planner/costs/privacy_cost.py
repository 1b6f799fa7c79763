"""What a query may lose of privacy, and what its plan costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Final

from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.nodes import Release
from dpsql.core.ir.walk import Tagged
from dpsql.core.ledger.accountant import cost
from dpsql.core.noise.calibration import LossRequest
from dpsql.core.noise.measurement import MeasuredRelease, conversion_delta_of
from dpsql.core.numbers.normal import root
from dpsql.core.policy.policy import Policy
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.diagnostics.errors import reject
from dpsql.planner.settings.query_settings import QuerySettings

HALF: Final = Fraction(1, 2)
"""What keys that are shown first get, and what is left for numbers of them."""


def request_of(
    settings: QuerySettings,
    policy: Policy,
    releases: Sequence[Tagged[Facts]],
    measures: bool,
    weights: Mapping[int, Fraction],
) -> LossRequest:
    """What the query may lose. Raises Rejected DP401, DP406, DP408.

    releases: all that the query has. measures: whether any of them needs data; else nobody need say what it may cost.
    """
    accountant = policy.privacy.accountant
    private_keys = [t.node for t in releases if isinstance(t.node, Release) and t.node.threshold is not None]
    if accountant == "pure_dp" and private_keys:
        raise reject(
            "DP408", "private group keys need a δ, which pure differential privacy does not have",
            span=private_keys[0].keys[0].span, label="no public list of these values is known",
            help=["custodian: declare a domain for the group columns, or use approx_dp"],
        )  # fmt: skip
    if not measures:
        return LossRequest(Fraction(1), accountant=accountant)
    epsilon = settings.epsilon if settings.epsilon is not None else policy.defaults.epsilon
    delta = settings.delta if settings.delta is not None else policy.defaults.delta
    if settings.rho is not None:
        if accountant != "zcdp":
            raise reject(
                "DP406", f"a rho was given, and the policy's accountant, {accountant}, counts epsilon",
                help=["give an epsilon; or, custodian: set  privacy.accountant: zcdp  (a new ledger)"],
            )  # fmt: skip
        epsilon = Fraction(root(2 * settings.rho).lo or 0)  # what a pure ε of the same price would be
    if settings.max_error:
        epsilon = Fraction(1)  # stands for the one that is found
    if epsilon is None:
        raise reject(
            "DP401", "no epsilon was given, and the policy has no default",
            help=["say how much to spend, e.g.  run(epsilon=0.5)  or  --epsilon 0.5"],
        )  # fmt: skip
    if accountant == "pure_dp":
        delta = None
    if settings.keys is not None and delta is not None and accountant == "approx_dp":
        delta /= 2  # the rest is for the threshold that has shown them
    part = HALF if settings.half else None
    return LossRequest(
        epsilon, delta or Fraction(0), accountant, settings.rho, weights, settings.family, settings.aside, part
    )


def cost_within(request: LossRequest, measured: Sequence[MeasuredRelease], policy: Policy) -> dict[str, PrivacyLoss]:
    """What the plan costs; never above the request, but for the rounding to the ledger's grid."""
    exact = _costs(measured, policy)
    if not all(each.within(request.budget) for each in exact.values()):
        raise reject(
            "DP406", "the plan would cost more than was asked for; nothing was run",
            help=["please report this query: the planner contradicts itself"],
        )  # fmt: skip
    return {unit: each.on_grid() for unit, each in exact.items()}


def cost_of(measured: Iterable[MeasuredRelease], policy: Policy) -> dict[str, PrivacyLoss]:
    """Privacy unit → loss, from the very objects that will draw the noise, in the policy's accountant.

    On the ledger's grid, so that what is announced is exactly what will be charged. Gaussian noise is converted at the
    δ that the releases state, and that δ is charged: whatever it is, the two numbers belong together.
    """
    return {unit: each.on_grid() for unit, each in _costs(tuple(measured), policy).items()}


def _costs(measured: Sequence[MeasuredRelease], policy: Policy) -> dict[str, PrivacyLoss]:
    """Privacy unit → loss, before it is rounded to the ledger's grid."""
    parts: dict[str, list[PrivacyLoss]] = {}
    for release in measured:
        for unit in release.contributions:
            parts.setdefault(unit, []).extend(release.losses(unit))
    convert = conversion_delta_of(measured)
    return {unit: cost(policy.privacy.accountant, each, convert) for unit, each in parts.items()}
