"""Which numbers of a plan are answered from stored ones, and what that and the others cost.

*Claim.* A number is either noise that the ledger names as paid for, or noise that is charged before it is drawn; no
number is drawn anew without a charge. *Why.* `losses` states the cost of exactly those components that are not
given, and `measure_release` draws noise for exactly those. An answer is taken only if its id stands in an entry of this
ledger, which is durable before its noise is drawn, and if its price is the one that its id was made for (choosing.py).
*When it would be false.* If two draws had one id, or one address stood for different integers (then the numbers would
be wrong, not less private). *Tested by* tests/answers/test_reuse.py, tests/deep/answers/test_equal_addresses.py,
tests/core/ledger/test_budget_attacks.py, tests/core/ledger/test_edited_answers.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from dpsql.answers.store.names import draw_of
from dpsql.core.ledger.accountant import cost
from dpsql.core.noise.measurement import conversion_delta_of
from dpsql.core.policy.policy import Policy
from dpsql.core.privacy_loss import NO_LOSS, PrivacyLoss, largest, remaining
from dpsql.core.release.noisy import Given, wanted
from dpsql.core.release.released import Answer
from dpsql.planner.plan import Plan

Parts = Mapping[str, Sequence[PrivacyLoss]]
"""Privacy unit → losses that add up."""


@dataclass(frozen=True, slots=True)
class Reuse:
    """Per release of a plan, in order: what is given. Everything else is measured.

    new: those of the given answers that the analyst gets for the first time, each once.
    """

    given: tuple[Given, ...]
    new: tuple[Answer, ...] = ()

    @classmethod
    def nothing(cls, plan: Plan) -> Reuse:
        """All is measured."""
        return cls(tuple(Given() for _ in plan.releases))

    def complete(self, plan: Plan) -> bool:
        """True if no noise is to be drawn."""
        return not any(wanted(r.measured, g) for r, g in zip(plan.releases, self.given, strict=True))

    def charges(self, plan: Plan, policy: Policy) -> dict[str, PrivacyLoss]:
        """Privacy unit → what the numbers that are not given cost, from the objects that will draw their noise."""
        return _charged(policy, self._drawn(plan), _conversion(plan))

    def in_account(self, plan: Plan, policy: Policy) -> dict[str, PrivacyLoss]:
        """Privacy unit → all that the analyst's account is charged: new noise, and stored answers that are new to it.

        The ρ of both is composed and converted once, at the larger of their δ: any δ above 0 gives a true bound. Never
        less than the new noise alone.
        """
        drawn, received = self._drawn(plan), self._received(plan)
        both = {unit: [*drawn.get(unit, ()), *received.get(unit, ())] for unit in {**drawn, **received}}
        convert = max([_conversion(plan), *(answer.conversion for answer in self.new)])
        whole, new = _charged(policy, both, convert), self.charges(plan, policy)
        return {unit: largest([loss, new.get(unit, NO_LOSS)]) for unit, loss in whole.items()}

    def received(self, plan: Plan, policy: Policy) -> dict[str, PrivacyLoss]:
        """Privacy unit → what stored answers that are new to the account cost it, beside the new noise."""
        whole, new = self.in_account(plan, policy), self.charges(plan, policy)
        found = {unit: remaining(loss, new.get(unit, NO_LOSS)) for unit, loss in whole.items()}
        return {unit: loss for unit, loss in found.items() if loss != NO_LOSS}

    def _drawn(self, plan: Plan) -> Parts:
        parts: dict[str, list[PrivacyLoss]] = {}
        for release, given in zip(plan.releases, self.given, strict=True):
            measured = release.measured
            for unit in measured.contributions:
                parts.setdefault(unit, []).extend(measured.losses(unit, wanted(measured, given)))
        return parts

    def _received(self, plan: Plan) -> Parts:
        """Of answers that are new to the account, all that they cost once. Those of one bundle that were drawn at one
        time, from the same rows, cost the largest of their losses together again.
        """
        parts: dict[str, list[PrivacyLoss]] = {}
        new = {answer.id for answer in self.new}
        for release, given in zip(plan.releases, self.given, strict=True):
            for bundle in release.measured.bundles:
                drawn: dict[str, list[Answer]] = {}
                for answer in (given.answers[i] for i in bundle if i in given.answers):
                    if answer.id in new:  # also if it serves several releases
                        new.remove(answer.id)
                        drawn.setdefault(draw_of(answer.id), []).append(answer)
                for together in drawn.values():
                    for unit in dict.fromkeys(unit for answer in together for unit in answer.losses):
                        own = [answer.losses[unit] for answer in together if unit in answer.losses]
                        parts.setdefault(unit, []).append(largest(own))
        return parts


def _conversion(plan: Plan) -> Fraction:
    return conversion_delta_of(r.measured for r in plan.releases)


def _charged(policy: Policy, parts: Parts, conversion: Fraction) -> dict[str, PrivacyLoss]:
    """In the policy's accountant, on the ledger's grid; units that lose nothing are left out."""
    found = {unit: cost(policy.privacy.accountant, losses, conversion) for unit, losses in parts.items()}
    return {unit: loss.on_grid() for unit, loss in found.items() if loss != PrivacyLoss()}
