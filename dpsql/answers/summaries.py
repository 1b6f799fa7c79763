"""Summaries as the ledger's entries define them, and what they say of a later query.

A summary is a name for stored answers: marginals that were drawn, charged and stored as any query's. An entry of the
ledger says which (`Entry.defines`); what it says counts for one policy and `data_version`. To answer a query from it is
arithmetic over answers that the account has; one that has not got them all is charged all that it misses, as for any
stored answer (`core/release/charge.py`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from dpsql.core.ledger.ledger import Entry, Ledger
from dpsql.core.ledger.paid import unchanged
from dpsql.core.ledger.released import Answer
from dpsql.core.noise.mechanisms import DiscreteLaplace, made_by
from dpsql.core.release.noisy import Estimate, Given, NoisyRelease, Sums, assembled
from dpsql.core.release.planned import PlannedRelease
from dpsql.frontend.text.summary_statements import CreateSummary, DropSummary, summary_statement
from dpsql.planner.batch.estimate import Measured, Noise
from dpsql.planner.batch.workload import Marginal
from dpsql.planner.plan import Plan
from dpsql.planner.summaries.design import SummaryDesign
from dpsql.planner.summaries.fit import Unfit, fit

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MOST_KEPT = 200
_NOTHING = 1e-9
"""What a cell counts for beyond rounding."""


@dataclass(frozen=True, slots=True)
class Definition:
    """What an entry of a ledger defines. analyst: whose account made it. answers: ids of what it is made of."""

    statement: CreateSummary
    analyst: str
    policy_hash: str
    answers: tuple[str, ...]

    @property
    def name(self) -> str:
        """As it is called."""
        return self.statement.name

    def same(self, other: CreateSummary) -> bool:
        """Whether a statement means this very summary: then it may be made again."""
        own = self.statement
        return [t.casefold() for t in (*own.table, *own.columns, str(own.k))] == [
            t.casefold() for t in (*other.table, *other.columns, str(other.k))
        ] and own.amounts == other.amounts


def definitions(ledger: Ledger) -> dict[str, Definition]:
    """Name in small letters → what it stands for. Of one policy the first definition holds until it is dropped; the
    same statement again, or one under another policy, takes its place."""
    told = getattr(ledger, "definitions", None)  # a ledger of the caller's own may keep none
    return {} if told is None else defined(told())


def defined(entries: Sequence[Entry]) -> dict[str, Definition]:
    """As `definitions`."""
    found: dict[str, Definition] = {}
    for entry in entries:
        statement = summary_statement(entry.statement)
        match statement:
            case DropSummary(name=name):
                found.pop(name.casefold(), None)
            case CreateSummary(name=name):
                known = found.get(name.casefold())
                if known is None or known.policy_hash != entry.policy_hash or known.same(statement):
                    found[name.casefold()] = Definition(statement, entry.analyst, entry.policy_hash, entry.answers)
    return found


@dataclass(frozen=True, slots=True)
class Stored:
    """A marginal of a summary. release: as it is planned. address: of its numbers. grain: what their unit is worth, in
    rows."""

    release: PlannedRelease
    address: str

    @property
    def grain(self) -> float:
        """What an integer is worth, in rows."""
        (m,) = self.release.measured.measurements
        return float(m.unit)


@dataclass(frozen=True, slots=True)
class Part:
    """What a summary says of one release. widths: of each output the largest ± of its numbers, at the plan's
    confidence."""

    sums: Mapping[int, Sums]
    widths: tuple[float, ...]


@dataclass(eq=False)
class Summary:
    """A summary of this policy whose answers are all stored.

    marginals, answers: in one order. made_at: of the newest of them.
    """

    definition: Definition
    design: SummaryDesign
    marginals: Mapping[Marginal, Stored]
    answers: tuple[Answer, ...]
    _kept: dict[tuple[str, int], Part | str] = field(default_factory=dict, repr=False)
    _sources: tuple[NoisyRelease, ...] = ()

    @property
    def name(self) -> str:
        """As it is called."""
        return self.definition.name

    @property
    def made_at(self) -> datetime:
        """When the last of it was measured."""
        return max(answer.made_at for answer in self.answers)

    @property
    def measured(self) -> Measured:
        """The noise of each marginal, from what its stored answer says of it."""
        noise = {}
        for (marginal, stored), answer in zip(self.marginals.items(), self.answers, strict=True):
            mechanism = made_by(answer.mechanism, answer.parameter)
            scale = float(mechanism.scale) * stored.grain if isinstance(mechanism, DiscreteLaplace) else None
            noise[marginal] = Noise(mechanism.variance() * stored.grain**2, scale, stored.grain)
        return Measured(noise, self.design.sizes)

    @property
    def sources(self) -> tuple[NoisyRelease, ...]:
        """The stored numbers, as releases: always the same objects."""
        if not self._sources:
            self._sources = tuple(
                assembled(stored.release, Given({0: answer}))
                for stored, answer in zip(self.marginals.values(), self.answers, strict=True)
            )
        return self._sources

    def estimate(self, part: Part) -> Estimate:
        """What a release is computed of."""
        return Estimate(self.answers, self.sources, part.sums)

    def part(self, plan: Plan, place: int) -> Part | str:
        """What it says of a release of a plan, or why it says nothing. Reads no number."""
        key = f"{plan.hash} {plan.confidence}", place
        if key not in self._kept:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            try:
                self._kept[key] = self._part(plan, place)
            except Unfit as why:
                self._kept[key] = str(why)
        return self._kept[key]

    def _part(self, plan: Plan, place: int) -> Part:
        measured = plan.releases[place].measured
        first = next(iter(self.marginals.values())).release.measured.node
        k = max(len(m) for m in self.marginals)
        found = fit(measured, self.design, first, k)
        own, level = self.measured, float(plan.confidence)
        rows = {i: [own.coefficients(number) for number in numbers] for i, numbers in found.numbers.items()}
        units = {i: float(m.unit) for i, m in enumerate(measured.measurements)}
        sums = {i: _sums(r, [s.grain / units[i] for s in self.marginals.values()]) for i, r in rows.items()}
        known: dict[bytes, float] = {}
        widths = []
        for output in measured.node.outputs:
            terms = output.recipe.terms(measured.node.components) or ()
            own_rows = [(rows[i], float(worth) / units[i]) for i, worth in terms if i in rows]
            each = zip(*(r for r, _ in own_rows), strict=True)
            widest = [
                _width(own, [(c, by) for c, (_, by) in zip(cs, own_rows, strict=True)], level, known) for cs in each
            ]
            widths.append(max(widest, default=0.0))
        return Part(sums, tuple(widths))


Row = Mapping[Marginal, "NDArray[np.float64]"]
"""What each cell of each marginal counts for."""


def _width(measured: Measured, parts: Sequence[tuple[Row, float]], level: float, known: dict[bytes, float]) -> float:
    """The ± of a weighted sum of rows. known: of rows whose noise has one law."""
    (first, by), *others = parts
    row = {m: c * by for m, c in first.items()}
    for other, factor in others:
        row = {m: c + other[m] * factor for m, c in row.items()}
    law = _law(row)
    if law not in known:
        known[law] = measured.width_of(row, level)
    return known[law]


def _sums(rows: Sequence[Row], worth: Sequence[float]) -> Sums:
    """Coefficients of all cells, one row after the other. worth: by what a marginal's are multiplied."""
    import numpy as np

    start, cells, coefficients = [0], list[Any](), list[Any]()
    for row in rows:
        flat = np.concatenate([c.ravel() * w for c, w in zip(row.values(), worth, strict=True)])
        at = np.flatnonzero(np.abs(flat) > _NOTHING * max(worth))
        cells.append(at)
        coefficients.append(flat[at])
        start.append(start[-1] + len(at))
    empty = np.zeros(0, dtype=np.intp), np.zeros(0)
    return Sums(
        np.array(start, dtype=np.intp), np.concatenate(cells or [empty[0]]), np.concatenate(coefficients or [empty[1]])
    )


def _law(row: Row) -> bytes:
    """Equal for rows of which equally many cells of each marginal count for as much."""
    import numpy as np

    return b"|".join(np.sort(np.abs(c).ravel()).round(9).tobytes() for c in row.values())


def complete(
    definition: Definition, design: SummaryDesign, marginals: Mapping[Marginal, Stored],
    found: Mapping[str, Sequence[Answer]],
) -> Summary | None:  # fmt: skip
    """The summary, if all its answers are stored, and are what the ledger names."""
    wanted, answers = set(definition.answers), list[Answer]()
    for stored in marginals.values():
        own = next((a for a in found.get(stored.address, ()) if a.id in wanted and unchanged(a)), None)
        if own is None or own.shown is not None or len(own.values) != cells_of(stored.release):
            return None
        answers.append(own)
    return Summary(definition, design, marginals, tuple(answers)) if len(answers) == len(wanted) else None


def cells_of(release: PlannedRelease) -> int:
    """How many public keys a marginal has."""
    from dpsql.core.ir.nodes import key_sources

    return math.prod(len(s.keys) for s in key_sources(release.measured.node) or ())
