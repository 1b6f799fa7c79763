"""Which numbers of a plan are answered from stored ones, and what the others cost.

*Claim.* A number is either noise that the ledger names as paid for, or noise that is charged before it is drawn; no
number is drawn anew without a charge. *Why.* `losses` states the cost of exactly those components that are not
given, and `measure_release` draws noise for exactly those. An answer is taken only if its id stands in an entry of this
ledger, which is durable before its noise is drawn, and if its price is the one that its id was made for. *When it would
be false.* If two draws had one id, or one address stood for different integers (then the numbers would be wrong, not
less private). *Tested by* tests/unit/session/test_answers.py, tests/property/test_answers.py,
tests/attacks/test_f_budget.py, tests/attacks/test_n_edited_answers.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from functools import cache

from dpsql.answers.names import Terms, draw_of, named, unchanged
from dpsql.answers.store import Answer, AnswerStore, ShownKeys
from dpsql.budget.accountant import cost
from dpsql.compiler.address import Ground, Grounds, Rows
from dpsql.compiler.plan import Plan, PlannedRelease
from dpsql.loss import PrivacyLoss, largest
from dpsql.measure.measured import MeasuredRelease, conversion_delta_of
from dpsql.measure.mechanisms import DiscreteGaussian, DiscreteLaplace, KeyThreshold, Mechanism
from dpsql.plan.nodes import key_sources
from dpsql.policy.models import Policy
from dpsql.release.apart import are_keys
from dpsql.release.columns import released_columns
from dpsql.release.noisy import Given, NoisyRelease, assembled, made_by, wanted


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
        parts: dict[str, list[PrivacyLoss]] = {}
        for release, given in zip(plan.releases, self.given, strict=True):
            measured = release.measured
            for unit in measured.contributions:
                parts.setdefault(unit, []).extend(measured.losses(unit, wanted(measured, given)))
        return _charged(parts, policy, conversion_delta_of(r.measured for r in plan.releases))

    def received(self, plan: Plan, policy: Policy) -> dict[str, PrivacyLoss]:
        """Privacy unit → what stored answers cost an analyst who gets them for the first time: all that they cost once.

        Answers of one bundle that were drawn at one time, from the same rows, cost the largest of their losses together
        again. Gaussian ones of one query were converted together, and are again: any δ above 0 gives a true bound for
        them all.
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
        return _charged(parts, policy, max((answer.conversion for answer in self.new), default=Fraction(0)))


def _charged(
    parts: Mapping[str, Sequence[PrivacyLoss]], policy: Policy, conversion: Fraction
) -> dict[str, PrivacyLoss]:
    """In the policy's accountant, on the ledger's grid; units that lose nothing are left out."""
    found = {unit: cost(policy.privacy.accountant, losses, conversion) for unit, losses in parts.items()}
    return {unit: loss.on_grid() for unit, loss in found.items() if loss != PrivacyLoss()}


def look_up(
    plan: Plan,
    grounds: Grounds,
    store: AnswerStore,
    held: Collection[str],
    paid: Callable[[], Collection[str]],
    *,
    preview: bool = False,
) -> Reuse:
    """What stored answers give of a plan.

    held: ids of the answers that the analyst has. paid: tells the ids of all that the ledger names, if it comes to
    that; others are left alone, whatever the store says. A release that reads others can be given only if they are
    given whole: new noise there makes another question of it.
    preview: nothing will be charged, so nothing may depend on the numbers of answers that the analyst has not: what
    reads those counts as new. Else whoever asks for prices could tell from them whether he has guessed a number.
    Raises CannotOpen (DP407).
    """
    found: list[Given] = []
    rows: dict[int, Rows] = {}
    choice = _Choice(held, cache(paid))
    needed = frozenset().union(*(grounds.reads(place) for place in range(len(plan.releases))))
    for place, planned in enumerate(plan.releases):
        below = grounds.reads(place)
        given = Given()
        if below <= rows.keys():
            ground = grounds.ground(place, {p: rows[p] for p in below})
            given = _given(planned, ground, store, choice)
            seen = not preview or all(a.id in held for a in given.answers.values())
            if place in needed and seen and not wanted(planned.measured, given):
                rows[place] = released_rows(assembled(planned, given))
        found.append(given)
    # By id: an answer that serves two releases is received once.
    new = {a.id: a for given in found for a in given.answers.values() if a.id not in held}
    return Reuse(tuple(found), tuple(new.values()))


def released_rows(noisy: NoisyRelease) -> Rows:
    """The rows of a release as later ones read them: group keys, then released columns."""
    columns = [*noisy.key_columns, *released_columns(noisy)]
    if not columns:
        return [()] * len(noisy.keys)
    return list(zip(*columns, strict=True))


def _given(planned: PlannedRelease, ground: Ground, store: AnswerStore, choice: _Choice) -> Given:
    measured = planned.measured
    places = wanted(measured, Given())
    if measured.threshold is None:
        sources = key_sources(measured.node)
        assert sources is not None
        height = math.prod(len(s.keys) for s in sources)
        return Given(_answers(measured, ground, store, choice, places, "", height))
    deciding, address = measured.node.threshold, ground.address_of_keys()
    assert deciding is not None
    best, planned_noise = Given(), measured.measurements[deciding].mechanism
    for keys in choice.ranked(store.find([address]).get(address, ()), planned_noise):
        # Of several key sets the one over which most is known; the best of those.
        if keys.shown is None or not _as_good(keys, measured.threshold):
            continue
        if not are_keys(keys.shown.keys, [k.type for k in measured.node.keys]):
            continue
        rest = [i for i in places if i != deciding]
        found = _answers(measured, ground, store, choice, rest, keys.id, len(keys.values))
        if len(found) + 1 > len(best.answers):
            best = Given({deciding: keys, **found}, keys.shown.keys)
    return best


def _answers(
    measured: MeasuredRelease,
    ground: Ground,
    store: AnswerStore,
    choice: _Choice,
    places: Sequence[int],
    keys: str,
    height: int,
) -> dict[int, Answer]:
    """Component → the stored answer for it, with one number for each of `height` keys."""
    addresses = {i: ground.address(measured.node.components[i], keys) for i in places}
    stored, found = store.find(addresses.values()), {}
    for i, address in addresses.items():
        ranked = choice.ranked(stored.get(address, ()), measured.measurements[i].mechanism)
        fit = [a for a in ranked if a.shown is None and len(a.values) == height]
        if fit:
            found[i] = fit[0]
    return found


def _as_good(keys: Answer, planned: KeyThreshold) -> bool:
    """Whether stored keys show all that planned ones would, at no larger δ."""
    shown = keys.shown
    if shown is None or len(shown.keys) != len(keys.values):
        return False
    return shown.threshold <= planned.threshold and shown.delta <= planned.delta


@dataclass(frozen=True, slots=True)
class _Choice:
    """Which of several stored answers to take."""

    held: Collection[str]
    paid: Callable[[], Collection[str]]

    def ranked(self, stored: Sequence[Answer], planned: Mechanism) -> list[Answer]:
        """Those that are at least as accurate as planned: first what the analyst has, the most accurate in front; then
        what he has not, the least accurate in front, which costs his account least. Of equal ones the newest first.
        """
        own: list[tuple[float, int, Answer]] = []
        others: list[tuple[float, int, Answer]] = []
        for at, answer in enumerate(stored):
            made = _made(answer)
            if made is None or not as_accurate(made, planned) or not unchanged(answer):
                continue
            if answer.id in self.held:
                own.append((made.variance(), -at, answer))
            elif answer.id in self.paid():
                others.append((-made.variance(), -at, answer))
        return [a for side in (own, others) for _, _, a in sorted(side, key=lambda f: f[:2])]


def as_accurate(made: Mechanism, planned: Mechanism) -> bool:
    """Whether noise is no wider than planned: exact within a family, by variance between two."""
    match made, planned:
        case DiscreteLaplace(scale=a), DiscreteLaplace(scale=b):
            return a <= b
        case DiscreteGaussian(sigma_squared=a), DiscreteGaussian(sigma_squared=b):
            return a <= b
        case _:
            return made.variance() <= planned.variance()


def _made(answer: Answer) -> Mechanism | None:
    """The noise that an answer was made with; None if this version does not know it."""
    try:
        return made_by(answer.mechanism, answer.parameter)
    except ValueError:
        return None


def names_of(measured: MeasuredRelease, given: Given, draw: str) -> dict[int, str]:
    """Component → the id of the noise that will be drawn for it. draw: a text for this draw alone, without dots."""
    return {i: named(draw, i, _terms(measured, i)) for i in wanted(measured, given)}


def _terms(measured: MeasuredRelease, place: int) -> Terms:
    losses = {unit: measured.loss_of(place, unit) for unit in measured.contributions}
    decided = measured.threshold if place == measured.node.threshold else None
    return Terms(
        *_stored_form(measured.measurements[place].mechanism),
        losses,
        measured.conversion_delta if any(loss.rho for loss in losses.values()) else Fraction(0),
        None if decided is None else (decided.threshold, decided.r, decided.g, decided.delta),
    )


def to_store(
    noisy: NoisyRelease, given: Given, ground: Ground, ids: Mapping[int, str], made_at: datetime
) -> list[Answer]:
    """The answers that a measured release adds. ids: component → id of its noise, as in the ledger's entry."""
    measured = noisy.planned.measured
    deciding = measured.node.threshold
    over = ""
    if deciding is not None:
        over = given.answers[deciding].id if deciding in given.answers else ids[deciding]
    found = []
    for i in wanted(measured, given):
        terms = _terms(measured, i)
        keys = None if terms.threshold is None else ShownKeys(noisy.keys, *terms.threshold)
        address = ground.address(measured.node.components[i], over) if keys is None else ground.address_of_keys()
        found.append(
            Answer(
                ids[i],
                address,
                noisy.columns[i],
                terms.mechanism,
                terms.parameter,
                terms.losses,
                terms.conversion,
                made_at,
                keys,
            )
        )
    return found


def _stored_form(mechanism: Mechanism) -> tuple[str, Fraction]:
    match mechanism:
        case DiscreteLaplace(scale=scale):
            return "laplace", scale
        case DiscreteGaussian(sigma_squared=variance):
            return "gaussian", variance
        case _:
            raise AssertionError(f"no stored form for {mechanism.name} noise")
