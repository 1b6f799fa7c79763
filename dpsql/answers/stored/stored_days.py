"""What of a growing table is stored period by period: such answers are given, and what is missing alone is drawn.

*Claim.* An account is charged, in each period, what new noise would cost there, or less; what it holds it is given for
nothing. *Why.* What is drawn is the same question of the missing periods alone, planned again: their scans say which
these are, and the price is made of the scans (core/noise/measurement.py). Others' answers are taken only if `fits`
admits all that is charged then. *When it would be false.* If the account were charged for another plan than the one
that is drawn (`Resolution.to_draw`). An answer that is put in the wrong place makes wrong numbers, and loses no
privacy. *Tested by* tests/answers/stored/test_stored_days.py, tests/deep/answers/stored/test_days_of_streams.py.

The sum of stored periods is taken for a range where it errs no more than what was asked for would: counts and sums of
rows add up, and their noise is independent.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from dpsql.answers.stored.analyst_account import AnalystAccount
from dpsql.answers.stored.choosing import ChosenAnswers, Findable, made_with
from dpsql.answers.stored.day_numbers import DayNumbers, SummedDays, height_of_part
from dpsql.core.analysis.period_parts import PeriodPart, PeriodParts, parted_scan
from dpsql.core.ir.components import RowCount, ValueSum
from dpsql.core.ir.nodes import key_sources
from dpsql.core.ir.periods import DAY, Span, canonical, common, words
from dpsql.core.ledger.paid import unchanged
from dpsql.core.ledger.released import StoredAnswer
from dpsql.core.noise.measurement import MeasuredRelease, Measurement
from dpsql.core.noise.mechanisms import Additive
from dpsql.core.policy.growing import Growth
from dpsql.core.release.noisy import GivenAnswers, public_keys, wanted
from dpsql.diagnostics.errors import Rejected
from dpsql.diagnostics.note import Note, Rank
from dpsql.diagnostics.words import about
from dpsql.planner.plan import Plan

MOST_SUMMED: Final = 4_000
"""The most periods that are added up."""


@dataclass(frozen=True, slots=True)
class DaysGiven:
    """What is drawn in place of what was asked for, and what stored periods say beside it.

    plan: with the releases that are drawn. choice: with stored periods. notes: what the reader is told.
    """

    plan: Plan
    choice: ChosenAnswers
    notes: tuple[Note, ...]

    def told(self, costs: object, asked: object) -> tuple[Note, ...]:
        """costs: of the run; asked: of new noise for all of it."""
        return self.notes


@dataclass(frozen=True, slots=True)
class _Candidates:
    """Of one component and part: the most accurate answer that the account holds, and the cheapest of others."""

    own: StoredAnswer | None = None
    other: StoredAnswer | None = None


@dataclass(frozen=True, slots=True)
class _InParts:
    """A release in parts, and what is stored of each: whole ones alone."""

    place: int
    split: PeriodParts
    own: Mapping[int, Mapping[int, StoredAnswer]]
    others: Mapping[int, Mapping[int, StoredAnswer]] = field(default_factory=dict)

    def missing(self, *, receiving: bool) -> tuple[Span, ...]:
        """The days of parts that are not stored."""
        there = {*self.own, *(self.others if receiving else ())}
        return canonical(s for at, part in enumerate(self.split.parts) if at not in there for s in part.days)


def with_stored_days(
    plan: Plan,
    account: AnalystAccount,
    store: Findable,
    choice: ChosenAnswers,
    held: Collection[str],
    paid: Callable[[], Collection[str]],
    fits: Callable[[ChosenAnswers, Plan], bool],
    *,
    dearer: bool,
) -> DaysGiven | None:
    """None where no stored period is of use. held: ids of the account's answers; paid: of all that the ledger names.

    dearer: others' answers may cost more than new noise. Raises CannotOpen.
    """
    if not plan.basis.periods or plan.searches is not None or account.addresses(plan).nested:
        return None
    own_parts, notes = list[_InParts](), list[Note]()
    for place, planned in enumerate(plan.releases):
        if choice.given[place] != GivenAnswers() or not wanted(planned.measured, GivenAnswers()):
            continue
        looking = _Looking(plan, account, store, held, paid, dearer, place, planned.measured)
        split = planned.measured.parts
        if split is not None:
            own_parts.append(looking.in_parts(split))
        else:
            summed, note = looking.summed()
            notes += [] if note is None else [note]
            if summed is not None:
                choice = choice.but({place: GivenAnswers(estimate=summed)}, held)
    for receiving in (True, False):
        if receiving and not any(each.others for each in own_parts):
            continue
        found = _given(plan, account, choice, own_parts, held, receiving=receiving)
        if found is not None and (not receiving or fits(found.choice, found.plan)):
            return replace(found, notes=(*found.notes, *notes))
    return DaysGiven(plan, choice, tuple(notes)) if notes else None


def _given(
    plan: Plan, account: AnalystAccount, choice: ChosenAnswers, own: Sequence[_InParts], held: Collection[str],
    *, receiving: bool,
) -> DaysGiven | None:  # fmt: skip
    """With these stored parts; None if there are none, or if the rest cannot be asked by itself."""
    used = [each for each in own if each.own or (receiving and each.others)]
    missing: dict[str, tuple[Span, ...]] = {}
    for each in used:  # of one table all that any release lacks
        table = each.split.scan.table
        missing[table] = canonical((*missing.get(table, ()), *each.missing(receiving=receiving)))
    asked = {table: days for table, days in missing.items() if days}
    narrowed = _narrowed(plan, account, asked) if asked else plan
    if not used or narrowed is None:
        return None
    releases, notes = list(plan.releases), list[Note]()
    for each in used:
        planned, there = plan.releases[each.place], {**(each.others if receiving else {}), **each.own}
        lacks = each.missing(receiving=receiving) and missing[each.split.scan.table]
        kept = {at: found for at, found in there.items() if not common(each.split.parts[at].days, lacks)}
        numbers = DayNumbers(planned, tuple((each.split.parts[at].keys, found) for at, found in sorted(kept.items())))
        if lacks:
            again = narrowed.releases[each.place]
            if not kept or not _asks_the_same(planned.measured, again.measured):
                return None
            releases[each.place] = again
        given = GivenAnswers(beside=numbers) if lacks else GivenAnswers(estimate=numbers)
        choice = choice.but({each.place: given}, held)
        notes.append(_told(each, kept, lacks, held))
    return DaysGiven(plan.with_releases(releases), choice, tuple(dict.fromkeys(notes)))


def _narrowed(plan: Plan, account: AnalystAccount, days: Mapping[str, tuple[Span, ...]]) -> Plan | None:
    """The question of these days alone; None if it is not to be had."""
    if account.narrowed is None:
        return None
    try:
        found = account.narrowed(plan, days)
    except Rejected:
        return None
    return found if len(found.releases) == len(plan.releases) and found.basis == plan.basis else None


def _asks_the_same(whole: MeasuredRelease, part: MeasuredRelease) -> bool:
    """Whether a release asks what another one does, with the same noise."""
    alike = whole.node.components == part.node.components and whole.node.keys == part.node.keys
    noise = [[(m.mechanism, m.known) for m in each.measurements] for each in (whole, part)]
    return alike and noise[0] == noise[1] and part.parts is not None


def _told(
    each: _InParts, kept: Mapping[int, Mapping[int, StoredAnswer]], drawn: Sequence[Span], held: Collection[str]
) -> Note:
    """`27 stored days, cost 0; drawn: 2026-11-28`."""
    every = _every(each.split)
    new = sum(any(a.id not in held for a in found.values()) for found in kept.values())
    costs = ", cost 0" if not new else f", {new:,} of them new to this account"
    rest = f"; drawn: {words(drawn)}" if drawn else ""
    return Note(f"{len(kept):,} stored {every if len(kept) != 1 else every[:-1]}{costs}{rest}", Rank.SOURCE)


def _every(split: PeriodParts) -> str:
    """What its parts are called."""
    assert split.scan.periods is not None
    every = split.scan.periods.every
    return f"{every}s" if all(_is_one(part, every) for part in split.parts) else "stretches of days"


def _is_one(part: PeriodPart, every: str) -> bool:
    return len(list(_periods(every, part.days))) == 1


def _periods(every: str, days: Sequence[Span]) -> Iterator[tuple[dt.date, dt.date]]:
    """Each period of whole ones by itself, of days that end."""
    grows = Growth("", every, dt.date.min)  # type: ignore[arg-type]
    for first, last in days:
        while last is not None and first <= last:
            yield first, grows.ends(first)
            first = grows.ends(first) + DAY


@dataclass(frozen=True, slots=True)
class _Looking:
    """For what is stored of one release."""

    plan: Plan
    account: AnalystAccount
    store: Findable
    held: Collection[str]
    paid: Callable[[], Collection[str]]
    dearer: bool
    place: int
    measured: MeasuredRelease

    def in_parts(self, split: PeriodParts) -> _InParts:
        """All parts of which everything is stored."""
        parts = [(part.days, part) for part in split.parts]
        found = self._found(parts, [height_of_part(self.measured, split.place, part) for part in split.parts])
        own = {at: {i: c.own for i, c in each.items() if c.own is not None} for at, each in enumerate(found)}
        whole = {at: answers for at, answers in own.items() if len(answers) == len(found[at]) > 0}
        others = dict[int, Mapping[int, StoredAnswer]]()
        for at, each in enumerate(found):
            mixed = {i: c.own or c.other for i, c in each.items()}
            answers = {i: a for i, a in mixed.items() if a is not None}
            if at not in whole and len(answers) == len(each) > 0:
                others[at] = answers
        return _InParts(self.place, split, whole, others)

    def summed(self) -> tuple[SummedDays | None, Note | None]:
        """The sum of the periods of a range, where all are held and it errs no more than new noise; what to say."""
        node = self.measured.node
        scan = parted_scan(node, self.measured.ids)
        if scan is None or scan.periods is None or set(self.measured.contributions) - self.measured.growing.keys():
            return None, None
        if not all(isinstance(c, RowCount | ValueSum) for c in node.components):
            return None, None
        if any(last is None for _, last in scan.periods.days):
            return None, None
        periods = list(_periods(scan.periods.every, scan.periods.days))
        if not 1 < len(periods) <= MOST_SUMMED:
            return None, None
        height = len(public_keys(key_sources(node) or (), len(node.keys)))
        found = self._found([((each,), None) for each in periods], [height] * len(periods), any_own=True)
        if not all(c.own is not None for each in found for c in each.values()):
            return None, None
        days = SummedDays(tuple({i: c.own for i, c in each.items() if c.own is not None} for each in found))
        every, widest = f"{scan.periods.every}s", days.widest(self.plan.releases[self.place], self.plan.bid.confidence)
        said = f"sum of {len(periods):,} stored {every}"
        if all(days.variance(i) <= m.mechanism.variance() for i, m in self._drawn()):
            return days, Note(f"{said}, ± {about(widest)}, cost 0", Rank.SOURCE)
        return None, Note(f"the {said} would be ± {about(widest)}, at cost 0", Rank.SOURCE)

    def _drawn(self) -> Iterator[tuple[int, Measurement]]:
        for i in wanted(self.measured, GivenAnswers()):
            yield i, self.measured.measurements[i]

    def _found(
        self,
        parts: Sequence[tuple[Sequence[Span], PeriodPart | None]],
        heights: Sequence[int],
        *,
        any_own: bool = False,
    ) -> list[dict[int, _Candidates]]:
        """any_own: however accurate it is."""
        addresses, components = self.account.addresses(self.plan), self.measured.node.components
        named: dict[tuple[int, int], str] = {}
        for at, (days, part) in enumerate(parts):
            base, called = addresses.of_part(self.place, days, part)
            for i, _ in self._drawn():
                named[at, i] = base.on(called, components[i])
        stored = self.store.find(list(named.values()))
        found: list[dict[int, _Candidates]] = [{} for _ in parts]
        for (at, i), address in named.items():
            found[at][i] = self._best(i, stored.get(address, ()), heights[at], any_own)
        return found

    def _best(self, place: int, stored: Sequence[StoredAnswer], height: int, any_own: bool) -> _Candidates:
        planned = self.measured.measurements[place].mechanism
        own: list[tuple[float, StoredAnswer]] = []
        others: list[tuple[float, StoredAnswer]] = []
        for answer in reversed(stored):  # of equal ones the newest
            made = made_with(answer)
            if made is None or answer.shown is not None or len(answer.values) != height or not unchanged(answer):
                continue
            # What is chosen, and not added to, is given as it was planned, or not at all.
            alike = isinstance(made, Additive) and isinstance(planned, Additive)
            if not (made == planned or (alike and (any_own or made.as_accurate(planned)))):
                continue
            if answer.id in self.held:
                own.append((made.variance(), answer))
            elif answer.id in self.paid() and (self.dearer or self._is_no_dearer(place, answer)):
                others.append((-made.variance(), answer))
        best = [min(each, key=lambda found: found[0])[1] if each else None for each in (own, others)]
        return _Candidates(*best)

    def _is_no_dearer(self, place: int, answer: StoredAnswer) -> bool:
        return all(loss.within(self.measured.loss_of(place, unit)) for unit, loss in answer.losses.items())
