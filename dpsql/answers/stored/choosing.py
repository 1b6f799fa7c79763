"""Which stored answers a run is given: all that the account holds, and of others' what leaves it within a ceiling.

*Claim.* Whatever is stored, and whoever bought it, an account is charged at most what `fits` admits, by default what
new noise for all of the query would cost; what it holds it is given, for nothing. The choice depends on no number that
the account has not got. *Why.* The choice begins with what is held, the rest being new: a part of what was asked, so
never dearer. Each step after it is taken only if `fits` admits all that the account is then charged. What is looked at
are ids, noise, prices and sizes, which the plan and the ledger determine; numbers are read only as rows of a release
that a later one reads, and of those only that the account holds where a price is told (`preview`). *When it would be
false.* If a held answer made something else dearer: it cannot, for a set of new noise is never dearer than a larger
one. If `fits` judged another price than the one that is charged: both are `core.release.charge.price`. *Tested by*
tests/deep/answers/stored/test_ceiling.py, tests/answers/stored/test_ceiling.py, tests/answers/stored/test_reuse.py.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Protocol

from dpsql.answers.stored.address import Addresses, ReleaseAddress, Rows
from dpsql.answers.stored.distinct_keys import are_keys
from dpsql.core.ir.nodes import Release, key_sources
from dpsql.core.ledger.paid import draw_of, unchanged
from dpsql.core.ledger.released import StoredAnswer
from dpsql.core.noise.mechanisms import Calibrated, KeyThreshold, Mechanism, made_by
from dpsql.core.release.noisy import GivenAnswers, assembled, wanted
from dpsql.planner.plan import Plan
from dpsql.planner.postprocessing.noisy_rows import released_rows


@dataclass(frozen=True, slots=True)
class ChosenAnswers:
    """Per release of a plan, in order: what is given. Everything else is drawn.

    received: those of the given answers that the account gets for the first time, each once.
    """

    given: tuple[GivenAnswers, ...]
    received: tuple[StoredAnswer, ...] = ()

    @classmethod
    def nothing(cls, plan: Plan) -> ChosenAnswers:
        """All is drawn."""
        return cls(tuple(GivenAnswers() for _ in plan.releases))

    @classmethod
    def of(cls, given: Iterable[GivenAnswers], held: Collection[str]) -> ChosenAnswers:
        """All of this is given to an account that holds these. By id: what serves two releases is received once."""
        whole = tuple(given)
        return cls(whole, tuple({a.id: a for own in whole for a in own.every if a.id not in held}.values()))

    def but(self, given: Mapping[int, GivenAnswers], held: Collection[str]) -> ChosenAnswers:
        """The choice with something else given of some releases."""
        return ChosenAnswers.of((given.get(at, own) for at, own in enumerate(self.given)), held)


class Findable(Protocol):
    """What is read of a store of answers."""

    def find(self, addresses: Collection[str]) -> Mapping[str, Sequence[StoredAnswer]]:
        """As `AnswerStore.find`."""
        ...


def choose(
    plan: Plan,
    addresses: Addresses,
    store: Findable,
    held: Collection[str],
    paid: Callable[[], Collection[str]],
    fits: Callable[[ChosenAnswers], bool],
    *,
    dearer: bool = False,
    preview: bool = False,
    any_own: bool = False,
) -> ChosenAnswers:
    """What stored answers give of a plan.

    held: ids of the answers that the account has. paid: tells the ids of all that the ledger names, if it comes to
    that; others are left alone, whatever the store says. A release that reads others can be given only if they are
    given whole: new noise there makes another question of it.
    fits: whether the account may be charged for this; asked before each step beyond what it holds.
    dearer: others' answers are taken one by one. Else those of one parallel group (`parallel_composition.py`) are
    taken all or none: where a part has to be drawn, drawing the whole costs no more.
    preview: nothing will be charged, so nothing may depend on the numbers of answers that the account has not: what
    reads those counts as new. Else whoever asks for prices could tell from them whether he has guessed a number.
    any_own: what the account holds is given however accurate it is.
    Raises CannotOpen (DP407).
    """
    choice = _Choosing(plan, addresses, store, held, cache(paid), fits, dearer, preview, any_own)
    for place in range(len(plan.releases)):
        choice.hold(place)
    for place in range(len(plan.releases)):
        choice.receive(place)
    return choice.with_given()


@dataclass(frozen=True, slots=True)
class _Ranked:
    """Stored answers that would do for one component: those the account holds, the most accurate in front; and those
    it does not, the least accurate in front, which costs it least. Of equal ones the newest first.
    """

    own: Sequence[StoredAnswer]
    others: Sequence[StoredAnswer]


@dataclass(slots=True)
class _Choosing:
    """What is given so far, release by release, and what was found in the store on the way."""

    plan: Plan
    addresses: Addresses
    store: Findable
    held: Collection[str]
    paid: Callable[[], Collection[str]]
    fits: Callable[[ChosenAnswers], bool]
    dearer: bool
    preview: bool
    any_own: bool
    given: list[GivenAnswers] = field(init=False)
    rows: dict[int, Rows] = field(default_factory=dict)
    known: dict[int, ReleaseAddress] = field(default_factory=dict)
    keys: dict[int, _Ranked] = field(default_factory=dict)
    stored: dict[tuple[int, str], Mapping[int, _Ranked]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.given = [GivenAnswers() for _ in self.plan.releases]

    def with_given(self, place: int = 0, given: GivenAnswers | None = None) -> ChosenAnswers:
        """The choice, with something else given of one release."""
        whole = (given if given is not None and at == place else g for at, g in enumerate(self.given))
        return ChosenAnswers.of(whole, self.held)

    def hold(self, place: int) -> None:
        """Give what the account holds of a release; of several sets of private keys the one over which that is most."""
        base, best = self._base(place), GivenAnswers()
        if base is None:
            return
        for begun in self._begun(place, base, own=True):
            found = {i: r.own[0] for i, r in self._ranked(place, base, begun).items() if r.own}
            if len(begun.answers) + len(found) > len(best.answers):
                best = GivenAnswers({**begun.answers, **found}, begun.keys)
        self.given[place] = best

    def receive(self, place: int) -> None:
        """Give what others have bought, as far as it fits; of several sets of private keys as above."""
        base, best = self._base(place), self.given[place]
        if base is None or not wanted(self.plan.releases[place].measured, best):
            return
        private = self.plan.releases[place].measured.threshold is not None and best.keys is None
        for begun in self._begun(place, base, own=False) if private else [best]:
            if begun is best or self.fits(self.with_given(place, begun)):
                filled = self._filled(place, base, begun)
                best = filled if len(filled.answers) > len(best.answers) else best
        self.given[place] = best

    def _filled(self, place: int, base: ReleaseAddress, given: GivenAnswers) -> GivenAnswers:
        ranked = self._ranked(place, base, given)
        missing = [
            {i: ranked[i].others for i in parallel if i in ranked and i not in given.answers}
            for parallel in self.plan.releases[place].measured.parallel_groups
        ]
        # Mostly somebody else asked the same, and all of it fits.
        first = [option for rest in missing for option in itertools.islice(self._options(rest), 1)]
        if not first:
            return given
        whole = _with(given, *first)
        if self.fits(self.with_given(place, whole)):
            return whole
        refused: set[tuple[object, ...]] = set()
        for rest in missing:
            for option in self._options(rest):
                price, more = (len(rest), *self._price(place, option)), _with(given, option)
                if price in refused:  # what did not fit once does not fit beside more
                    continue
                if self.fits(self.with_given(place, more)):
                    given = more
                    break
                refused.add(price)
        return given

    def _options(self, rest: Mapping[int, Sequence[StoredAnswer]]) -> Iterator[dict[int, StoredAnswer]]:
        """Ways to receive what is missing of a parallel group: drawn at one time; else each for itself."""
        draws: dict[str, dict[int, StoredAnswer]] = {}
        for i, answers in rest.items():
            for answer in answers:
                draws.setdefault(draw_of(answer.id), {}).setdefault(i, answer)
        # In the order in which the first component ranks them.
        yield from (option for option in draws.values() if len(option) == len(rest))
        cheapest = {i: answers[0] for i, answers in rest.items() if answers}
        if len(rest) > 1 and cheapest and (self.dearer or len(cheapest) == len(rest)):
            yield cheapest

    def _price(self, place: int, option: Mapping[int, StoredAnswer]) -> tuple[object, ...]:
        """What tells apart how much dearer a run is with this option than with new noise in its place."""
        measured = self.plan.releases[place].measured
        taken = {a.id for given in self.given for a in given.answers.values()}
        draws = [draw_of(a.id) for a in option.values()]
        return tuple(
            (
                tuple(measured.loss_of(i, unit) for unit in measured.contributions),
                frozenset(a.losses.items()), frozenset(a.regions.items()), a.conversion, a.id in taken,
                draws.index(draw_of(a.id)),
            )
            for i, a in option.items()
        )  # fmt: skip

    # --- the store -------------------------------------------------------------------------------------------------

    def _base(self, place: int) -> ReleaseAddress | None:
        """The address of a release; None if that is not known: it reads a release of which something is new."""
        if place not in self.known:
            rows = {at: self._rows(at) for at in self.addresses.reads(place)}
            known = {at: found for at, found in rows.items() if found is not None}
            if len(known) < len(rows):
                return None
            self.known[place] = self.addresses.of(place, known)
        return self.known[place]

    def _rows(self, place: int) -> Rows | None:
        """The rows of a release that is given whole, and may be read."""
        if place not in self.rows:
            planned, given = self.plan.releases[place], self.given[place]
            seen = not self.preview or all(a.id in self.held for a in given.answers.values())
            if not seen or wanted(planned.measured, given):
                return None
            self.rows[place] = released_rows(assembled(planned, given))
        return self.rows[place]

    def _begun(self, place: int, base: ReleaseAddress, *, own: bool) -> Iterator[GivenAnswers]:
        """What the answers of a release begin with: nothing, or one of the stored sets of private keys."""
        measured = self.plan.releases[place].measured
        if measured.threshold is None:
            yield GivenAnswers()
            return
        deciding, address = measured.node.threshold, base.address_of_keys()
        assert deciding is not None
        if place not in self.keys:
            found = self.store.find([address]).get(address, ())
            self.keys[place] = self._rank(found, measured.measurements[deciding].mechanism)
        for keys in self.keys[place].own if own else self.keys[place].others:
            if keys.shown is None or not _as_good(keys, measured.threshold, self.plan.bid.delta, self._any(keys)):
                continue
            if not are_keys(keys.shown.keys, [k.type for k in measured.node.keys]):
                continue
            yield GivenAnswers({deciding: keys}, keys.shown.keys)

    def _ranked(self, place: int, base: ReleaseAddress, begun: GivenAnswers) -> Mapping[int, _Ranked]:
        """Component → the stored answers for it over the keys that were begun with, one number for each of them."""
        measured = self.plan.releases[place].measured
        deciding = measured.node.threshold
        over = "" if deciding is None else begun.answers[deciding].id
        if (place, over) not in self.stored:
            height = height_of(measured.node) if begun.keys is None else len(begun.keys)
            places = [i for i in wanted(measured, GivenAnswers()) if i != deciding]
            addresses = {i: base.address(measured.node.components[i], over) for i in places}
            found = self.store.find(addresses.values())
            self.stored[place, over] = {
                i: self._rank(
                    [a for a in found.get(address, ()) if a.shown is None and len(a.values) == height],
                    measured.measurements[i].mechanism,
                )
                for i, address in addresses.items()
            }
        return self.stored[place, over]

    def _any(self, answer: StoredAnswer) -> bool:
        """Whether it is given however accurate it is."""
        return self.any_own and answer.id in self.held

    def _rank(self, stored: Sequence[StoredAnswer], planned: Mechanism) -> _Ranked:
        """Those that are at least as accurate as planned, or held where any will do."""
        own: list[tuple[float, int, StoredAnswer]] = []
        others: list[tuple[float, int, StoredAnswer]] = []
        for at, answer in enumerate(stored):
            made = made_with(answer)
            if made is None or not (self._any(answer) or made.as_accurate(planned)) or not unchanged(answer):
                continue
            if answer.id in self.held:
                own.append((made.variance(), -at, answer))
            elif answer.id in self.paid():
                others.append((-made.variance(), -at, answer))
        return _Ranked(*([a for _, _, a in sorted(side, key=lambda f: f[:2])] for side in (own, others)))


def _with(given: GivenAnswers, *options: Mapping[int, StoredAnswer]) -> GivenAnswers:
    """More answers, over the same keys."""
    return GivenAnswers(
        {**given.answers, **{i: answer for option in options for i, answer in option.items()}}, given.keys
    )


def height_of(node: Release) -> int:
    """How many public keys a release has."""
    sources = key_sources(node)
    assert sources is not None
    return math.prod(len(s.keys) for s in sources)


def _as_good(keys: StoredAnswer, planned: KeyThreshold, delta: Fraction, any_will_do: bool) -> bool:
    """Whether stored keys show all that planned ones would, at no larger δ than is asked for."""
    shown = keys.shown
    if shown is None or len(shown.keys) != len(keys.values):
        return False
    return any_will_do or (shown.threshold <= planned.threshold and shown.delta <= delta)


def made_with(answer: StoredAnswer) -> Calibrated | None:
    """The noise that an answer was made with; None if this version does not know it."""
    try:
        return made_by(answer.mechanism, answer.parameter)
    except ValueError:
        return None
