"""Summaries as the ledger's entries define them, and what they say of a later query.

A summary is a name for stored answers: marginals that were drawn, charged and stored as any query's. An entry of the
ledger says which (of kind `definition`); it holds as long as they stand at the addresses of its marginals (address.py):
as long as the policy says the same of what they read. To answer a query from it is arithmetic over answers that the
account has; one that has not got them all is charged all that it misses, as for any stored answer
(`core/release/charge.py`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from functools import cached_property
from typing import Any

from dpsql.answers.stored.choosing import height_of
from dpsql.core.ir.nodes import Release
from dpsql.core.ledger.ledger import Entry, Ledger
from dpsql.core.ledger.paid import unchanged
from dpsql.core.ledger.released import StoredAnswer
from dpsql.core.noise.integer_columns import Integers
from dpsql.core.noise.measurement import MeasuredRelease
from dpsql.core.noise.mechanisms import Additive, made_by
from dpsql.core.release.noisy import Estimate, NoisyRelease, NoisySource, Sums
from dpsql.frontend.text.summary_statements import CreateSummary, DropSummary, summary_statement
from dpsql.planner.batch.workload import Marginal
from dpsql.planner.plan import Plan
from dpsql.planner.summaries.design import SummaryDesign
from dpsql.planner.summaries.estimates import coefficients, read_columns
from dpsql.planner.summaries.fit import Fit, UnfitRelease, fit

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
class StoredMarginal:
    """A marginal of a summary. release: that measures it. address: of its numbers."""

    release: Release
    address: str

    @property
    def grain(self) -> float:
        """What an integer is worth, in rows."""
        (component,) = self.release.components
        return float(component.worth / component.weight)


@dataclass(frozen=True, slots=True)
class SummaryPart:
    """What a summary says of one release. columns: of the summary that any part of the same plan varies over. widths:
    of each output the largest ± of its numbers, at the plan's confidence."""

    columns: frozenset[int]
    sums: Mapping[int, Sums]
    widths: tuple[float, ...]


@dataclass(eq=False)
class Summary:
    """A summary of this policy whose answers are all stored.

    marginals, answers: in one order.
    """

    definition: Definition
    design: SummaryDesign
    marginals: Mapping[Marginal, StoredMarginal]
    answers: tuple[StoredAnswer, ...]
    _kept: dict[str, Mapping[int, SummaryPart | str]] = field(default_factory=dict, repr=False)
    _sources: dict[frozenset[int], tuple[NoisySource, ...]] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        """As it is called."""
        return self.definition.name

    @property
    def made_at(self) -> datetime:
        """When the last of it was measured."""
        return max(answer.made_at for answer in self.answers)

    @property
    def limited(self) -> bool:
        """Whether rows of an id weigh less where it has many: in the whole table, whatever a query filters."""
        return any(stored.release.components[0].weight > 1 for stored in self.marginals.values())

    @cached_property
    def noise(self) -> tuple[Additive, ...]:
        """Of each marginal, as its stored answer says."""
        found = [made_by(answer.mechanism, answer.parameter) for answer in self.answers]
        return tuple(m for m in found if isinstance(m, Additive))

    def parts(self, plan: Plan) -> Mapping[int, SummaryPart | str]:
        """What it says of each release of a plan, or why it says nothing. Reads no number."""
        key = f"{plan.hash} {plan.bid.confidence}"
        if key not in self._kept:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            self._kept[key] = self._parts(plan)
        return self._kept[key]

    def estimate(self, part: SummaryPart) -> Estimate:
        """What a release is computed of."""
        if part.columns not in self._sources:
            self._sources[part.columns] = self._summed(part.columns, [answer.values for answer in self.answers])
        return Estimate(self.answers, self._sources[part.columns], part.sums)

    def _parts(self, plan: Plan) -> Mapping[int, SummaryPart | str]:
        first = next(iter(self.marginals.values())).release
        k, found, fits = max(len(m) for m in self.marginals), dict[int, SummaryPart | str](), dict[int, Fit]()
        for place, release in enumerate(plan.releases):
            try:
                fits[place] = fit(release.measured, self.design, first, k)
            except UnfitRelease as why:
                found[place] = str(why)
        columns = read_columns([n for own in fits.values() for numbers in own.numbers.values() for n in numbers])
        without = self._summed(columns, [[0] * len(answer.values) for answer in self.answers])
        for place, own in fits.items():
            planned = plan.releases[place]
            sums = self._sums(own, columns, planned.measured)
            empty = Estimate((), without, sums).of(planned)
            found[place] = SummaryPart(columns, sums, tuple(largest_widths(empty, plan.bid.confidence)))
        return found

    def _sums(self, own: Fit, columns: frozenset[int], measured: MeasuredRelease) -> dict[int, Sums]:
        """Coefficients of the sources of each component, one key after the other."""
        import numpy as np

        grains = [s.grain for s in self.marginals.values()]
        variances = {m: n.variance() * g**2 for m, n, g in zip(self.marginals, self.noise, grains, strict=True)}
        found = {}
        for i, numbers in own.numbers.items():
            start, cells, values = [0], list[Any](), list[Any]()
            for number in numbers:
                row = coefficients(number, columns, variances, self.design.sizes)
                flat = np.concatenate([c.ravel() * g for c, g in zip(row.values(), grains, strict=True)])
                at = np.flatnonzero(np.abs(flat) > _NOTHING * np.abs(flat).max(initial=0.0))
                cells.append(at)
                values.append(flat[at] / float(measured.measurements[i].unit))
                start.append(start[-1] + len(at))
            empty = np.zeros(0, dtype=np.intp), np.zeros(0)
            starts = np.array(start, dtype=np.intp)
            found[i] = Sums(starts, np.concatenate([empty[0], *cells]), np.concatenate([empty[1], *values]))
        return found

    def _summed(self, columns: frozenset[int], values: Sequence[Sequence[int]]) -> tuple[NoisySource, ...]:
        """Each marginal added up over all other columns."""
        sizes, found = self.design.sizes, list[NoisySource]()
        for marginal, noise, own in zip(self.marginals, self.noise, values, strict=True):
            gone = tuple(axis for axis, column in enumerate(marginal) if column not in columns)
            table = Integers.of(own).array.reshape(tuple(sizes[c] for c in marginal))
            whole = table.sum(axis=gone) if gone else table
            copies = math.prod(sizes[c] for c in marginal if c not in columns)
            found.append(NoisySource(noise, copies, Integers.of(np_list(whole))))
        return tuple(found)


def np_list(table: Any) -> list[int]:
    """The numbers of an array in order."""
    return [int(value) for value in table.ravel().tolist()] if hasattr(table, "ravel") else [int(table)]


def largest_widths(estimated: NoisyRelease, level: Fraction) -> Iterator[float]:
    """Of each output the largest ± of its rows, whatever its numbers are."""
    from dpsql.planner.postprocessing.intervals.derived_columns import whole_output
    from dpsql.planner.postprocessing.intervals.fieller import widths
    from dpsql.planner.postprocessing.intervals.linear import Noises, TooMany

    noises = Noises([estimated])
    for at in range(len(estimated.planned.measured.node.outputs)):
        try:
            yield float(widths(noises, whole_output(noises, 0, at, estimated).linear(), 1 - level).max(initial=0.0))
        except TooMany:
            yield math.inf


def complete(
    definition: Definition, design: SummaryDesign, marginals: Mapping[Marginal, StoredMarginal],
    found: Mapping[str, Sequence[StoredAnswer]],
) -> Summary | None:  # fmt: skip
    """The summary, if all its answers are stored, and are what the ledger names."""
    wanted, answers = set(definition.answers), list[StoredAnswer]()
    for stored in marginals.values():
        own = next((a for a in found.get(stored.address, ()) if a.id in wanted and unchanged(a)), None)
        if own is None or own.shown is not None or len(own.values) != height_of(stored.release):
            return None
        if not isinstance(made_by(own.mechanism, own.parameter), Additive):
            return None
        answers.append(own)
    return Summary(definition, design, marginals, tuple(answers)) if len(answers) == len(wanted) else None
