"""Searches of limits: what finds them before the releases can be drawn, and the price of both.

The stages behind a search stand in the plan as they cost, with limits of 1: noise is a multiple of a limit, and a price
does not depend on it. Once the limits are found, the same question is planned with them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from dpsql.core.analysis.empty_relations import never
from dpsql.core.analysis.facts import Contribution
from dpsql.core.ir.components import Component, RowCount
from dpsql.core.ir.expressions import walk
from dpsql.core.ir.fingerprint import Fingerprint
from dpsql.core.ir.nodes import key_sources
from dpsql.core.measures.measure_rule import groups_of_a_unit
from dpsql.core.noise.measurement import MeasuredRelease, Measurement
from dpsql.core.noise.mechanisms import FAMILIES, Additive, Exponential, Mechanism
from dpsql.core.noise.scale import LARGEST_SCALE
from dpsql.core.privacy_loss import largest as largest_loss
from dpsql.core.release.planned import PlannedRelease
from dpsql.diagnostics.errors import reject
from dpsql.diagnostics.layout import one_line
from dpsql.diagnostics.note import Note, Rank, Topic, in_order
from dpsql.planner.costs.expected_error import amount_of, expected_error
from dpsql.planner.costs.privacy_cost import cost_of
from dpsql.planner.notes.notes import BIAS, off_told
from dpsql.planner.postprocessing.searches.octaves import (
    MOST,
    SearchResult,
    largest_octave,
    noise_per_unit,
    seen_from,
)
from dpsql.planner.rewrites.bounds.choose_grids import BUDGET, weighed
from dpsql.planner.searches.dominating_limits import is_at_most
from dpsql.planner.searches.limits_to_search import LimitToSearch, Rule, SearchedLimit, Searching, releases_below
from dpsql.planner.stages.query_to_plan import QueryToPlan
from dpsql.planner.stages.releasing import Releasing
from dpsql.planner.stages.stage import HandedOn, Stage
from dpsql.planner.stages.stage_that_finds import StageThatFinds

if TYPE_CHECKING:
    from dpsql.core.engine import Engine
    from dpsql.core.release.noisy import NoisyRelease
    from dpsql.engines.scratch import Scratch
    from dpsql.planner.plan import Plan

AGAIN: Final = Note(
    "limits of rows that depend on another number are found with that number drawn for the search", Rank.SOURCE
)
OF_LIMITS: Final = frozenset({"DP305", "DP501", "DP502", "DP503", "DP504", "DP507"})
"""Warnings that come of limits, which are not known yet."""
LARGEST: Final = {Rule.SUM: MOST, Rule.AVERAGE: 12, Rule.GROUPS: 16, Rule.RANGE: MOST, Rule.QUANTILE: MOST}
"""The highest octave of each rule: weights of averages are too coarse beyond, and more groups are not kept."""


@dataclass(frozen=True, slots=True)
class Searches(StageThatFinds):
    """What finds the limits of a query; the stages behind it are planned anew with them.

    plan: of the octaves. cells: how many there are of all searches together. settings: of the query, whose noise stays
    of the family that it is of now. waiting: limits of rows that depend on other numbers, and what finds them once the
    limits of those are found, each `plan` at its price, with limits of 1. earlier: what was found before.

    Rows that depend on another number are searched with that number drawn for the search, at a part of its price: the
    query's own is drawn once all limits are known.
    """

    limits: tuple[SearchedLimit, ...]
    cells: int
    waiting: tuple[SearchedLimit, ...] = ()
    following: tuple[Plan, ...] = ()
    earlier: tuple[SearchResult, ...] = ()

    @property
    def plans(self) -> tuple[Plan, ...]:
        """Of this search and of those behind it."""
        return (self.plan, *self.following)

    @property
    def every(self) -> tuple[SearchedLimit, ...]:
        """The limits that are not known yet."""
        return (*self.limits, *self.waiting)

    @property
    def asked(self) -> tuple[PlannedRelease, ...]:
        """The releases of this search and of those behind it."""
        return tuple(release for plan in self.plans for release in plan.releases)

    @property
    def places(self) -> dict[str, int]:
        """Label of a limit → the place of its octaves among `asked`."""
        before = [0, *accumulate(len(plan.releases) for plan in self.plans)]
        return {each.limit.label: before[each.round] + each.release for each in self.every}

    def limit_of(self, release: int, component: int) -> SearchedLimit | None:
        """What the noise of a component of the query is a multiple of."""
        return next((limit for limit in self.every if (release, component) in limit.follow), None)

    def found(self, noisy: Sequence[NoisyRelease], ids: Sequence[str] = ()) -> tuple[SearchResult, ...]:
        """What the octaves say, in the order of the limits. ids: by release, of the noise of its octaves."""
        from dpsql.planner.searches.found import bounded_by_larger, found_by  # which load numpy, as no check does

        found = [found_by(each, noisy[each.release], self.cells) for each in self.limits]
        if ids:
            found = [replace(f, drawn=ids[s.release]) for f, s in zip(found, self.limits, strict=True)]
        return bounded_by_larger(self.limits, found)


Places = tuple[tuple[int, int], ...]
"""(release, component) of a plan."""


@dataclass(frozen=True, slots=True)
class LimitsFound(Stage):
    """What the limits of a plan were read from: it asks nothing any more, and tells what was found.

    followed: each limit with the components whose noise is a multiple of it. results: by search.
    """

    followed: tuple[tuple[LimitToSearch, Places], ...] = field(compare=False)
    results: tuple[SearchResult, ...] = field(default=(), compare=False)

    def limits_of(self, release: int, component: int) -> tuple[tuple[LimitToSearch, SearchResult], ...]:
        """The limits of one component that were found; none where all of them are declared or proven."""
        result = {f.octaves.label: f for f in self.results}
        return tuple((limit, result[limit.label]) for limit, at in self.followed if (release, component) in at)

    @property
    def of_own_rows(self) -> tuple[SearchResult, ...]:
        """Those that tell how much is cut of the answer: not of rows that read another number, for a search draws it
        for itself.
        """
        others = {limit.label for limit, _ in self.followed if releases_below(limit.octaves)}
        return tuple(f for f in self.results if f.octaves.label not in others)

    def handed_on(self, before: HandedOn, engine: Engine, scratch: Scratch) -> HandedOn:
        """The limits, and what is above them, in words."""
        from dpsql.planner.postprocessing.searches.told import reach_notes, search_notes

        result = {f.octaves.label: f for f in self.of_own_rows}
        cut = {
            place: result[limit.label]
            for limit, places in self.followed
            if (limit.rule is Rule.SUM or (limit.rule is Rule.AVERAGE and not limit.quantiles))
            and limit.label in result
            for place in places
        }
        others = [f for f in self.results if f.octaves.label not in result]
        told = (
            *search_notes(self.of_own_rows),
            *(note for note in search_notes(others) if note.rank is Rank.SOURCE),
            *(_not_told(f) for f in others),
            *reach_notes(tuple(cut.values())),
        )
        return replace(before, notes=(*before.notes, *told), cut=cut)


def _not_told(found: SearchResult) -> Note:
    what = one_line(found.octaves.what)
    why = "it was searched with another draw of the number that these rows depend on"
    return Note(f"how much the limit of {what} cuts is not known: {why}", Rank.BIAS, Topic.ENDS)


def with_limits_followed(plan: Plan, searching: Searching) -> Plan:
    """A plan whose limits are all found, which says what follows each of them."""
    followed = tuple((limit, tuple(_following(limit, plan, searching))) for limit in searching.wanted.values())
    return replace(plan, stages=(LimitsFound(followed), *plan.stages))


@dataclass(frozen=True, slots=True)
class Round:
    """What can be found at one time. places: the release of each limit's octaves among those of the plan."""

    plan: Plan
    limits: tuple[LimitToSearch, ...]
    places: tuple[int, ...]

    @property
    def cells(self) -> int:
        """How many there are of all searches together."""
        return sum(_groups(self.plan.releases[place].measured) for place in set(self.places))


def with_searches(rest: Plan, rounds: Sequence[Round], searching: Searching, query: QueryToPlan) -> Plan:
    """The plan of a query with the searches that come first.

    rest: of its releases, with limits of 1. rounds: of the searches, in order.
    """
    plans = tuple(replace(each.plan, written=replace(each.plan.written, finds=True)) for each in rounds)
    first, *behind = (
        tuple(
            replace(_searched(*limit, rest, plans, searching), round=number)
            for limit in zip(each.limits, each.places, strict=True)
        )
        for number, each in enumerate(rounds)
    )
    waiting = tuple(limit for own in behind for limit in own)
    rest = rest.with_releases(tuple(_with_most_delta(r, rest) for r in rest.releases))
    noisy = [m.mechanism for r in rest.releases for m in r.measured.measurements if m.known is None]
    settings = replace(query.settings, family=_family(noisy))
    octaves, releases = plans[0], [r.measured for plan in (*plans, rest) for r in plan.releases]
    search = Searches(
        octaves, settings, query.parameters, first, rounds[0].cells, waiting, plans[1:], releases=octaves.releases
    )
    named = [(s.limit.label, s.noise, s.largest) for s in search.every]
    return replace(
        rest,
        stages=(search, *map(_without_warnings_of_limits, rest.stages)),
        cost=cost_of(releases, query.policy),
        identity=Fingerprint(rest.hash, *(plan.hash for plan in plans), named),
        notes=_notes(rest, search, query),
    )


def _without_warnings_of_limits(stage: Stage) -> Stage:
    if not isinstance(stage, Releasing):
        return stage
    return replace(stage, warnings=tuple(w for w in stage.warnings if w.code not in OF_LIMITS))


def error_of_limits(plan: Plan) -> float:
    """Σ ln of the mean size of all noise, as far as public facts tell it before limits are found: with limits of 1 on
    sums, and of 1/⁴√n on roots of squares over n groups.

    The sum of an id's totals is between 1 and √n times their root. It is taken for ⁴√n times, the geometric mean: where
    each id is in one group this is too much, where each is in all it is too little, by the same factor.
    """
    measured = ((m, r.measured.contribution) for r in plan.releases for m in r.measured.measurements)
    each = ((m, c) for m, c in measured if m.known is None and isinstance(m.mechanism, Additive))
    return sum(math.log(noise_per_unit(m.noise, m.component.weight) / _spread(m.component, c)) for m, c in each)


def _spread(c: Component, limits: Contribution) -> float:
    if c.of_unit is None or c.of_unit.norm == "l1":
        return 1.0
    return math.sqrt(math.sqrt(groups_of_a_unit(limits) or 1))


def _with_most_delta(release: PlannedRelease, rest: Plan) -> PlannedRelease:
    """With the δ that its threshold may have. What it will have depends, by rounding, on the limit on groups."""
    if release.measured.threshold is None:
        return release
    sets = sum(r.measured.threshold is not None for r in rest.releases)
    most = (rest.bid.delta - release.measured.conversion_delta) / sets
    return replace(release, measured=replace(release.measured, reserved_delta=most))


def _searched(
    limit: LimitToSearch, release: int, rest: Plan, plans: Sequence[Plan], searching: Searching
) -> SearchedLimit:
    """plans: of all searches; some draw numbers of the query, too, whose noise is a multiple of limits found before."""
    follow = _following(limit, rest, searching)
    below = tuple(other.label for other in searching.missing if is_at_most(limit, other))
    if not follow and releases_below(limit.octaves):
        raise reject("DP101", "no search finds a limit of rows that depend on another number")
    if limit.rule.of_values:
        clip = searching.clips[limit.label]
        for m in (m for r in rest.releases for m in r.measured.measurements if m.known is None):
            if m.component.arg is not None and clip in walk(m.component.arg):
                _require_room(m, limit)
        return SearchedLimit(limit, release, Fraction(0), MOST, tuple(follow))
    noise, largest, threshold = Fraction(0), [LARGEST[limit.rule]], 0
    for (at, _), m in follow.items():
        measured = rest.releases[at].measured
        if measured.threshold is not None and limit.rule is not Rule.GROUPS:
            threshold = measured.threshold.threshold
        groups, weight = _groups(measured), m.component.weight
        if limit.rule is Rule.AVERAGE:  # of one count of the rows; a choice errs by about as many of them
            if isinstance(m.component, RowCount) and isinstance(m.mechanism, Additive):
                noise = max(noise, noise_per_unit(m.noise, weight, groups))
            elif isinstance(m.mechanism, Exponential):
                noise = max(noise, groups / (m.mechanism.eta * weight))
        elif isinstance(m.mechanism, Additive):
            noise += noise_per_unit(m.noise, weight, groups)
        if limit.rule is Rule.SUM:
            largest.append(largest_octave(m.noise, weight, partial(weighed, weight=weight)))
        else:
            _require_room(m, limit)
    for m in (m for plan in plans for m in _following(limit, plan, searching).values()):
        if limit.rule is Rule.SUM and isinstance(m.mechanism, Additive):
            largest.append(largest_octave(m.noise, m.component.weight, partial(weighed, weight=m.component.weight)))
        else:
            _require_room(m, limit)
    return SearchedLimit(limit, release, noise, min(largest), tuple(follow), threshold, below)


def _following(limit: LimitToSearch, plan: Plan, searching: Searching) -> dict[tuple[int, int], Measurement]:
    """(release, component) → its measurement, of what is a multiple of the limit."""
    return {
        (at, i): m
        for at, r in enumerate(plan.releases)
        for i, m in enumerate(r.measured.measurements)
        if m.known is None and searching.follows(limit, r.measured.node, m.component)
    }


def _require_room(m: Measurement, limit: LimitToSearch) -> None:
    """Refuse noise that might be too wide at some limit: what is found is known after the charge.

    Whatever that is, grids are chosen so that an id adds at most 2⁴⁰ (`choose_grids`), and moves at most twice that
    where it is replaced. Noise grows no faster than what is moved.
    """
    room, moved = LARGEST_SCALE / (2 * BUDGET), m.sensitivity
    laplace, gaussian = _widths(m.mechanism)
    if laplace > room * moved.l1 or gaussian**2 > room**2 * moved.l2_squared:
        raise reject(
            "DP410", f"the noise could be too large to be of use, whatever limit of {limit.what} is found",
            help=["use a larger epsilon", "or declare limits and bounds"],
        )  # fmt: skip


def _family(mechanisms: Sequence[Mechanism]) -> str:
    """The family of a query's noise; of choices alone the one that their price is counted in."""
    added = [m.name for m in mechanisms if isinstance(m, Additive)]
    if added:
        return added[0]
    return next(f.name for f in FAMILIES.values() if isinstance(m := mechanisms[0], Exponential) and f.pure is m.pure)


def _widths(mechanism: Mechanism) -> tuple[Fraction, Fraction]:
    """Scale and σ of noise; of a choice 1/η in place of the one that its price follows as it does."""
    if isinstance(mechanism, Exponential):
        own = 1 / mechanism.eta
        return (own, Fraction(0)) if mechanism.pure else (Fraction(0), own)
    assert isinstance(mechanism, Additive)
    return mechanism.laplace, mechanism.gaussian


def _groups(measured: MeasuredRelease) -> int:
    """How many numbers are released: of the key lists, never of rows that were fetched."""
    return math.prod(len(source.keys) for source in key_sources(measured.node) or ())


def _notes(rest: Plan, search: Searches, query: QueryToPlan) -> tuple[Note, ...]:
    """What the reader should know before anything is found."""
    limits, plans = search.every, search.plans
    price = largest_loss(cost_of([r.measured for plan in plans for r in plan.releases], query.policy).values())
    clipped = {one_line(s.limit.what) for s in limits if s.limit.rule.of_values}
    follow = _follow(limits)

    def is_unknown(note: Note) -> bool:
        match note.topic:
            case Topic.LIMIT | Topic.TOTAL | Topic.THRESHOLD:
                return True
            case Topic.CLIP:
                return note.of in clipped
        return note.topic is Topic.OFF and note.of in follow

    # How far quantiles are off whatever bounds are found, where no limit is.
    off = _follow([s for s in limits if s.limit.rule is Rule.QUANTILE])
    off -= _follow([s for s in limits if s.limit.rule is Rule.AVERAGE])
    known = [note for note in rest.notes if not is_unknown(note)]
    if not any(note.topic is Topic.CLIP for note in known):
        known = [note for note in known if note != BIAS]
    return in_order(
        (
            Note(
                f"{price} of the price find the limits; then the rest is spent at these, whatever they are",
                topic=Topic.LATER,
            ),
            *([AGAIN] if len(search.releases) > len({s.release for s in search.limits}) or search.following else ()),
            *_known_before(rest, search),
            *known,
            *sorted(note for at in off for note in off_told(rest.releases[at].measured, at, any_bounds=True)),
        )
    )


def _known_before(rest: Plan, search: Searches) -> Iterator[Note]:
    """What is known of sums and counts before a limit is found: the noise at the largest that it may be, and how many
    units have to be alike for the search to see them.
    """
    for s in (s for s in search.every if s.limit.rule is Rule.SUM):
        error = max((expected_error(rest.releases[at].measured, i) or 0.0 for at, i in s.follow), default=0.0)
        counted = search.plans[s.round].releases[s.release].measured
        (m,) = counted.measurements
        number = -(-seen_from(m.noise, search.cells) // m.component.weight)
        seen = f"if {number:,} {one_line(counted.unit)} unit{'s' * (number != 1)} or more are alike"
        told = f"its limit is found when the query runs, {seen}: noise "
        if s.limit.grid < 1 and s.limit.at_most is None:
            told += f"± {amount_of(error / float(s.limit.grid))} times the limit"
        else:
            told += f"at least ± {amount_of(error)}"
        if s.limit.at_most is not None:
            told += f", at most ± {amount_of(error * s.limit.at_most)}"
        known = "stays unknown" if releases_below(s.limit.octaves) else "is known after the run"
        told += f"; what the limit cuts comes on top, and {known}"
        yield Note(f"{one_line(s.limit.what)}: {told}", Rank.BIAS, Topic.LATER)


def _follow(limits: Sequence[SearchedLimit]) -> set[int]:
    """The releases that follow these limits."""
    return {at for s in limits for at, _ in s.follow}


def require_known_at_any_bounds(rest: Plan, searching: Searching) -> None:
    """Refuse what is known only because bounds that are to be found stand as 0 and 1."""
    clips = tuple(searching.clips.values())
    measured = (m for r in rest.releases if not r.measured.empty for m in r.measured.measurements)
    for c in (m.component for m in measured if m.known is not None):
        if c.arg is None or (c.filter is not None and never(c.filter)):
            continue
        clip = next((e for e in walk(c.arg) if e in clips), None)
        if clip is not None:
            raise reject(
                "DP101", "what is added up is the same for all values between 0 and 1: nothing can be planned"
                " before bounds are found", span=clip.span,
                help=["leave the bounds of the whole to the search:  SUM(CLIP(x // 10, AUTO))"],
            )  # fmt: skip
