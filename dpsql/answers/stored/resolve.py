"""What of a plan is given from stored answers, and what the rest and they cost: one function, for prices and for runs.

*Claim.* What is printed as the price of a run is what the run charges, unless something was bought or spent in between;
by default it is at most the price of what was asked. Neither a price nor a refusal depends on a number that the account
has not got. *Why.* A price is `resolve`, and so is a run. The run may go further, to numbers above releases that it
receives itself, only if what was printed would have been admitted, and the account is charged exactly that. *When it
would be false.* If another process bought or spent between the two; the ledger then decides by what holds when it
charges. *Tested by* tests/deep/answers/stored/test_ceiling.py, tests/answers/stored/test_ceiling.py.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Protocol

from dpsql.answers.stored.analyst_account import AnalystAccount
from dpsql.answers.stored.choosing import ChosenAnswers, choose
from dpsql.answers.stored.from_summaries import with_summaries
from dpsql.answers.stored.refining import Refinement, refined
from dpsql.answers.stored.store.store import AnswerStore
from dpsql.answers.stored.stored_days import DaysGiven, with_stored_days
from dpsql.core.ir.recipes import Output
from dpsql.core.ledger.losses.regions import Region, within
from dpsql.core.ledger.released import StoredAnswer
from dpsql.core.noise.mechanisms import made_by
from dpsql.core.privacy_loss import NO_LOSS, PrivacyLoss, largest
from dpsql.core.release.charge import Price, price
from dpsql.core.release.noisy import GivenAnswers, assembled, wanted
from dpsql.core.release.planned import PlannedRelease
from dpsql.diagnostics.errors import BudgetExceeded
from dpsql.diagnostics.note import Note, Rank
from dpsql.planner.explain.components import component_name
from dpsql.planner.plan import Charge, Plan
from dpsql.planner.searches.found import found_by


@dataclass(frozen=True, slots=True)
class Resolution:
    """What a run of a plan is given, release by release, what it is charged, and what its reader is told about that.

    account: None where no number of anybody is needed. Everything that is not given is drawn. received: those of the
    given answers that are new to the account, each once. printed: the resolution whose price was told, where this one
    goes further at the same price. refinement: what is drawn in place of what was asked for.
    """

    plan: Plan = field(compare=False)
    account: AnalystAccount | None = field(compare=False)
    given: tuple[GivenAnswers, ...]
    received: tuple[StoredAnswer, ...]
    price: Price
    notes: tuple[Note, ...]
    printed: Resolution | None = field(default=None, compare=False)
    refinement: Refinement | DaysGiven | None = field(default=None, compare=False, repr=False)
    _store: _ReadOnce | None = field(default=None, compare=False, repr=False)

    @property
    def charge(self) -> Charge:
        """As EXPLAIN and `cost` tell it."""
        return Charge(self.price.in_account, self.notes, self.price.new, self.price.days)

    @property
    def to_draw(self) -> Plan:
        """The plan with the noise that is drawn."""
        return self.plan if self.refinement is None else self.refinement.plan

    def drawn_for(self, planned: PlannedRelease, place: int) -> PlannedRelease:
        """A release of the plan with the noise that is drawn."""
        return planned if self.refinement is None else self.refinement.plan.releases[place]

    @property
    def draws(self) -> bool:
        """Whether any noise is to be drawn."""
        return self._draws_first or bool(self.plan.later)

    @property
    def is_held(self) -> bool:
        """Whether the account has all that is drawn first: nothing is drawn for it, and nothing charged."""
        return not self.received and not self._draws_first

    @property
    def _draws_first(self) -> bool:
        return any(wanted(r.measured, given) for r, given in zip(self.plan.first.releases, self.given, strict=True))

    @property
    def reads_tables(self) -> bool:
        """Whether a run asks the engine for anything: answers that are held wait for nobody's query. If so of one that
        draws nothing, its answer depends on public rows, which may change.
        """
        plan = self.plan
        if plan.reads_nothing:
            return False
        return self.draws or bool(plan.basis.public or plan.post.public_tables) or not plan.post.steps

    def gives_the_same(self, other: Resolution) -> bool:
        """Whether the answers are equal, if no table is read and nothing drawn for either: the spelling of the query is
        in neither.
        """
        own, theirs = ((p.hash, p.notes, p.coverage, p.found) for p in (self.plan, other.plan))
        return own == theirs and self == other

    def again(self) -> Resolution:
        """What the run is given now that it holds the names of the plan; the same if nothing of it was stored, and
        nothing is: then it is given nothing, whatever was bought and spent meanwhile. Raises CannotOpen.
        """
        store, account = self._store, self.account
        if store is not None and store.is_empty() and self.refinement is None and self._is_given_nothing:
            return self
        return resolve(self.plan, account)

    @property
    def _is_given_nothing(self) -> bool:
        return self.given == ChosenAnswers.nothing(self.plan.first).given

    def to_run(self) -> Resolution:
        """Also what stands above numbers that the run receives, where it is charged the same for that.

        The caller holds the names of the plan. Raises CannotOpen.
        """
        account, store = self.account, self._store
        if account is None or store is None or not self.received or not account.addresses(self.plan.first).nested:
            return self
        further = _resolved(self.plan, account, store, to_run=True)
        if further == self or not _is_charged_the_same(account, further, self):
            return self
        return replace(further, printed=self)

    def after(self, refusal: BudgetExceeded) -> Resolution:
        """What a run is given after its charge was refused.

        It saw what was left to the account, which another process may have spent meanwhile: then there is another one.
        Raises the refusal if there is none, CannotOpen.
        """
        assert self.account is not None
        now = resolve(self.plan, self.account)
        if now not in (self, self.printed):
            return now
        _name_dearer(refusal, self.plan, self.account)
        raise refusal


def resolve(plan: Plan, account: AnalystAccount | None, *, fresh: bool = False) -> Resolution:
    """What a run is given and charged now. account: None for a plan that needs no noise. fresh: it is given nothing.

    Raises CannotOpen.
    """
    if account is None:
        return Resolution(plan, None, ChosenAnswers.nothing(plan).given, (), Price({}, {}), ())
    if fresh:
        return _priced(plan, account, ChosenAnswers.nothing(plan.first))
    return _resolved(plan, account, _ReadOnce(account.store))


def _resolved(
    plan: Plan, account: AnalystAccount, store: _ReadOnce, *, dearer: bool | None = None, to_run: bool = False
) -> Resolution:
    """dearer: in place of what the plan allows."""
    dearer = plan.bid.allow_dearer if dearer is None else dearer
    addresses, paid = account.addresses(plan.first), account.ledger.received
    while True:
        held, fits = paid(account.analyst), _ceiling(plan, account, dearer)
        searched = plan.searches is not None and plan.keys_first is None
        choice = choose(
            plan.first, addresses, store, held, paid, fits, dearer=dearer, preview=not to_run, any_own=searched
        )
        choice, notes = with_summaries(
            plan, account, _useful(plan, choice, held), held, lambda c: _price(plan, account, c), fits
        )
        refinement = refined(plan, account, store, choice, held) or with_stored_days(
            plan, account, store, choice, held, paid, fits, dearer=dearer
        )
        found = replace(_priced(plan, account, choice, notes, refinement), _store=store)
        # He may have bought something since, in another process: he does not receive that, he has it.
        if found.is_held or paid(account.analyst) == held:
            return found
        store.forget()


def _useful(plan: Plan, choice: ChosenAnswers, held: Collection[str]) -> ChosenAnswers:
    """Without octaves that the account holds and that found nothing: these are drawn anew.

    So are those in which nothing was seen, so that a declared cap stands, if the new ones are finer.
    """
    if plan.searches is None or plan.keys_first is not None:
        return choice
    given = list(choice.given)
    for limit in plan.searches.limits:
        planned, own = plan.first.releases[limit.release], choice.given[limit.release]
        if wanted(planned.measured, own) or not all(a.id in held for a in own.answers.values()):
            continue
        found = found_by(limit, assembled(planned, own), plan.searches.cells)
        (new,), (made,) = planned.measured.measurements, own.answers.values()
        finer = not made_by(made.mechanism, made.parameter).as_accurate(new.mechanism)
        if found.limit is None or (finer and not found.octaves.seen):
            given[limit.release] = GivenAnswers()
    return replace(choice, given=tuple(given))


def _priced(
    plan: Plan,
    account: AnalystAccount,
    choice: ChosenAnswers,
    notes: tuple[Note, ...] = (),
    refinement: Refinement | DaysGiven | None = None,
) -> Resolution:
    asked = cost = _price(plan, account, choice)
    if refinement is not None:
        choice = refinement.choice
        cost = _price(refinement.plan, account, choice)
        told = (largest(price.in_account.values()) for price in (cost, asked))
        notes = (*notes, *refinement.told(*told))
    told_of = (*notes_of_given(plan.first, choice, cost.received), *notes)
    return Resolution(plan, account, choice.given, choice.received, cost, told_of, refinement=refinement)


def _price(plan: Plan, account: AnalystAccount, choice: ChosenAnswers) -> Price:
    releases, given = (*plan.first.releases, *plan.later), (*choice.given, *(GivenAnswers() for _ in plan.later))
    return price(releases, given, choice.received, account.policy.privacy.accountant)


class Fits(Protocol):
    """Whether an account may be charged for a choice. drawn: the plan with the noise that is drawn, if another one."""

    def __call__(self, choice: ChosenAnswers, drawn: Plan | None = None) -> bool:
        """See the class."""
        ...


def _ceiling(plan: Plan, account: AnalystAccount, dearer: bool) -> Fits:
    """Whether all that the account is charged for a choice is within what was asked, unless it allows dearer answers,
    and within its own limits.
    """

    @cache
    def asked() -> Mapping[str, Region]:
        return _price(plan, account, ChosenAnswers.nothing(plan.first)).drawn

    left = cache(account.left)

    def fits(choice: ChosenAnswers, drawn: Plan | None = None) -> bool:
        charged = _price(drawn or plan, account, choice).whole.items()
        if not dearer and not all(within(region, asked().get(unit, ())) for unit, region in charged):
            return False
        return all(
            span.loss.within(limit)
            for unit, region in charged
            for span in region
            for limit in left(unit, (span.first, span.last))
        )

    return fits


def _is_charged_the_same(account: AnalystAccount, further: Resolution, printed: Resolution) -> bool:
    """Whether a run may be given `further`, which depends on numbers that the account has not yet.

    Only if `printed`, which does not, would be admitted, so that a refusal tells nothing about those numbers; and only
    if the account is charged the same for both, and the total no more.
    """
    if further.price.is_nothing or printed.price.is_nothing:
        return further.price.is_nothing and printed.price.is_nothing
    return (
        account.admits(printed.price)
        and further.price.whole == printed.price.whole
        and all(within(region, printed.price.drawn.get(unit, ())) for unit, region in further.price.drawn.items())
    )


def _name_dearer(refusal: BudgetExceeded, plan: Plan, account: AnalystAccount) -> None:
    """If new noise does not fit into the total, and stored answers that cost this account more than was asked would do,
    the refusal says so.
    """
    if plan.bid.allow_dearer or all(d.code != "DP403" for d in refusal.diagnostics):
        return
    found = _resolved(plan, account, _ReadOnce(account.store), dearer=True).price
    if found.is_nothing or not account.admits(found):
        return
    way = "run(allow_dearer=True)  or  --allow-dearer"
    help = f"stored answers would do, for {largest(found.in_account.values())} of this account:  {way}"
    refusal.diagnostics = tuple(
        replace(d, help=(help, *d.help)) if d.code == "DP403" else d for d in refusal.diagnostics
    )


class _ReadOnce:
    """A store of which each address is read once, so that two choices see the same answers."""

    def __init__(self, store: AnswerStore) -> None:
        self._store = store
        self._read: dict[str, Sequence[StoredAnswer]] = {}

    def find(self, addresses: Collection[str]) -> Mapping[str, Sequence[StoredAnswer]]:
        """As `AnswerStore.find`. Raises CannotOpen (DP407)."""
        new = [address for address in dict.fromkeys(addresses) if address not in self._read]
        if new:
            found = self._store.find(new)
            self._read |= {address: found.get(address, ()) for address in new}
        return {address: self._read[address] for address in addresses if self._read[address]}

    def is_empty(self) -> bool:
        """Whether nothing was found so far, and nothing is stored there now. Raises CannotOpen (DP407)."""
        return not any(self._read.values()) and not (self._read and self._store.find(self._read))

    def forget(self) -> None:
        """Read everything again."""
        self._read.clear()


def notes_of_given(plan: Plan, choice: ChosenAnswers, cost: Mapping[str, PrivacyLoss]) -> tuple[Note, ...]:
    """`n, mean answered from 2026-11-20`: one note for each day that answers are from.

    Where other numbers of the query are drawn or paid for, the last of these notes says that they cost nothing; else
    the price of the answer says so. cost: what the analyst pays for those that he gets for the first time, in all.
    """
    new = {a.id for a in choice.received}
    old: dict[str, list[str]] = {}
    first: dict[str, list[str]] = {}
    for place, given in enumerate(choice.given):
        for i, name in _names(plan, place, choice):
            answer = given.answers[i]
            days = first if answer.id in new else old
            names = days.setdefault(answer.made_at.date().isoformat(), [])
            if name not in names:
                names.append(name)
    notes = [f"{', '.join(names)} answered from {day}" for day, names in sorted(old.items())]
    drawn = any(wanted(plan.releases[at].measured, given) for at, given in enumerate(choice.given))
    if notes and (first or drawn):
        notes[-1] += ", cost 0" if len(notes) == 1 else ", all of these cost 0"
    price = largest(cost.values()) if cost else NO_LOSS
    for day, names in sorted(first.items()):
        notes.append(f"{', '.join(names)} answered from {day}, new to this account")
    if first:
        notes.append(f"stored answers that are new to this account cost it {price}, and the total budget nothing")
    return tuple(Note(told, Rank.SOURCE) for told in notes)


def _names(plan: Plan, place: int, choice: ChosenAnswers) -> list[tuple[int, str]]:
    """(component, what to call it) of what is given: the columns that are given whole, else the component."""
    measured, given = plan.releases[place].measured, choice.given[place]
    found: list[tuple[int, str]] = []
    shown: set[int] = set()
    for at, output in enumerate(measured.node.outputs):
        parts = [i for i in output.recipe.components if i in given.answers]
        if parts and _whole(plan, place, at, choice):
            found += [(i, _column(plan, place, at, output, choice)) for i in parts]
            shown.update(parts)
    for i in given.answers:
        if i not in shown:
            is_key = i == measured.node.threshold and not any(i in o.recipe.components for o in measured.node.outputs)
            found.append((i, "group keys" if is_key else component_name(measured.node.components[i], measured)))
    return found


def _whole(plan: Plan, place: int, at: int, choice: ChosenAnswers) -> bool:
    """Whether an output of a release needs no new noise."""
    measured = plan.releases[place].measured
    needed = measured.node.outputs[at].recipe.components
    return not set(wanted(measured, choice.given[place])) & set(needed)


def _column(plan: Plan, place: int, at: int, output: Output, choice: ChosenAnswers) -> str:
    """The name of the column that shows an output, or the output's own.

    Of numbers one below the other (UNION ALL, ROLLUP) some may be given, others not: then it is a part of the column.
    """
    for branch in plan.post.branches:
        for number, (column, source) in enumerate(zip(plan.columns, branch, strict=True)):
            if source == (place, at):
                others = [b[number] for b in plan.post.branches]
                whole = all(source is None or _whole(plan, *source, choice) for source in others)
                return column.name if whole else f"part of {column.name}"
    return output.label or output.column.name
