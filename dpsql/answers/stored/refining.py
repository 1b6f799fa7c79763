"""The same question at a larger ρ: what the account has got counts, and the difference is drawn.

*Claim.* A number of variance v₂ costs an account that holds draws of it what is missing to its ρ, and is as accurate as
one draw of v₂. *Why.* Gaussian noise of variance v costs ρ in proportion to 1/v. What is drawn has variance v′ with
1/v′ = 1/v₂ - Σ 1/vᵢ, and is priced, charged, named and stored like any other; the mean of all draws, weighted by 1/v,
is arithmetic, and its variance is v₂ where all are independent noise on one integer. No privacy rests on that: of other
data, the mean is of two truths, and costs the same. *When it would be false.* If the data were others: draws are taken
together only under one address, and one identity of the data, which is part of the name of each draw in the ledger and
read from names, sizes and times of files. Whoever writes single rows into these files lets prices tell that he has.
*Tested by* tests/answers/stored/test_refining.py.

Under ε there is no such thing: pure noise of ε₂ - ε₁ beside that of ε₁ is less accurate than ε₂.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import numpy as np

from dpsql.answers.stored.analyst_account import AnalystAccount
from dpsql.answers.stored.choosing import ChosenAnswers, Findable, height_of
from dpsql.core.ledger.paid import data_of, unchanged
from dpsql.core.ledger.released import StoredAnswer
from dpsql.core.noise.integer_columns import Integers
from dpsql.core.noise.measurement import MeasuredRelease
from dpsql.core.noise.mechanisms import Additive, DiscreteGaussian, made_by
from dpsql.core.release.noisy import Estimate, GivenAnswers, NoisyRelease, NoisySource, Sums
from dpsql.core.release.planned import PlannedRelease
from dpsql.diagnostics.note import Note, Rank
from dpsql.planner.plan import Plan

WORTH_IT: Final = Fraction(9, 10)
"""What is asked is drawn anew where it is hardly more accurate than what is held: v₂ above this part of v₁."""
EACH_LOOK: Final = "each look holds at its level, the one that somebody stops at need not"


@dataclass(frozen=True, slots=True)
class Refinement:
    """What a run draws in place of what it was asked for, and what that is put together with.

    plan: with the noise that is drawn. choice: with earlier draws. improved: those beside which something is drawn.
    """

    plan: Plan
    choice: ChosenAnswers
    improved: tuple[StoredAnswer, ...] = ()

    def told(self, costs: object, asked: object) -> tuple[Note, ...]:
        """What the reader is told. costs: of the run; asked: of new noise for all of it."""
        earlier = (a for own in self.choice.given for draws in own.earlier.values() for a in draws)
        days = sorted({a.made_at.date().isoformat() for a in earlier})
        if not self.improved:
            return (Note(f"the mean of draws, those of {', '.join(days)} among them; {EACH_LOOK}", Rank.SOURCE),)
        said = f"improves answers of {', '.join(days)}: {costs} in place of {asked}; {EACH_LOOK}"
        return (Note(said, Rank.SOURCE),)


def refined(
    plan: Plan, account: AnalystAccount, store: Findable, choice: ChosenAnswers, held: Collection[str]
) -> Refinement | None:
    """None where nothing is held that could count. held: ids of the account's answers. Raises CannotOpen."""
    if account.policy.privacy.accountant != "zcdp" or not account.data or plan.finding is not None:
        return None
    if plan.is_part or plan.totals or account.addresses(plan).nested:
        return None
    releases, given, improved = list(plan.releases), list(choice.given), list[StoredAnswer]()
    for place in range(len(plan.releasing.releases)):
        measured, own = releases[place].measured, given[place]
        if own.estimate is None and _is_linear(measured):
            draws = _draws(plan, account, store, place, held)
            found = _of_release(releases[place], own, draws, held)
            releases[place], given[place] = found
            improved += [a for i, own_draws in draws.items() if _draws_more(found, i) for a in own_draws]
    if not any(own.earlier for own in given):
        return None
    return Refinement(plan.with_releases(releases), replace(choice, given=tuple(given)), tuple(improved))


def _is_linear(measured: MeasuredRelease) -> bool:
    """Whether its groups are public, and each of its columns is a sum of its numbers: counts and sums."""
    components = [m.component for m in measured.measurements]
    return measured.threshold is None and all(
        o.recipe.terms(components) is not None for o in measured.node.outputs
    )  # fmt: skip


def _draws(
    plan: Plan, account: AnalystAccount, store: Findable, place: int, held: Collection[str]
) -> Mapping[int, Sequence[StoredAnswer]]:
    """Component → the account's own draws of it, of these data; the most accurate in front."""
    measured, base = plan.releases[place].measured, account.addresses(plan).of(place, {})
    height = height_of(measured.node)
    addresses = {
        i: base.address(measured.node.components[i], "")
        for i, m in enumerate(measured.measurements)
        if m.known is None and isinstance(m.mechanism, DiscreteGaussian)
    }
    found = store.find(addresses.values())

    def counts(a: StoredAnswer) -> bool:
        alike = a.shown is None and a.mechanism == DiscreteGaussian.name and len(a.values) == height
        return alike and a.id in held and data_of(a.id) == account.data and unchanged(a)

    return {
        i: sorted(filter(counts, found.get(address, ())), key=lambda a: a.parameter) for i, address in addresses.items()
    }


def _of_release(
    planned: PlannedRelease, given: GivenAnswers, draws: Mapping[int, Sequence[StoredAnswer]], held: Collection[str]
) -> tuple[PlannedRelease, GivenAnswers]:
    measurements, answers = list(planned.measured.measurements), dict(given.answers)
    earlier: dict[int, tuple[StoredAnswer, ...]] = {}
    for i, own in draws.items():
        if i in answers:
            rest = tuple(a for a in own if a.id != answers[i].id)
            if rest and len(rest) < len(own):
                earlier[i] = rest
            continue
        noise = measurements[i].mechanism
        assert isinstance(noise, DiscreteGaussian)
        has, needs = sum((1 / a.parameter for a in own), Fraction(0)), 1 / noise.sigma_squared
        if own and has >= needs:
            answers[i], earlier[i] = own[0], tuple(own[1:])
        elif own and has <= WORTH_IT * needs:
            measurements[i] = replace(measurements[i], mechanism=DiscreteGaussian(1 / (needs - has)))
            earlier[i] = tuple(own)
    measured = replace(planned.measured, measurements=tuple(measurements))
    return replace(planned, measured=measured), replace(
        given, answers=answers, earlier={i: more for i, more in earlier.items() if more}
    )  # fmt: skip


def _draws_more(found: tuple[PlannedRelease, GivenAnswers], component: int) -> bool:
    _, given = found
    return component in given.earlier and component not in given.answers


def combined(noisy: NoisyRelease, given: GivenAnswers) -> NoisyRelease:
    """The numbers with stored ones of other groups, or with the earlier draws of each: their mean, rounded to whole
    ones; arithmetic with what is public.
    """
    if given.beside is not None:
        return given.beside.with_drawn(noisy)
    if not given.earlier:
        return noisy
    height, begin = len(noisy.keys), 0
    sources, sums, measurements = list[NoisySource](), dict[int, Sums](), list(noisy.planned.measured.measurements)
    for i, m in enumerate(measurements):
        if m.known is not None:
            continue
        draws = [(m.noise, noisy.columns[i]), *((_noise(a), Integers.of(a.values)) for a in given.earlier.get(i, ()))]
        weights = [Fraction(1)]
        if len(draws) > 1:
            weights = [1 / Fraction(noise.sigma_squared) for noise, _ in draws if isinstance(noise, DiscreteGaussian)]
            measurements[i] = replace(m, mechanism=DiscreteGaussian(1 / sum(weights, Fraction(0))))
        each = np.arange(height)[:, None] + height * np.arange(len(draws))[None, :]
        parts = np.tile([float(w / sum(weights)) for w in weights], height)
        sums[i] = Sums(np.arange(height + 1) * len(draws), begin + each.ravel(), parts)
        sources += [NoisySource(noise, 1, values) for noise, values in draws]
        begin += height * len(draws)
    measured = replace(noisy.planned.measured, measurements=tuple(measurements))
    return Estimate((), tuple(sources), sums).of(replace(noisy.planned, measured=measured))


def _noise(answer: StoredAnswer) -> Additive:
    found = made_by(answer.mechanism, answer.parameter)
    assert isinstance(found, Additive)
    return found
