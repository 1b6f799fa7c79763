"""The deterministic layer: the exact integers of two neighbouring databases against the plan's sensitivities.

No noise is needed to refute a plan whose integers move further than it says; most mistakes of a rewriting are of this
kind.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from dpsql.core.ir.components import Component
from dpsql.core.ir.nodes import key_sources
from dpsql.core.measures.all_measures import rule
from dpsql.core.noise.measurement import Measurement
from dpsql.core.noise.mechanisms import Calibrated
from dpsql.core.release.histograms import Entries
from dpsql.core.release.noisy import Key
from dpsql.core.release.planned import PlannedRelease
from dpsql.faces.audit.choices import furthest
from dpsql.faces.audit.neighbouring_databases import CandidatePair, NeighbouringDatabases

Exact = int | Entries
"""Of one component and key: the integer, or, of what is chosen, the histogram."""
Vector = Mapping[Key, list[Exact]]
"""Key → what is exact of each component, for every key that may be released."""


@dataclass(frozen=True, slots=True)
class ComponentChange:
    """How far one component moved: groups that changed, Σ|Δ|, ΣΔ², max|Δ|; Δ of a quantile: of the score of a cell."""

    l0: int
    l1: int
    l2_squared: int
    linf: int


@dataclass(frozen=True, slots=True)
class NeighbourPair:
    """Two neighbouring databases and what every release of the plan reads from them."""

    candidate: CandidatePair
    databases: NeighbouringDatabases
    a: tuple[Vector, ...]
    b: tuple[Vector, ...]


@dataclass(frozen=True, slots=True)
class Violation:
    """A claim that a pair refutes without noise."""

    release: int
    component: int | None
    what: str
    seen: int
    claimed: Fraction
    pair: NeighbourPair


def change(a: Vector, b: Vector, components: Sequence[Component], i: int) -> ComponentChange:
    """The change of component number i; a key that is missing counts as 0, or as a group without rows."""
    moved = [apart(components[i], a.get(key), b.get(key), i) for key in a.keys() | b.keys()]
    moved = [d for d in moved if d]
    return ComponentChange(len(moved), sum(moved), sum(d * d for d in moved), max(moved, default=0))


def apart(c: Component, one: Sequence[Exact] | None, other: Sequence[Exact] | None, i: int) -> int:
    """How far component number i of two rows is apart."""
    if not rule(c).chosen:
        return abs(_integer(one, i) - _integer(other, i))
    x, y = (() if row is None else row[i] for row in (one, other))
    assert isinstance(x, tuple) and isinstance(y, tuple)
    return furthest(c, x, y) if x != y else 0


def at_key(vector: Vector, key: Key, i: int) -> int:
    """The integer of component number i, to which noise is added, for a key; 0 if the key is missing."""
    return _integer(vector.get(key), i)


def _integer(row: Sequence[Exact] | None, i: int) -> int:
    found = 0 if row is None else row[i]
    assert isinstance(found, int)
    return found


def violations(releases: tuple[PlannedRelease, ...], pair: NeighbourPair) -> Iterator[Violation]:
    """What a pair says against the plan's claims about its unit."""
    unit = pair.candidate.unit
    for at, (planned, a, b) in enumerate(zip(releases, pair.a, pair.b, strict=True)):
        measured = planned.measured
        if unit not in measured.contributions:
            if dict(a) != dict(b):
                yield Violation(at, None, f"rows of {unit} change it, and it states no loss", 1, Fraction(0), pair)
            continue
        for i, m in enumerate(measured.measurements):
            if m.known is not None:
                continue  # never read from the data
            claim, seen = m.by_unit.get(unit, m.sensitivity), change(a, b, measured.node.components, i)
            for name in ("l0", "l1", "l2_squared", "linf"):
                if getattr(seen, name) > getattr(claim, name):
                    yield Violation(at, i, name, getattr(seen, name), Fraction(getattr(claim, name)), pair)
        if key_sources(measured.node) is not None and a.keys() != b.keys():
            yield Violation(at, None, "public keys differ", len(a.keys() ^ b.keys()), Fraction(0), pair)
        threshold, deciding = measured.threshold, measured.node.threshold
        if threshold is None or deciding is None:
            continue
        for one, other in ((a, b), (b, a)):
            new = one.keys() - other.keys()
            most = max((at_key(one, k, deciding) for k in new), default=0)
            if len(new) > threshold.g:
                yield Violation(at, None, "new keys", len(new), Fraction(threshold.g), pair)
            if most > threshold.r:
                yield Violation(at, None, "units of a new key", most, Fraction(threshold.r), pair)


def stated(m: Measurement, moved: ComponentChange) -> float:
    """What the stated mechanism loses by such a change: its ε or its ρ."""
    if m.known is not None:
        return 0.0
    loss = m.mechanism.loss(Fraction(moved.l1), Fraction(moved.l2_squared))
    return float(loss.epsilon + loss.rho)


def share(m: Measurement, unit: str, moved: ComponentChange) -> float:
    """Which part of the claimed norm, l1 or l2 by what the price follows, a change reaches: 1 is all of it."""
    if m.known is not None:
        return 0.0
    claim = m.by_unit.get(unit, m.sensitivity)
    if isinstance(m.mechanism, Calibrated) and not m.mechanism.pure:
        return math.sqrt(moved.l2_squared / claim.l2_squared) if claim.l2_squared else 0.0
    return moved.l1 / claim.l1 if claim.l1 else 0.0


def new_keys(planned: PlannedRelease, pair: NeighbourPair, release: int) -> frozenset[Key]:
    """Keys of a release that only database a has, if its keys are private."""
    if planned.measured.threshold is None:
        return frozenset()
    return frozenset(pair.a[release].keys() - pair.b[release].keys())
