"""The search for the worst neighbouring databases: from a few starting points, one choice at a time.

Every pair that is looked at is held against the plan's claims on the way. Nothing here is random: the same query is
audited on the same databases every time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from dpsql.core.policy.tables import Table
from dpsql.core.policy.units import RowUnit
from dpsql.core.release.noisy import NoisyRelease, exact_totals
from dpsql.core.release.planned import PlannedRelease
from dpsql.faces.audit.choices import best
from dpsql.faces.audit.exact import (
    ComponentChange,
    Exact,
    NeighbourPair,
    Vector,
    Violation,
    at_key,
    change,
    new_keys,
    share,
    stated,
    violations,
)
from dpsql.faces.audit.neighbouring_databases import (
    CandidatePair,
    ColumnChoice,
    DatabaseMaker,
    Mode,
    Profile,
    Tables,
    one_row_per_id,
)
from dpsql.faces.audit.plan_reading import Place
from dpsql.planner.plan import Plan
from dpsql.planner.postprocessing.noisy_rows import as_query

SALT = 271_828
"""Fixes the truncation order. The ledger's own is not read."""
MOST_PAIRS = 400
"""Pairs of databases per privacy unit that are looked at."""
_MOST_ROWS = 200
_MOST_SIZES = 12
_MOST_VALUES = 16
_STARTS = 6
_ROUNDS = 2

Target = tuple[int, int] | None
"""(release, component); None for all of them together."""
Coordinate = tuple[str, Place | None]
"""One choice of a candidate: a part of it, and a column there, or None for its numbers of rows."""


@dataclass(slots=True)
class PairSearch:
    """The worst pairs found for one privacy unit.

    best: target → (score, pair). found: claims that a pair refutes, each with the pair that does so most.
    shown: release → the pair with the most likely keys of one side alone. looked: pairs so far.
    """

    plan: Plan
    maker: DatabaseMaker
    unit: str
    most: int = MOST_PAIRS
    best: dict[Target, tuple[float, NeighbourPair]] = field(default_factory=dict)
    shown: dict[int, tuple[float, NeighbourPair]] = field(default_factory=dict)
    found: dict[tuple[int, int | None, str], Violation] = field(default_factory=dict)
    looked: int = 0
    _vectors: dict[tuple[object, ...], tuple[Vector, ...]] = field(default_factory=dict)
    _earlier: dict[str, str] = field(default_factory=dict)

    def run(self) -> None:
        """Search for all targets."""
        first: CandidatePair | None = None
        for start in self.starts():
            first = first or start
            self.look(start)
        targets: list[Target] = [None, *self.targets()]
        for target in targets:
            # All that is stated is looked for once more even if it was reached: a wrong plan moves further.
            if first is not None and (target is None or not self._reached(target)):
                self._climb(target, first, self.looked + max(60, self.most // len(targets)))
        if any(r.measured.threshold is not None for r in self.plan.releases):
            for _, pair in [*self.best.values(), *self.shown.values()]:
                self.look(replace(pair.candidate, others=0))  # so that no other unit has its keys

    def targets(self) -> list[tuple[int, int]]:
        """Components that noise is drawn for and that this unit can change."""
        return [
            (at, i)
            for at, planned in enumerate(self.plan.releases)
            if self.unit in planned.measured.contributions
            for i, m in enumerate(planned.measured.measurements)
            if m.known is None
        ]

    def look(self, candidate: CandidatePair) -> NeighbourPair | None:
        """Measure a candidate and remember it where it is the worst; None if it is no pair of neighbours."""
        made = self.maker.make(candidate)
        if not made.mine and not made.instead:
            return None
        if candidate.instead is not None and self._by_rows() and _heights(made.mine) != _heights(made.instead):
            return None  # a row is replaced by a row
        self.looked += 1
        pair = NeighbourPair(candidate, made, self.vectors(made.a), self.vectors(made.b))
        for v in violations(self.plan.releases, pair):
            worst = self.found.get((v.release, v.component, v.what))
            if worst is None or v.seen > worst.seen:
                self.found[v.release, v.component, v.what] = v
        for target in (None, *self.targets()):
            score = self.score(target, pair)
            if score > self.best.get(target, (0.0, pair))[0]:
                self.best[target] = (score, pair)
        for at, planned in enumerate(self.plan.releases):
            likely = _likely(planned, pair, at)
            if likely > self.shown.get(at, (0.0, pair))[0]:
                self.shown[at] = (likely, pair)
        return pair

    def score(self, target: Target, pair: NeighbourPair) -> float:
        """What the stated noise loses between the two databases; for one component, the part of what is claimed."""
        if target is None:
            return sum(
                stated(self.plan.releases[at].measured.measurements[i], self._moved(pair, at, i))
                for at, i in self.targets()
            )
        at, i = target
        return share(self.plan.releases[at].measured.measurements[i], self.unit, self._moved(pair, at, i))

    def vectors(self, tables: Tables) -> tuple[Vector, ...]:
        """The exact integers of all releases. What one reads of an earlier one is the same for every database."""
        known = tuple(sorted(tables.items()))
        if known not in self._vectors:
            self.maker.world.show(tables)
            found: list[Vector] = []
            for planned in self.plan.releases:
                found.append(exact_totals(planned, self.maker.world, SALT, self._earlier))
                if planned.label not in self._earlier and self._is_read(planned):
                    rows_ = tuple(_as_released(planned, row) for row in found[-1].values())
                    self._earlier[planned.label] = as_query(
                        NoisyRelease.of_rows(planned, tuple(found[-1]), rows_), self.maker.world.dialect
                    )
            self._vectors[known] = tuple(found)
        return self._vectors[known]

    def _moved(self, pair: NeighbourPair, at: int, i: int) -> ComponentChange:
        return change(pair.a[at], pair.b[at], self.plan.releases[at].measured.node.components, i)

    def _is_read(self, planned: PlannedRelease) -> bool:
        return any(s.reads(planned.label) for r in self.plan.releases for s in r.statements)

    def _reached(self, target: Target) -> bool:
        """Whether all that is claimed has been reached."""
        return target in self.best and self.best[target][0] >= 1

    def _by_rows(self) -> bool:
        return any(isinstance(t.protection, RowUnit) for t in self.maker.of_unit(self.unit))

    # --- choices ---------------------------------------------------------------------------------------------------

    def starts(self) -> Iterator[CandidatePair]:
        """All sizes with the first values, then other values at the size that seems worst."""
        tables = self.maker.of_unit(self.unit)
        everywhere = [t.name for t in self.maker.tables]
        replaced = self.maker.policy.units[self.unit].neighbours == "replace_one"
        for at in range(_STARTS):
            choices = {place: self._default(place, at) for place in self.maker.pools}
            beside = Profile(dict.fromkeys(everywhere, (1, 1)), choices)
            for sizes in islice(self._sizes_of(tables), None if at == 0 else _MOST_SIZES):
                opposite = {p: replace(c, at=c.at + 1) if c.mode == "same" else c for p, c in choices.items()}
                instead = Profile(sizes, opposite) if replaced else None
                yield CandidatePair(self.unit, Profile(sizes, choices), beside, 1, instead)

    def _default(self, place: Place, at: int) -> ColumnChoice:
        mode: Mode = "same"
        if place in self.maker.reads.keys:
            return ColumnChoice(0, "group")
        if place in self.maker.reads.varied:
            mode = "row"
        return ColumnChoice(at, mode)

    def _sizes_of(self, tables: list[Table]) -> Iterator[dict[str, tuple[int, int]]]:
        """Ways of giving a unit rows."""
        if self._by_rows():
            for table in tables:
                yield from ({table.name: size} for size in self._sizes(table))
            return
        many = [t for t in tables if not one_row_per_id(t)]
        rest = {t.name: (1, 1) for t in tables if one_row_per_id(t)}
        if not many:
            yield rest
            return
        for size in zip(*(self._sizes(t) for t in reversed(many)), strict=False):
            for table, own in zip(reversed(many), size, strict=True):  # those that refer to others first
                yield rest | {t.name: own if t is table else (1, 1) for t in many}
            if len(many) > 1:
                yield rest | {t.name: (own[0], 1) for t, own in zip(reversed(many), size, strict=True)}

    def _sizes(self, table: Table) -> list[tuple[int, int]]:
        """Groups × rows per group that may matter."""
        if isinstance(table.protection, RowUnit):
            k = table.protection.rows
            return [(1, k), (k, 1)] if k > 1 else [(1, 1)]
        if one_row_per_id(table):
            return [(1, 1)]
        numbers = [n for n in self.maker.reads.numbers if n <= _MOST_ROWS] or [4]
        each = sorted({1, *numbers, *(n + 1 for n in numbers)}, reverse=True)
        found = [(g, r) for g in (*numbers, 1) for r in (*numbers, 1) if g * r <= _MOST_ROWS]
        found += [(n, 1) for n in each] + [(1, n) for n in each]
        return list(dict.fromkeys(found))[:_MOST_SIZES]

    def _climb(self, target: Target, first: CandidatePair, until: int) -> None:
        """Take the best of each choice in turn, until nothing is better or enough was looked at."""
        now = (
            self.best[target][1].candidate
            if target in self.best
            else self.best[None][1].candidate
            if self.best
            else first
        )
        score = self.best[target][0] if target in self.best else 0.0
        for _ in range(_ROUNDS):
            before = score
            for coordinate in self.coordinates(now):
                for other in self.alternatives(now, coordinate):
                    if self.looked >= until:
                        return
                    pair = self.look(other)
                    found = 0.0 if pair is None else self.score(target, pair)
                    if found > score * (1 + 1e-9):
                        now, score = other, found
            if score <= before:
                return

    def coordinates(self, candidate: CandidatePair) -> list[Coordinate]:
        """The choices of a candidate that the query can see: its parts, with the columns that are read there."""
        reads = self.maker.reads
        relevant = [p for p in self.maker.pools if p in reads.used | reads.keys | reads.varied]
        own = [p for p in relevant if self.maker.policy.tables[p[0]].unit == self.unit]
        found: list[Coordinate] = [("mine", p) for p in own] + [("mine", None)]
        if candidate.instead is not None:
            found += [("instead", p) for p in own] + ([] if self._by_rows() else [("instead", None)])
        return [*found, ("others", None), ("beside", None), *(("beside", p) for p in relevant)]

    def alternatives(self, now: CandidatePair, coordinate: Coordinate) -> Iterator[CandidatePair]:
        """The candidate with one choice made otherwise."""
        match coordinate:
            case "mine", None:
                yield from (replace(now, mine=p) for p in self._sized(now.mine))
            case "mine", place if place is not None:
                yield from (replace(now, mine=p) for p in self._chosen(now.mine, place))
            case "instead", None if now.instead is not None:
                yield from (replace(now, instead=p) for p in self._sized(now.instead))
            case "instead", place if place is not None and now.instead is not None:
                yield from (replace(now, instead=p) for p in self._chosen(now.instead, place))
            case "others", _:
                yield from (replace(now, others=n) for n in (0, 2))
            case "beside", None:
                yield replace(now, beside=replace(now.beside, choices=now.mine.choices))
                yield from (replace(now, beside=p) for p in self._beside_sizes(now.beside))
            case "beside", place if place is not None:
                yield from (replace(now, beside=p) for p in self._chosen(now.beside, place))
            case _:
                return

    def _chosen(self, profile: Profile, place: Place) -> Iterator[Profile]:
        """The profile with another value in one column."""
        now = profile.choices[place]
        for at in range(min(_MOST_VALUES, len(self.maker.pools[place]))):
            if at != now.at:
                yield replace(profile, choices={**profile.choices, place: ColumnChoice(at, now.mode)})
        modes: tuple[Mode, ...] = ("same", "group", "row")
        for mode in modes:
            if mode != now.mode:
                yield replace(profile, choices={**profile.choices, place: ColumnChoice(now.at, mode)})

    def _sized(self, profile: Profile) -> Iterator[Profile]:
        """The profile with more or fewer rows in one table, or none."""
        for table in self.maker.of_unit(self.unit):
            if table.name in profile.sizes:
                for size in [*self._sizes(table), *([] if self._by_rows() else [(0, 0)])]:
                    yield replace(profile, sizes={**profile.sizes, table.name: size})

    def _beside_sizes(self, profile: Profile) -> Iterator[Profile]:
        for table in self.maker.tables:
            numbers = {n for f in table.max_frequency for n in (f.rows - 1, f.rows, f.rows + 1, 2 * f.rows + 1)}
            for rows in sorted({0, 1, 2, *(n for n in numbers if n <= _MOST_ROWS)}):
                yield replace(profile, sizes={**profile.sizes, table.name: (1, rows)})


def _heights(tables: Tables) -> dict[str, int]:
    return {name: len(rows) for name, rows in tables.items()}


def _as_released(planned: PlannedRelease, row: Sequence[Exact]) -> tuple[int, ...]:
    """The integers, and of a quantile the first cell of the least score."""
    parts = zip(planned.measured.node.components, row, strict=True)
    return tuple(e if isinstance(e, int) else best(c, e) for c, e in parts)


def _likely(planned: PlannedRelease, pair: NeighbourPair, at: int) -> float:
    """How likely keys of one side alone are to be shown; 1 for one key that holds as much as a unit may add to it."""
    threshold, deciding = planned.measured.threshold, planned.measured.node.threshold
    if threshold is None or deciding is None:
        return 0.0
    counts = [at_key(pair.a[at], key, deciding) for key in new_keys(planned, pair, at)]
    return sum(math.exp(min(50.0, float((count - threshold.r) / threshold.mechanism.scale))) for count in counts)
