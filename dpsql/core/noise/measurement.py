"""What is measured, with the noise that it will get: the objects that prices, charges and noise are made from."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from dpsql.core.analysis.facts import Contribution, most_changed
from dpsql.core.analysis.period_parts import PeriodParts, period_parts
from dpsql.core.ir.components import Component
from dpsql.core.ir.nodes import Node, Release, Scan, inputs
from dpsql.core.ir.periods import Span, canonical
from dpsql.core.noise.mechanisms import Additive, KeyThreshold, Mechanism
from dpsql.core.noise.parallel_composition import ParallelGroups, parallel_groups
from dpsql.core.noise.sensitivity import Sensitivity
from dpsql.core.policy.growing import Every
from dpsql.core.privacy_loss import PrivacyLoss, largest


@dataclass(frozen=True, slots=True)
class Measurement:
    """One component with its sensitivity, in integer units, and the mechanism that will draw its noise.

    sensitivity: to the unit that changes most, entry by entry; by_unit: to each, where there are several.
    known: the component's integer where no neighbour changes it: it is public, and is never read from the data.
    """

    component: Component
    sensitivity: Sensitivity
    mechanism: Mechanism
    by_unit: Mapping[str, Sensitivity] = field(default_factory=dict)
    known: int | None = None

    @property
    def loss(self) -> PrivacyLoss:
        """What this measurement costs, stated by its mechanism."""
        return self.mechanism.loss(Fraction(self.sensitivity.l1), self.sensitivity.l2_squared)

    @property
    def noise(self) -> Additive:
        """The mechanism, of a component that noise is added to. Raises AssertionError for one that is chosen."""
        assert isinstance(self.mechanism, Additive)
        return self.mechanism

    @property
    def unit(self) -> Fraction:
        """What one integer unit is worth in the released number."""
        return self.component.worth / self.component.weight


@dataclass(frozen=True, slots=True)
class MeasuredRelease:
    """A release with everything its noise needs.

    contributions: privacy unit → what one of it can change; the noise is calibrated to the largest. threshold: for
    private keys. conversion_delta: δ at which the ρ of the whole query is converted to ε, the same in all its releases;
    0 where nothing is converted. empty: no row can be in it, whatever the data hold. reserved_delta: the least that is
    charged for the threshold, where another one may take its place. growing: privacy units with an account for each
    period → the tables of their rows. in_periods: those that are one id in one period → the id and how long a period
    is, for words. ids: the tables of such units → the column that is their id.
    """

    node: Release
    contributions: Mapping[str, Contribution]
    measurements: tuple[Measurement, ...]
    threshold: KeyThreshold | None
    conversion_delta: Fraction = Fraction(0)
    empty: bool = False
    reserved_delta: Fraction = Fraction(0)
    growing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    in_periods: Mapping[str, tuple[str, Every]] = field(default_factory=dict)
    ids: Mapping[str, str] = field(default_factory=dict)

    @property
    def unit(self) -> str:
        """The privacy unit that changes most, which the noise follows."""
        return most_changed(self.contributions)

    @property
    def contribution(self) -> Contribution:
        """What that unit can change."""
        return self.contributions[self.unit]

    @property
    def known(self) -> bool:
        """True if no number is read from the data."""
        return all(m.known is not None for m in self.measurements)

    @property
    def shown_from(self) -> int:
        """The number of units from which on a private key is shown; of units that are in no other group."""
        assert self.threshold is not None and self.node.threshold is not None
        return -(-self.threshold.threshold // self.node.components[self.node.threshold].weight)

    @property
    def parallel_groups(self) -> ParallelGroups:
        """Which components cost the largest of their losses together; found anew from the node at every look."""
        return parallel_groups(self.node, self.contributions)

    def days(self, unit: str) -> tuple[Span, ...] | None:
        """The days on which a unit's rows are read; None: any row may be. Found anew from the node at every look.

        *Claim.* A row of another day moves no integer of this release. *Why.* Its integers are computed of the rows of
        its scans, which have no others (core/ir/periods.py), and of noisy rows of releases below, which are released
        by themselves. *When it would be false.* If a scan of the unit's rows were not below the release, or of another
        table than these. *Tested by* tests/deep/planner/test_regions_of_queries.py.
        """
        tables = self.growing.get(unit)
        return None if tables is None else days_read(self.node, tables)

    @property
    def parts(self) -> PeriodParts | None:
        """Its groups by the days that they read, each part with an id and a price of its own; None: it is one. Only
        where all that reads private rows has accounts by period; found anew from the node at every look.
        """
        (unit,) = self.contributions if len(self.contributions) == 1 else ("",)
        found = period_parts(self.node, self.ids) if unit in self.growing else None
        return found if found is not None and found.scan.table in self.growing[unit] else None

    def losses(self, unit: str, places: Collection[int] | None = None) -> tuple[PrivacyLoss, ...]:
        """What one privacy unit loses by all parts, the threshold's δ included.

        places: the components that count; None: all.
        """
        counted = range(len(self.measurements)) if places is None else places
        own = ([self._loss(i, unit) for i in parallel if i in counted] for parallel in self.parallel_groups)
        parts = [largest(losses) for losses in own if losses]
        if self.threshold is not None and self.node.threshold in counted:
            parts.append(PrivacyLoss(delta=max(self.threshold.delta, self.reserved_delta)))
        return tuple(parts)

    def loss_of(self, place: int, unit: str) -> PrivacyLoss:
        """What one privacy unit loses by one component alone, the threshold that it decides included."""
        own = self._loss(place, unit)
        if self.threshold is not None and self.node.threshold == place:
            own += PrivacyLoss(delta=self.threshold.delta)
        return own

    def _loss(self, place: int, unit: str) -> PrivacyLoss:
        m = self.measurements[place]
        # The noise was made for the unit that changes most: others lose less.
        own = m.by_unit.get(unit, m.sensitivity)
        return m.mechanism.loss(Fraction(own.l1), own.l2_squared)


def conversion_delta_of(releases: Iterable[MeasuredRelease]) -> Fraction:
    """δ at which the ρ of a whole query is converted to ε: what its releases state; 0 where nothing is converted."""
    return max((release.conversion_delta for release in releases), default=Fraction(0))


def days_read(release: Release, tables: Collection[str]) -> tuple[Span, ...] | None:
    """The days of growing tables that the scans below a release read, up to the releases below it; None: it has none.

    Raises AssertionError for a scan that does not say it.
    """
    found: list[Span] = []
    waiting: list[Node] = [release.input]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Release):
            continue
        if isinstance(node, Scan) and node.table in tables:
            if node.periods is None:
                raise AssertionError(f"a scan of {node.table} that does not say what it reads")
            found += node.periods.days
        waiting += inputs(node)
    return canonical(found) or None
