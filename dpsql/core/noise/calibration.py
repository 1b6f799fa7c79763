"""Splitting a query's ε and δ over everything it measures, and calibrating each part.

ε is per query: a query that asks for 1 pays 1, whatever the number of its columns. All noise of a query is of one
family, Laplace or Gaussian: whichever makes the total error Σ wᵢ·ln(variance of component i) smaller; but where keys
are private the one that shows them from fewer units on, if by more than a tenth: what is hidden has no error.

*Shares.* Component i of weight wᵢ gets the part wᵢ/Σw of ε (or of ρ). *Why:* its variance is proportional to 1/εᵢ² (to
1/ρᵢ), so the total error is a constant minus 2·Σ wᵢ·ln εᵢ, and Σ wᵢ·ln(εᵢ/wᵢ) ≤ Σw·ln(Σεᵢ/Σw) by Jensen's inequality,
with equality where all εᵢ/wᵢ are the same. Equal weights mean equal shares, whatever the units of the columns.
Components of which a row counts in one at most (`parallel_composition.py`) cost together what the costliest of them
costs, so each of them gets the whole share of the parallel group, which weighs as much as all of them.

Cells are chosen by the exponential mechanism beside either of them, at the price that this one is counted in.

*Family.* Under ε alone there is only Laplace noise. A δ above 0 allows Gaussian noise, whose ρ is converted once for
the whole query; where thresholds need a δ, too, each of the two purposes gets half. Under zCDP both are priced in ρ
(Laplace noise at ε²/2), and no conversion is needed.

The cost is recomputed from the finished mechanisms afterwards and never taken from here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Final

from dpsql.core.analysis.facts import Contribution, Facts
from dpsql.core.analysis.rules.release import contributions
from dpsql.core.ir.components import Component, SharedUnits
from dpsql.core.ir.nodes import Release, keyed_by
from dpsql.core.ir.walk import Tagged
from dpsql.core.measures.all_measures import rule
from dpsql.core.measures.shared_units import steps
from dpsql.core.noise.measurement import MeasuredRelease, Measurement
from dpsql.core.noise.mechanisms import (
    FAMILIES,
    AdditiveNoise,
    Calibrated,
    Exponential,
    KeyThreshold,
    Mechanism,
    NoNoise,
    choice_priced,
)
from dpsql.core.noise.parallel_composition import ParallelGroups, parallel_groups
from dpsql.core.noise.partition_selection import SMALLEST_DELTA
from dpsql.core.noise.sensitivity import NOTHING, Sensitivity, counts_nothing, known, sensitivity
from dpsql.core.numbers.normal import root
from dpsql.core.policy.units import Accountant
from dpsql.core.privacy_loss import PrivacyLoss, epsilon_to_rho, pure_to_rho
from dpsql.diagnostics.errors import Rejected, reject


@dataclass(frozen=True, slots=True)
class LossRequest:
    """What one query may lose, and how that is split.

    epsilon: ε of the whole query, > 0. delta: its δ, for thresholds and for the conversion of Gaussian noise; 0: none.
    accountant: how the losses of the parts add up. rho: under zcdp the ρ of the whole query; None stands for ε²/2,
    what a pure ε is worth there.
    weights: uid of an output column of a release → its part of the whole, > 0; a column that is not named has 1.
    family: the name of the only noise that may be chosen, where it has been chosen before; empty: any.
    aside: the part of ε or ρ that others lose as such. part: what it may lose of the rest, of an ε once it is
    converted to ρ; what is left of that is another request's, of the same δ. None: all, and nothing aside.
    """

    epsilon: Fraction
    delta: Fraction = Fraction(0)
    accountant: Accountant = "approx_dp"
    rho: Fraction | None = None
    weights: Mapping[int, Fraction] = field(default_factory=dict)
    family: str = ""
    aside: Fraction = Fraction(0)
    part: Fraction | None = None

    @property
    def budget(self) -> PrivacyLoss:
        """The most that may be charged, in the accountant's terms."""
        if self.accountant == "zcdp":
            return PrivacyLoss(delta=self.delta, rho=pure_to_rho(self.epsilon) if self.rho is None else self.rho)
        return PrivacyLoss(self.epsilon, self.delta)


LARGEST_CONVERTED = Fraction(10**6)
"""Gaussian noise is not considered above this ε, which protects nothing."""

A_TENTH: Final = math.log(10 / 9)
"""A threshold that is smaller by less is not worth the wider noise: 43 units for 45, with deviations of 8.1 for 4.2."""

_NONE, _ONE = Fraction(0), Fraction(1)


@dataclass(frozen=True, slots=True)
class PreparedRelease:
    """A release whose sensitivities are known and whose noise is not chosen yet.

    contributions: privacy unit → what one of it can change. by_unit: for each component the sensitivity to each unit.
    worst: for each component the largest of these, entry by entry. weights: how much each component matters.
    parallel_groups: which of them cost the largest of their losses together. known: for each component its integer, if
    that is public. empty: no row can be in the release.
    """

    node: Release
    contributions: Mapping[str, Contribution]
    by_unit: tuple[Mapping[str, Sensitivity], ...]
    worst: tuple[Sensitivity, ...]
    weights: tuple[Fraction, ...]
    parallel_groups: ParallelGroups
    known: tuple[int | None, ...]
    empty: bool

    def together(self, values: Sequence[Fraction], join: Callable[[list[Fraction]], Fraction]) -> list[Fraction]:
        """For each component what `join` makes of the values of its parallel group; 0 for those that need no noise."""
        found = [_NONE] * len(values)
        for parallel in self.parallel_groups:
            noisy = [i for i in parallel if self.worst[i].l1]
            for i in noisy:
                found[i] = join([values[n] for n in noisy])
        return found


@dataclass(frozen=True, slots=True)
class Split:
    """How the noise of a whole query is chosen.

    family: of all additive noise. choice: what chooses cells. shares: for each release and each component what it may
    lose: ε for what is priced purely, else ρ; not read where nothing can change. threshold_delta: δ of each set of
    private keys. conversion_delta: see MeasuredRelease.
    """

    family: type[AdditiveNoise]
    choice: type[Exponential]
    shares: tuple[tuple[Fraction, ...], ...]
    threshold_delta: Fraction = Fraction(0)
    conversion_delta: Fraction = Fraction(0)

    def mechanism(self, component: Component) -> type[Calibrated]:
        """What a component is measured with."""
        return self.choice if rule(component).chosen else self.family


def measure(releases: Sequence[Tagged[Facts]], request: LossRequest) -> tuple[MeasuredRelease, ...]:
    """Calibrate every component of every release of one query.

    releases: tagged Release nodes of the finished tree; their input facts give the sensitivities.
    Raises Rejected: DP210, DP211 (no finite contribution), DP402 (δ needed), DP410 (scale out of range).
    """
    prepared = prepare(releases, request.weights)
    found, refused = [], []
    for split in splits(prepared, request):
        if request.family not in ("", split.family.name):
            continue
        try:
            found.append(calibrated(prepared, split))
        except Rejected as refusal:
            refused.append(refusal)
    if not found:
        raise refused[0] if refused else reject("DP402", f"{request.family} noise needs a δ", help=["give a delta"])
    quiet = min(found, key=partial(_total_error, prepared))  # of equals Laplace
    if not [p for p in prepared if p.node.threshold is not None]:
        return quiet
    shown = min(found, key=_thresholds)
    return shown if _thresholds(shown) < _thresholds(quiet) - A_TENTH else quiet


def prepare(releases: Sequence[Tagged[Facts]], weights: Mapping[int, Fraction]) -> tuple[PreparedRelease, ...]:
    """The sensitivities of all components. Raises Rejected DP210, DP211."""
    found = []
    for tagged in releases:
        assert isinstance(tagged.node, Release)
        found.append(prepare_one(tagged.node, tagged.inputs[0].fact, weights))
    return tuple(found)


def prepare_one(node: Release, below: Facts, weights: Mapping[int, Fraction]) -> PreparedRelease:
    """The sensitivities of one release, given the facts of its input. Raises Rejected DP210, DP211."""
    units = contributions(node, below)
    each = tuple(_each(c, units, node, below) for c in node.components)
    worst = tuple(map(_worst, each))
    public = tuple(None if s.l1 else _known(c, units, below) for c, s in zip(node.components, worst, strict=True))
    return PreparedRelease(
        node, units, each, worst, component_weights(node, weights), parallel_groups(node, units), public, below.empty
    )


def _known(component: Component, units: Mapping[str, Contribution], below: Facts) -> int:
    return 0 if counts_nothing(component, below) else known(component, next(iter(units.values())))


def component_weights(node: Release, weights: Mapping[int, Fraction]) -> tuple[Fraction, ...]:
    """Each component's weight: the largest of the columns that are made from it, 1 for what only decides on keys.

    Of a count that others are added to, what it measures of its own.
    """
    found: list[list[Fraction]] = [[] for _ in node.components]
    for output in node.outputs:
        for i in output.recipe.own:
            found[i].append(weights.get(output.column.uid, _ONE))
    return tuple(each[0] if len(each) == 1 else max(each, default=_ONE) for each in found)


def calibrated(prepared: Sequence[PreparedRelease], split: Split) -> tuple[MeasuredRelease, ...]:
    """The releases with the noise that this split pays for. Raises Rejected DP410."""
    return tuple(_measured(p, split, shares) for p, shares in zip(prepared, split.shares, strict=True))


def splits(prepared: Sequence[PreparedRelease], request: LossRequest) -> list[Split]:
    """All ways of spending the request. Raises Rejected DP402."""
    key_sets = sum(p.node.threshold is not None for p in prepared)
    budget, part = request.budget, request.part
    if part is not None:
        left = 1 - request.aside
        budget = PrivacyLoss(left * budget.epsilon, budget.delta, left * budget.rho)
    if key_sets and budget.delta < key_sets * SMALLEST_DELTA:
        raise delta_needed(next(p.node for p in prepared if p.node.threshold is not None))
    per_key_set = budget.delta / max(1, key_sets)
    if request.accountant == "zcdp":
        rhos = proportional(prepared, budget.rho if part is None else part * budget.rho)
        in_epsilon, choice = _noise_in_epsilon(prepared, rhos), choice_priced(pure=False)
        return [Split(f, choice, in_epsilon if f.pure else rhos, per_key_set) for f in FAMILIES.values()]
    shares = proportional(prepared, budget.epsilon if part is None else part * budget.epsilon)
    found = [Split(f, choice_priced(pure=True), shares, per_key_set) for f in FAMILIES.values() if f.pure]
    if budget.delta and budget.epsilon <= LARGEST_CONVERTED and per_key_set >= 2 * SMALLEST_DELTA:
        convert = budget.delta / 2 if key_sets else budget.delta
        try:
            rho = epsilon_to_rho(budget.epsilon, convert)
            rhos = proportional(prepared, rho if part is None else part * rho)
        except ValueError:
            return found  # an ε so small that it is worth no ρ
        others = (family for family in FAMILIES.values() if not family.pure)
        found += [Split(family, choice_priced(pure=False), rhos, per_key_set / 2, convert) for family in others]
    return found


def _noise_in_epsilon(
    prepared: Sequence[PreparedRelease], rhos: Sequence[Sequence[Fraction]]
) -> tuple[tuple[Fraction, ...], ...]:
    """Shares of ρ as the ε of pure noise. Choices stay priced in ρ, which is a quarter of what their ε would cost."""
    each = zip(prepared, rhos, strict=True)
    return tuple(
        tuple(rho if rule(c).chosen else _pure(rho) for c, rho in zip(p.node.components, own, strict=True))
        for p, own in each
    )


def proportional(prepared: Sequence[PreparedRelease], total: Fraction) -> tuple[tuple[Fraction, ...], ...]:
    """`total` in proportion to the weights of the parallel groups that need noise; the other components get nothing."""
    whole = sum(w for p in prepared for w, s in zip(p.weights, p.worst, strict=True) if s.l1) or _ONE
    each = total / whole if whole != 1 else total

    def share(weight: Fraction) -> Fraction:
        if weight is _ONE:
            return each
        return total if weight == whole else total * weight / whole if weight else _NONE

    return tuple(tuple(map(share, p.together(p.weights, _sum))) for p in prepared)


def _sum(amounts: Sequence[Fraction]) -> Fraction:
    return amounts[0] if len(amounts) == 1 else sum(amounts, _NONE)


def _pure(rho: Fraction) -> Fraction:
    """The ε that costs at most ρ under zCDP: √(2ρ), rounded down."""
    found = root(2 * rho).lo
    assert found is not None
    return Fraction(found)


def _thresholds(measured: Sequence[MeasuredRelease]) -> float:
    """Σ ln(T/r) over all sets of private keys, T in what one unit adds to a key at most; 0 where there is none."""
    each = (release.threshold for release in measured)
    return sum(math.log(Fraction(kept.threshold, kept.r)) for kept in each if kept is not None)


def _total_error(prepared: Sequence[PreparedRelease], measured: Sequence[MeasuredRelease]) -> float:
    """Σ weight · ln variance over all noisy components: a number to compare different noise for one query by."""
    return sum(
        float(weight) * math.log(max(m.mechanism.variance(), 1e-300))
        for p, release in zip(prepared, measured, strict=True)
        for weight, m in zip(p.weights, release.measurements, strict=True)
        if m.sensitivity.l1
    )


def _each(
    component: Component, units: Mapping[str, Contribution], node: Release, below: Facts
) -> dict[str, Sensitivity]:
    """Privacy unit → the sensitivity to it."""
    if counts_nothing(component, below):
        return dict.fromkeys(units, NOTHING)
    return {unit: sensitivity(component, c, bool(node.keys)) for unit, c in units.items()}


def _worst(units: Mapping[str, Sensitivity]) -> Sensitivity:
    """Entry by entry the largest of all."""
    each = units.values()
    return Sensitivity(
        max(s.l0 for s in each), max(s.l1 for s in each), max(s.l2_squared for s in each), max(s.linf for s in each)
    )


def _measured(p: PreparedRelease, split: Split, shares: Sequence[Fraction]) -> MeasuredRelease:
    measurements = []
    parts = zip(p.node.components, p.by_unit, p.worst, p.known, shares, strict=True)
    for component, each, worst, number, share in parts:
        mechanism = NoNoise() if number is not None else _mechanism(p.node, split.mechanism(component), worst, share)
        measurements.append(Measurement(component, worst, mechanism, each, number))
    threshold = None
    if p.node.threshold is not None:
        deciding = measurements[p.node.threshold]
        assert deciding.noise.scale
        # One new key can hold at most r of the unit's rows (or each id once), and at most g keys can be new; where
        # units are replaced, as many others are gone.
        r, changed = deciding.sensitivity.linf, deciding.sensitivity.l0
        replaced = any(c.replaces_rows or c.ids > 1 for c in p.contributions.values())
        new = -(-changed // 2) if replaced else changed
        shared = isinstance(deciding.component, SharedUnits)
        most = max(c.most_groups for c in p.contributions.values()) if shared else 0
        threshold = KeyThreshold.calibrate(
            deciding.noise, r, new, split.threshold_delta, p.node.min_units * deciding.component.weight,
            steps(deciding.component.weight, most) if shared else (),
        )  # fmt: skip
    return MeasuredRelease(p.node, p.contributions, tuple(measurements), threshold, split.conversion_delta, p.empty)


def _mechanism(node: Release, family: type[Calibrated], worst: Sensitivity, share: Fraction) -> Mechanism:
    try:
        return family.calibrate(family.size(worst.l1, worst.l2_squared), share)
    except ValueError:
        raise reject(
            "DP410", "the noise would be too large to be of use", span=node.span,
            label=f"sensitivity {worst.l1:,} units at {'ε' if family.pure else 'ρ'} = {float(share):g}",
            help=["use a larger epsilon, narrower bounds or smaller contribution limits"],
        ) from None  # fmt: skip


def delta_needed(node: Release) -> Exception:
    """Refusal of private keys without δ."""
    names = ", ".join(k.name for k in node.keys)
    if keyed_by(node).within:
        return reject(
            "DP402", f"{names} have more groups than may be released, and showing those of enough units needs a δ",
            span=node.keys[0].span or node.span, label="the policy says  private_keys: auto",
            help=["give a delta, e.g. delta=1e-9", "or group by something coarser"],
        )  # fmt: skip
    first = node.keys[0].name
    # Of several keys some may have a list: which ones, the plan does not keep.
    lists = f"{first}; or filter with {first} IN (…)" if len(node.keys) == 1 else f"those of {names} that have none"
    return reject(
        "DP402", f"the groups of {names} are private, and showing private keys needs a δ",
        span=node.keys[0].span if node.keys else node.span,
        label="no public list of these values is known" if len(node.keys) == 1
        else f"no public list of the combinations of {names} is known",
        help=[
            "give a delta, e.g. delta=1e-9: keys with too few units stay hidden",
            f"or, custodian: declare  domain: […]  for {lists}",
        ],
    )  # fmt: skip
