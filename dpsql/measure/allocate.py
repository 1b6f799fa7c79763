"""Splitting a query's ε and δ over everything it measures, and calibrating each part.

ε is per query: a query that asks for 1 pays 1, whatever the number of its columns. The shares are equal for now; the
cost is recomputed from the finished mechanisms afterwards and never taken from here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from dpsql.analysis.facts import Contribution, Facts
from dpsql.analysis.rules.release import contributions
from dpsql.analysis.values import evaluate
from dpsql.diagnostics.errors import reject
from dpsql.loss import PrivacyLoss
from dpsql.measure.mechanisms import DiscreteLaplace, Exact, KeyThreshold
from dpsql.measure.mechanisms.threshold import SMALLEST_DELTA
from dpsql.measure.scale import LARGEST_SCALE
from dpsql.measure.sensitivity import Sensitivity, known, sensitivity
from dpsql.plan.components import Component
from dpsql.plan.nodes import Release
from dpsql.plan.walk import Tagged


@dataclass(frozen=True, slots=True)
class Measurement:
    """One component with its sensitivity, in integer units, and the mechanism that will draw its noise.

    sensitivity: to the unit that changes most, entry by entry; by_unit: to each, where there are several.
    known: the component's integer where no neighbour changes it: it is public, and is never read from the data.
    """

    component: Component
    sensitivity: Sensitivity
    mechanism: DiscreteLaplace | Exact
    by_unit: Mapping[str, Sensitivity] = field(default_factory=dict)
    known: int | None = None

    @property
    def loss(self) -> PrivacyLoss:
        """What this measurement costs, stated by its mechanism."""
        return self.mechanism.loss(Fraction(self.sensitivity.l1), self.sensitivity.l2_squared)

    @property
    def unit(self) -> Fraction:
        """What one integer unit is worth in the released number: grid / F."""
        return self.component.grid / self.component.weight


@dataclass(frozen=True, slots=True)
class MeasuredRelease:
    """A release with everything its noise needs.

    contributions: privacy unit → what one of it can change; the noise is calibrated to the largest. threshold: for
    private keys.
    """

    node: Release
    contributions: Mapping[str, Contribution]
    measurements: tuple[Measurement, ...]
    threshold: KeyThreshold | None

    @property
    def unit(self) -> str:
        """The privacy unit that changes most, which the noise follows."""
        return max(sorted(self.contributions), key=lambda unit: self.contributions[unit].rows)

    @property
    def contribution(self) -> Contribution:
        """What that unit can change."""
        return self.contributions[self.unit]

    @property
    def known(self) -> bool:
        """True if no number is read from the data."""
        return all(m.known is not None for m in self.measurements)

    def losses(self, unit: str) -> tuple[PrivacyLoss, ...]:
        """What one privacy unit loses by all parts, the threshold's δ included."""
        # The noise was made for the unit that changes most: others lose less.
        own = [(m, m.by_unit.get(unit, m.sensitivity)) for m in self.measurements]
        parts = [m.mechanism.loss(Fraction(s.l1), s.l2_squared) for m, s in own]
        if self.threshold is not None:
            parts.append(PrivacyLoss(delta=self.threshold.delta))
        return tuple(parts)


def measure(releases: list[Tagged[Facts]], epsilon: Fraction, delta: Fraction) -> tuple[MeasuredRelease, ...]:
    """Calibrate every component of every release of one query.

    releases: tagged Release nodes of the finished tree; their input facts give the sensitivities.
    epsilon: ε of the whole query, > 0. delta: δ of the whole query, for thresholds; 0 if there are none.
    Raises Rejected: DP210, DP211 (no finite contribution), DP402 (δ needed), DP410 (scale out of range).
    """
    found = []
    for tagged in releases:
        node = tagged.node
        assert isinstance(node, Release)
        below = tagged.inputs[0].fact
        units = contributions(node, below)
        found.append((node, units, [_each(c, units, node, below) for c in node.components]))
    noisy = sum(_worst(each).l1 > 0 for _, _, parts in found for each in parts)
    share = epsilon / noisy if noisy else epsilon
    key_sets = sum(node.threshold is not None for node, *_ in found)
    if key_sets and delta < key_sets * SMALLEST_DELTA:
        node = next(n for n, *_ in found if n.threshold is not None)
        raise delta_needed(node)
    return tuple(
        _measured(node, units, parts, share, delta / key_sets if key_sets else delta) for node, units, parts in found
    )


def _each(
    component: Component, units: Mapping[str, Contribution], node: Release, below: Facts
) -> dict[str, Sensitivity]:
    """Privacy unit → the sensitivity to it."""
    total = component.filter is None
    if component.arg is not None:
        value = evaluate(component.arg, below.env)
        total = total and not value.nullable and value.finite
    return {unit: sensitivity(component, c, bool(node.keys), total) for unit, c in units.items()}


def _worst(units: Mapping[str, Sensitivity]) -> Sensitivity:
    """Entry by entry the largest of all."""
    each = units.values()
    return Sensitivity(
        max(s.l0 for s in each), max(s.l1 for s in each), max(s.l2_squared for s in each), max(s.linf for s in each)
    )


def _measured(
    node: Release,
    units: Mapping[str, Contribution],
    parts: list[dict[str, Sensitivity]],
    share: Fraction,
    delta: Fraction,
) -> MeasuredRelease:
    measurements = []
    for component, each in zip(node.components, parts, strict=True):
        found = _worst(each)
        mechanism: DiscreteLaplace | Exact = Exact()
        number = None
        if found.l1 == 0:
            number = known(component, next(iter(units.values())))
        else:
            if Fraction(found.l1) / share > LARGEST_SCALE:
                raise reject(
                    "DP410", "the noise would be too large to be of use", span=node.span,
                    label=f"sensitivity {found.l1:,} units at ε = {float(share):g}",
                    help=["use a larger epsilon, narrower bounds or smaller contribution limits"],
                )  # fmt: skip
            mechanism = DiscreteLaplace.calibrate(Fraction(found.l1), share)
        measurements.append(Measurement(component, found, mechanism, each, number))
    threshold = None
    if node.threshold is not None:
        deciding = measurements[node.threshold]
        assert isinstance(deciding.mechanism, DiscreteLaplace)
        # One new key can hold at most r of the unit's rows (or each id once), and at most g keys can be new; where
        # units are replaced, as many others are gone.
        r, changed = deciding.sensitivity.linf, deciding.sensitivity.l0
        replaced = any(c.slots or c.ids > 1 for c in units.values())
        new = -(-changed // 2) if replaced else changed
        threshold = KeyThreshold.calibrate(
            deciding.mechanism, r, new, delta, node.min_units * deciding.component.weight
        )
    return MeasuredRelease(node, units, tuple(measurements), threshold)


def delta_needed(node: Release) -> Exception:
    """Refusal of private keys without δ."""
    names = ", ".join(k.name for k in node.keys)
    return reject(
        "DP402", f"the groups of {names} are private, and showing private keys needs a δ",
        span=node.keys[0].span if node.keys else node.span,
        label="no public list of these values is known",
        help=[
            "give a delta above 1e-70, e.g. delta=1e-9: keys with too few units stay hidden",
            f"or, custodian: declare  domain: […]  for {node.keys[0].name}; or filter with {node.keys[0].name} IN (…)",
        ],
    )  # fmt: skip
