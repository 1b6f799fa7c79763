"""Many releases of two neighbouring databases, by the very function and the very mechanisms that production uses.

The exact integers of a database are fetched once; `noised` then draws as many releases as are wanted at once, because
the rows of a release do not influence each other. Keys on which both databases agree are left out: their noise has the
same distribution on both sides and is independent of the rest.

Each release becomes one number, the logarithm of how much likelier it is on database a than on b under the stated
noise: no event of the released numbers tells the two apart better than one of this number (Neyman & Pearson 1933).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpsql.core.measures.all_measures import rule
from dpsql.core.measures.largest import is_later_pick
from dpsql.core.noise.backends import Backend
from dpsql.core.noise.integer_columns import Integers
from dpsql.core.noise.measurement import Measurement
from dpsql.core.noise.mechanisms import AdditiveNoise, Exponential
from dpsql.core.privacy_loss import compose
from dpsql.core.release.drawing import NoiseDraws
from dpsql.core.release.histograms import Entries
from dpsql.core.release.noisy import Exact as Column
from dpsql.core.release.noisy import GivenAnswers, Key, noised
from dpsql.core.release.planned import PlannedRelease
from dpsql.faces.audit.choices import chosen, likelier, together
from dpsql.faces.audit.curves import Moved
from dpsql.faces.audit.exact import Exact, NeighbourPair, Vector, at_key
from dpsql.faces.audit.pair_search import Target
from dpsql.faces.audit.statistics import Claim, Samples
from dpsql.planner.plan import Plan

_AT_ONCE = 1_000_000
"""Rows of a release drawn at a time."""


@dataclass(frozen=True, slots=True)
class Trials:
    """One target, one pair of databases, many runs of each: the statistic of either."""

    a: Samples
    b: Samples


def draw(plan: Plan, pair: NeighbourPair, target: Target, runs: int, backend: Backend) -> Trials:
    """The statistic of a target in `runs` releases of each database."""
    sides = []
    for own in (pair.a, pair.b):
        total = np.zeros(runs)
        for at, planned in enumerate(plan.releases):
            parts = [i for i in _parts(planned) if target is None or target == (at, i)]
            if parts:
                total += _statistic(planned, own[at], pair.a[at], pair.b[at], parts, runs, backend)
        sides.append(total)
    return Trials(*sides)


def shown(planned: PlannedRelease, vector: Vector, keys: frozenset[Key], runs: int, backend: Backend) -> int:
    """In how many of `runs` releases at least one of these keys is shown."""
    rows = [vector[key] for key in keys]
    happened = np.zeros(runs, bool)
    for start, stop in _batches(runs, len(rows)):
        tags = [(run, 0) for run in range(start, stop) for _ in rows]
        columns = _columns(rows, stop - start, planned, [])
        noisy = noised(planned, GivenAnswers(), tags, columns, _noise(planned, backend))
        happened[[int(tag[0]) for tag in noisy.keys]] = True  # type: ignore[arg-type]
    return int(happened.sum())


def _statistic(
    planned: PlannedRelease, own: Vector, a: Vector, b: Vector, parts: list[int], runs: int, backend: Backend
) -> Samples:
    moved = [key for key in a if key in b and any(a[key][i] != b[key][i] for i in parts)]
    total = np.zeros(runs)
    rows = [own[key] for key in moved]
    for start, stop in _batches(runs, len(rows)):
        tags = [(run, at) for run in range(start, stop) for at in range(len(moved))]
        columns = _columns(rows, stop - start, planned, parts)
        noisy = noised(planned, GivenAnswers(), tags, columns, _noise(planned, backend))
        run = np.array([tag[0] for tag in noisy.keys], dtype=np.int64)
        place = np.array([tag[1] for tag in noisy.keys], dtype=np.int64)
        for i in parts:
            m, drawn = planned.measured.measurements[i], noisy.columns[i]
            if isinstance(m.mechanism, Exponential):
                logs = [likelier(m.component, m.mechanism.eta, *_entries(a, b, key, i)) for key in moved]
                np.add.at(total, run, np.array([logs[at][cell] for cell, at in zip(drawn, place, strict=True)]))
                continue
            origin = [at_key(b, key, i) for key in moved]
            apart = np.array([float(at_key(a, key, i) - at_key(b, key, i)) for key in moved])
            y = np.array([float(v - origin[at]) for v, at in zip(drawn, place, strict=True)])
            np.add.at(total, run, _likelier(m, y, apart[place] if len(place) else y))
    return total


def _noise(planned: PlannedRelease, backend: Backend) -> NoiseDraws:
    return NoiseDraws(planned.measured.measurements, backend)


def _columns(rows: Sequence[Sequence[Exact]], times: int, planned: PlannedRelease, parts: list[int]) -> list[Column]:
    """What is exact of so many releases of these rows, one after the other; of other choices than `parts` nothing."""
    found: list[Column] = []
    for i, c in enumerate(planned.measured.node.components):
        column = [row[i] for row in rows]
        if not rule(c).chosen:
            found.append(Integers.of(column * times))
        else:
            held = together(c, [entries for entries in column if isinstance(entries, tuple)])
            at = np.arange(len(rows)) if i in parts else np.full(len(rows), -1)
            found.append(held.taken(np.tile(at, times)))
    return found


def _entries(a: Vector, b: Vector, key: Key, i: int) -> tuple[Entries, Entries]:
    x, y = a[key][i], b[key][i]
    assert isinstance(x, tuple) and isinstance(y, tuple)
    return x, y


def _likelier(m: Measurement, y: Samples, apart: Samples) -> Samples:
    """ln P(b + y | a) − ln P(b + y | b), where a = b + apart."""
    return m.mechanism.log_ratio(y, apart) if isinstance(m.mechanism, AdditiveNoise) else np.zeros(len(y))


def _batches(runs: int, rows: int) -> list[tuple[int, int]]:
    if not rows:
        return []
    size = max(1, _AT_ONCE // rows)
    return [(start, min(runs, start + size)) for start in range(0, runs, size)]


def _parts(planned: PlannedRelease) -> list[int]:
    """What is drawn; of several picks from one list the first: of the others it decides what they choose from."""
    found = enumerate(planned.measured.measurements)
    return [i for i, m in found if m.known is None and not is_later_pick(m.component)]


# --- what the plan claims ---------------------------------------------------------------------------------------------


def claim(plan: Plan, pair: NeighbourPair, target: Target) -> Claim:
    """What is claimed of the statistic of a target, for the unit that the pair differs in.

    The statistic looks at keys of both databases only, so the δ of private keys has no part in it. A component is shown
    where the deciding one says so: but for the probability that a key stays hidden, it alone is what is seen.
    """
    unit = pair.candidate.unit
    if target is None:
        whole = compose(x for r in plan.releases if unit in r.measured.contributions for x in r.measured.losses(unit))
        charged = plan.cost[unit]  # what the ledger is told
        if whole.rho and whole.epsilon:  # noise that is priced in ε beside choices that are priced in ρ
            return Claim(0.0, float(charged.rho), 0.0, _moved(plan, pair, target))
        epsilon = whole.epsilon if whole.rho or charged.rho else charged.epsilon
        return Claim(float(epsilon), float(whole.rho), 0.0, _moved(plan, pair, target))
    at, i = target
    m = plan.releases[at].measured.measurements[i]
    sensitivity = m.by_unit.get(unit, m.sensitivity)
    loss = m.mechanism.loss(Fraction(sensitivity.l1), sensitivity.l2_squared)
    return Claim(float(loss.epsilon), float(loss.rho), hidden(plan, pair, target), _moved(plan, pair, target))


def hidden(plan: Plan, pair: NeighbourPair, target: tuple[int, int]) -> float:
    """At most how likely it is that one of the keys compared stays hidden, whatever the component itself says."""
    at, i = target
    threshold, deciding = plan.releases[at].measured.threshold, plan.releases[at].measured.node.threshold
    if threshold is None or deciding is None or deciding == i:
        return 0.0
    found = 0.0
    for key in pair.a[at].keys() & pair.b[at].keys():
        if pair.a[at][key][i] != pair.b[at][key][i]:
            count = min(at_key(pair.a[at], key, deciding), at_key(pair.b[at], key, deciding))
            above = count - threshold.threshold + 1
            found += float(threshold.mechanism.upper_tail(above, 64)) if above >= 0 else 1.0
    return min(1.0, found)


def _moved(plan: Plan, pair: NeighbourPair, target: Target) -> tuple[Moved, ...]:
    """The noisy integers that the statistic looks at, and how far they are apart."""
    found: list[Moved] = []
    for at, planned in enumerate(plan.releases):
        a, b = pair.a[at], pair.b[at]
        for i in _parts(planned):
            m = planned.measured.measurements[i]
            if target not in (None, (at, i)):
                continue
            changed = [k for k in a if k in b and a[k][i] != b[k][i]]
            match m.mechanism:
                case AdditiveNoise() as noise:
                    found += [(noise, at_key(a, k, i) - at_key(b, k, i)) for k in changed]
                case Exponential(eta=eta):
                    found += [chosen(m.component, eta, *_entries(a, b, k, i)) for k in changed]
                case _:
                    pass
    return tuple(found)
