"""Charge first: the price of a run, from the objects that will draw its noise, and the entry that says so.

*Claim.* Of each number of a run that was charged, the ledger names its noise as paid for, or this run's entry pays for
it; and the account is charged for all but what an entry of its own names. No number is drawn anew without a charge.
*Why.* `price` states the loss of exactly those components that are not given, and `draw_release` draws noise for
exactly those; a plan is a value that anybody can edit, so what it says about its cost is not asked. What is given is
looked up in the ledger's own entries (`core/ledger/paid.py`), whoever chose it: an answer that is new to the account is
priced at the loss that its id states. A run of several releases pays for all of them before the first is drawn. A
later entry names the noise of a later release. It is made once, and only where what was drawn since that payment,
with what is still to come, costs no more than it. *When it would be false.* If a run were measured with other given
answers than it was charged with; if what is reserved served two runs. One address standing for two questions makes
wrong numbers, not less private ones. *Tested by* tests/core/release/test_charge.py, tests/core/release/
test_reserved.py, tests/answers/stored/test_reuse.py, tests/deep/answers/stored/test_equal_addresses.py,
tests/core/ledger/test_budget_attacks.py, tests/core/ledger/test_edited_answers.py.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from dpsql.core.ir.periods import Span, canonical
from dpsql.core.ledger.accountant import Accountant, cost
from dpsql.core.ledger.chain.acceptance import CUSTODIAN
from dpsql.core.ledger.ledger import Caps, Entry, EntryKind, Ledger, Receipt
from dpsql.core.ledger.losses.fixed_budgets import Fixed
from dpsql.core.ledger.losses.regions import Region, beyond, dearest, everywhere, of_days, pointwise, within
from dpsql.core.ledger.paid import draw_of, paid
from dpsql.core.ledger.released import StoredAnswer
from dpsql.core.noise.measurement import MeasuredRelease, conversion_delta_of
from dpsql.core.privacy_loss import NO_LOSS, PrivacyLoss, largest
from dpsql.core.release.draw_names import Ids, ids_of
from dpsql.core.release.noisy import GivenAnswers, wanted
from dpsql.core.release.planned import PlannedRelease

Losses = Mapping[str, Sequence[Region]]
"""Privacy unit → losses by period that add up."""


@dataclass(frozen=True, slots=True)
class Price:
    """What a run costs, by privacy unit and period; units that lose nothing are left out.

    drawn: for the noise that will be drawn, which counts in the total. whole: all that is charged to the account: that,
    and stored answers that it receives.
    """

    drawn: Mapping[str, Region]
    whole: Mapping[str, Region]

    @property
    def new(self) -> dict[str, PrivacyLoss]:
        """What the new noise costs, in the dearest period."""
        return {unit: dearest(region) for unit, region in self.drawn.items()}

    @property
    def in_account(self) -> dict[str, PrivacyLoss]:
        """What is charged to the account, in the dearest period."""
        return {unit: dearest(region) for unit, region in self.whole.items()}

    @property
    def days(self) -> dict[str, tuple[Span, ...]]:
        """Unit → the days that are charged, where not all are."""
        found = {u: canonical((s.first, s.last) for s in own if s.first is not None) for u, own in self.whole.items()}
        return {unit: days for unit, days in found.items() if days}

    @property
    def received(self) -> dict[str, PrivacyLoss]:
        """What received answers add to the price of the new noise, in the dearest period."""
        return {unit: dearest(region) for unit, region in self._received.items()}

    @property
    def _received(self) -> dict[str, Region]:
        found = {unit: beyond(region, self.drawn.get(unit, ())) for unit, region in self.whole.items()}
        return {unit: region for unit, region in found.items() if region}

    def charging(self, entry: Entry) -> Entry:
        """An entry that charges this price."""
        return replace(
            entry,
            charges=self.new,
            received=self.received,
            regions=_by_period(self.drawn),
            received_regions=_by_period(self._received),
        )

    def within(self, limit: Price) -> bool:
        """Whether nobody is charged more in any period, neither for new noise nor in all."""
        return all(within(region, limit.drawn.get(unit, ())) for unit, region in self.drawn.items()) and all(
            within(region, limit.whole.get(unit, ())) for unit, region in self.whole.items()
        )

    @property
    def is_nothing(self) -> bool:
        """Whether nothing is charged to anybody: numbers that are public, or that the account holds."""
        return not self.whole


def _by_period(regions: Mapping[str, Region]) -> dict[str, Region]:
    """Those that do not cost the same in every period."""
    return {unit: region for unit, region in regions.items() if region != everywhere(dearest(region))}


def price(
    releases: Sequence[PlannedRelease],
    given: Sequence[GivenAnswers],
    received: Collection[StoredAnswer],
    accountant: Accountant,
) -> Price:
    """The price of all that is not given, and of the given answers that the account receives.

    The ρ of both is composed and converted once, at the larger of their δ: any δ above 0 gives a true bound.
    """
    return _parts(releases, given, received).price(accountant)


@dataclass(frozen=True, slots=True)
class _Parts:
    """Privacy unit → what it loses, part by part: by new noise, and by all that is charged to the account.

    own, every: the δ at which the ρ of the new noise, and of all, is converted.
    """

    drawn: Losses
    both: Losses
    own: Fraction
    every: Fraction

    def price(self, accountant: Accountant) -> Price:
        new = _charged(accountant, self.drawn, self.own)
        whole = _charged(accountant, self.both, self.every)
        # Never less than the new noise alone.
        return Price(new, {unit: pointwise(largest, [region, new.get(unit, region)]) for unit, region in whole.items()})

    def with_parts(self, later: _Parts) -> _Parts:
        """Those of what follows, too."""
        drawn, both = _together(self.drawn, later.drawn), _together(self.both, later.both)
        return _Parts(drawn, both, max(self.own, later.own), max(self.every, later.every))


def _together(some: Losses, others: Losses) -> Losses:
    return {unit: [*some.get(unit, ()), *others.get(unit, ())] for unit in {**some, **others}}


def _parts(
    releases: Sequence[PlannedRelease], given: Sequence[GivenAnswers], received: Collection[StoredAnswer]
) -> _Parts:
    measured = [release.measured for release in releases]
    drawn, beside = _drawn(measured, given), _received(measured, given, received)
    both = _together(drawn, beside)
    own = conversion_delta_of(measured)
    return _Parts(drawn, both, own, max([own, *(answer.conversion for answer in received)]))


@dataclass(frozen=True, slots=True)
class ChargeRequest:
    """Who asks for what, as the ledger's entry says it.

    caps: in force for this account. charging: told the id of the entry before it is reserved. data: what the data are
    now, of letters and digits, for the names of all draws; empty: nobody can tell.
    """

    analyst: str
    accountant: Accountant
    caps: Caps
    plan_hash: str
    policy_hash: str
    statement: str = ""
    charging: Callable[[str], object] | None = None
    data: str = ""


_Account = tuple[Ledger, str, Accountant]
"""A ledger, the name of an account in it, and how it counts."""


class Reserved:
    """What a charge pays for beside the noise that it names: releases that are made once that noise is known.

    It serves one run, once; `charge` makes it.
    """

    __slots__ = ("_account", "_limit", "_parts", "_receipt", "_unused")

    def __init__(self, account: _Account, receipt: Receipt | None, limit: Price, parts: _Parts) -> None:
        """limit: what was charged. parts: what of it is spent by noise that has a name."""
        self._account, self._receipt, self._limit, self._parts = account, receipt, limit, parts
        self._unused = [True]

    def taken(self, account: _Account) -> tuple[Receipt | None, Price, _Parts]:
        """The receipt, what it charged, and what is spent of that. Raises AssertionError the second time."""
        if account[0] is not self._account[0] or account[1:] != self._account[1:]:
            raise AssertionError("a reservation of another account")
        try:
            self._unused.pop()  # atomic: of two threads one gets it
        except IndexError:
            raise AssertionError("what was reserved is used once") from None
        return self._receipt, self._limit, self._parts


@dataclass(frozen=True, slots=True)
class Charged:
    """What may be drawn and shown. receipt: None where nothing was to be charged. given: stored answers, all paid for.

    ids: of the noise that will be drawn, as in the ledger's entry. reserved: for what follows, if anything does.
    """

    receipt: Receipt | None
    given: tuple[GivenAnswers, ...]
    ids: Ids
    reserved: Reserved | None = None

    @classmethod
    def nothing(cls, given: tuple[GivenAnswers, ...]) -> Charged:
        """Where no noise is to be drawn, and there is no account."""
        return cls(None, given, {})

    @property
    def spent(self) -> PrivacyLoss:
        """What was counted in the account, the largest over all units."""
        if self.receipt is None:
            return NO_LOSS
        entry = self.receipt.entry
        return largest(entry.in_account(unit) for unit in entry.units)


def charge(
    ledger: Ledger,
    request: ChargeRequest,
    releases: Sequence[PlannedRelease],
    given: Sequence[GivenAnswers],
    later: Sequence[PlannedRelease] = (),
) -> Charged:
    """Charge a run durably, before anything of it is asked. given: by release, what is not to be drawn.

    later: releases of which only the price is known yet, because they are made of what is drawn first: they are charged
    with it, and named by `charge_reserved`.
    Raises BudgetExceeded, CannotOpen; AssertionError if something given is not paid for.
    """
    answers = paid(ledger, request.analyst, [a for g in given for a in g.every])
    parts = _parts(releases, given, answers.received)
    cost_of = parts.with_parts(_all_new(later)).price(request.accountant)
    ids, account = ids_of(releases, given, request.data), (ledger, request.analyst, request.accountant)
    if cost_of.is_nothing:
        return Charged(None, tuple(given), ids, Reserved(account, None, cost_of, parts) if later else None)
    entry = cost_of.charging(
        Entry(
            uuid.uuid4().hex,
            request.analyst,
            {},
            request.plan_hash,
            request.policy_hash,
            request.statement,
            answers=(*ids.values(), *(answer.id for answer in answers.received)),
        )
    )
    if request.charging is not None:
        request.charging(entry.id)
    receipt = ledger.reserve(entry, request.caps)
    return Charged(receipt, tuple(given), ids, Reserved(account, receipt, cost_of, parts) if later else None)


def charge_reserved(
    ledger: Ledger,
    request: ChargeRequest,
    charged: Charged,
    releases: Sequence[PlannedRelease],
    later: Sequence[PlannedRelease] = (),
) -> Charged:
    """What an earlier charge has reserved, for releases that are known now: an entry that names their noise, at no
    further charge. Nothing of them is given: the price of a run must not fall by what it has drawn.

    later: what follows, as of `charge`. Raises CannotOpen; AssertionError if they cost more than was reserved, or that
    was used before: nothing of them may be drawn then.
    """
    if charged.reserved is None:
        raise AssertionError("nothing was reserved")
    account = ledger, request.analyst, request.accountant
    receipt, limit, spent = charged.reserved.taken(account)
    parts = spent.with_parts(_all_new(releases))
    if not parts.with_parts(_all_new(later)).price(request.accountant).within(limit):
        raise AssertionError("releases that cost more than was reserved for them")
    given = tuple(GivenAnswers() for _ in releases)
    ids = ids_of(releases, given, request.data)
    rest = Reserved(account, receipt, limit, parts) if later else None
    if not ids:
        return Charged(receipt, given, ids, rest)
    entry = Entry(
        uuid.uuid4().hex,
        request.analyst,
        {},
        request.plan_hash,
        request.policy_hash,
        request.statement,
        answers=tuple(ids.values()),
    )
    return Charged(ledger.reserve(entry, request.caps), given, ids, rest)


def define(ledger: Ledger, request: ChargeRequest, answers: Sequence[StoredAnswer]) -> Receipt:
    """An entry that says what the statement of the request stands for, at no charge: stored answers.

    *Claim.* The account holds nothing through it that it did not hold. *Why.* The ledger's own entries are asked. *When
    it would be false.* If `paid` took an answer for held that no entry of the account names. *Tested by*
    tests/core/release/test_define.py. Raises CannotOpen; AssertionError: the account does not hold one of them.
    """
    if paid(ledger, request.analyst, answers).received:
        raise AssertionError("an account defines a summary of what it does not hold")
    names = tuple(answer.id for answer in answers)
    return ledger.reserve(
        Entry(
            uuid.uuid4().hex, request.analyst, {}, "", request.policy_hash, request.statement, answers=names,
            kind=EntryKind.DEFINITION,
        ),
        request.caps,
    )  # fmt: skip


def change_budget(ledger: Ledger, policy_hash: str, statement: str, fixing: Callable[[Fixed], Fixed]) -> Receipt:
    """An entry that fixes budgets anew, at no charge. fixing: as of `Ledger.fix`. Raises CannotOpen."""
    return ledger.fix(Entry(uuid.uuid4().hex, CUSTODIAN, {}, "", policy_hash, statement, kind=EntryKind.BUDGET), fixing)


def _all_new(releases: Sequence[PlannedRelease]) -> _Parts:
    return _parts(releases, [GivenAnswers() for _ in releases], ())


def _drawn(releases: Sequence[MeasuredRelease], given: Sequence[GivenAnswers]) -> Losses:
    parts: dict[str, list[Region]] = {}
    for measured, own in zip(releases, given, strict=True):
        for unit in measured.contributions:
            days, losses = measured.days(unit), measured.losses(unit, wanted(measured, own))
            parts.setdefault(unit, []).extend(of_days(days, loss) for loss in losses)
    return parts


def _received(
    releases: Sequence[MeasuredRelease], given: Sequence[GivenAnswers], received: Collection[StoredAnswer]
) -> Losses:
    """Of answers that are new to the account, all that they cost once. Those of one parallel group that were drawn at
    one time, from the same rows, cost the largest of their losses together again.
    """
    parts: dict[str, list[Region]] = {}
    new = {answer.id for answer in received}
    for measured, own in zip(releases, given, strict=True):
        for parallel in measured.parallel_groups:
            drawn: dict[str, list[StoredAnswer]] = {}
            for answer in (own.answers[i] for i in parallel if i in own.answers):
                if answer.id in new:  # also if it serves several releases
                    new.remove(answer.id)
                    drawn.setdefault(draw_of(answer.id), []).append(answer)
            for together in drawn.values():
                for unit in dict.fromkeys(unit for answer in together for unit in answer.losses):
                    losses = [answer.region(unit) for answer in together if unit in answer.losses]
                    parts.setdefault(unit, []).append(pointwise(largest, losses))
    for answer in received:
        if answer.id in new:  # numbers that others are computed of: each was drawn from all rows
            new.remove(answer.id)
            for unit in answer.losses:
                parts.setdefault(unit, []).append(answer.region(unit))
    return parts


def _charged(accountant: Accountant, parts: Losses, conversion: Fraction) -> dict[str, Region]:
    """In the accountant's terms, on the ledger's grid, period by period; units that lose nothing are left out."""

    def costs(losses: Sequence[PrivacyLoss]) -> PrivacyLoss:
        own = [loss for loss in losses if loss is not NO_LOSS]  # of many parts each day has few
        return cost(accountant, own, conversion).on_grid() if own else NO_LOSS

    found = {unit: pointwise(costs, regions) for unit, regions in parts.items()}
    return {unit: region for unit, region in found.items() if region}
