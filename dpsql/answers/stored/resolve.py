"""What of a plan is given from stored answers, and what the rest and they cost: one function, for prices and for runs.

*Claim.* What is printed as the price of a run is what the run charges, unless something was bought or spent in between;
by default it is at most the price of what was asked. Neither a price nor a refusal depends on a number that the account
has not got. *Why.* A price is `resolve`, and so is a run. The run may go further, to numbers above releases that it
receives itself, only if what was printed would have been admitted, and the account is charged exactly that. *When it
would be false.* If another process bought or spent between the two; the ledger then decides by what holds when it
charges. *Tested by* tests/deep/answers/stored/test_ceiling.py, tests/answers/stored/test_ceiling.py.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from dpsql.answers.stored.analyst_account import AnalystAccount
from dpsql.answers.stored.choosing import ChosenAnswers, choose
from dpsql.answers.stored.from_summaries import with_summaries
from dpsql.answers.stored.store.store import AnswerStore
from dpsql.answers.stored.stored_notes import notes_of_given
from dpsql.core.ledger.losses.regions import Region, within
from dpsql.core.ledger.released import StoredAnswer
from dpsql.core.noise.mechanisms import made_by
from dpsql.core.privacy_loss import largest
from dpsql.core.release.charge import Price, price
from dpsql.core.release.noisy import GivenAnswers, assembled, wanted
from dpsql.diagnostics.errors import BudgetExceeded
from dpsql.planner.plan import Charge, Plan
from dpsql.planner.searches.found import found_by


@dataclass(frozen=True, slots=True)
class Resolution:
    """What a run of a plan is given, release by release, what it is charged, and what its reader is told about that.

    Everything that is not given is drawn. received: those of the given answers that are new to the account, each once.
    printed: the resolution whose price was told, where this one goes further at the same price.
    """

    given: tuple[GivenAnswers, ...]
    received: tuple[StoredAnswer, ...]
    price: Price
    notes: tuple[str, ...]
    printed: Resolution | None = field(default=None, compare=False)

    @property
    def charge(self) -> Charge:
        """As EXPLAIN and `cost` tell it."""
        return Charge(self.price.in_account, self.notes)

    def draws(self, plan: Plan) -> bool:
        """Whether any noise is to be drawn."""
        drawn = (wanted(r.measured, given) for r, given in zip(plan.first.releases, self.given, strict=True))
        return any(drawn) or bool(plan.later)

    def is_held(self, plan: Plan) -> bool:
        """Whether the account has all that is drawn first: nothing is drawn for it, and nothing charged."""
        return not self.received and not self.draws(plan.first)


def resolve(plan: Plan, account: AnalystAccount, *, dearer: bool | None = None) -> Resolution:
    """What a run is given and charged now. dearer: in place of what the plan allows. Raises CannotOpen."""
    return _resolved(plan, account, _ReadOnce(account.store), dearer=dearer)


def all_new(plan: Plan, account: AnalystAccount) -> Resolution:
    """The resolution of a run that is given nothing."""
    return _priced(plan, account, ChosenAnswers.nothing(plan.first))


def nothing_drawn(plan: Plan) -> Resolution:
    """The resolution of a run that needs no noise."""
    return Resolution(ChosenAnswers.nothing(plan).given, (), Price({}, {}), ())


def names_held(plan: Plan, account: AnalystAccount) -> set[str]:
    """What a run that draws holds until its answers are stored: who asks for the same groups of the same rows waits."""
    addresses = account.addresses(plan.first)
    return {addresses.of(at).name for at, r in enumerate(plan.first.releases) if wanted(r.measured, GivenAnswers())}


def resolve_to_run(plan: Plan, account: AnalystAccount) -> Resolution:
    """As `resolve`, and beyond it where that is charged the same: what stands above numbers that the run receives.

    The caller holds the names (`names_held`). Raises CannotOpen.
    """
    store = _ReadOnce(account.store)
    printed = _resolved(plan, account, store)
    if not printed.received or not account.addresses(plan.first).nested:
        return printed
    further = _resolved(plan, account, store, to_run=True)
    if further == printed or not _is_charged_the_same(account, further, printed):
        return printed
    return replace(further, printed=printed)


def resolve_again(plan: Plan, account: AnalystAccount, refused: Resolution, refusal: BudgetExceeded) -> Resolution:
    """What a run is given after its charge was refused.

    It saw what was left to the account, which another process may have spent meanwhile: then there is another one.
    Raises the refusal if there is none, CannotOpen.
    """
    now = resolve(plan, account)
    if now not in (refused, refused.printed):
        return now
    _name_dearer(refusal, plan, account)
    raise refusal


def _resolved(
    plan: Plan, account: AnalystAccount, store: _ReadOnce, *, dearer: bool | None = None, to_run: bool = False
) -> Resolution:
    dearer = plan.bid.allow_dearer if dearer is None else dearer
    addresses, paid = account.addresses(plan.first), account.ledger.received
    while True:
        held, fits = paid(account.analyst), _ceiling(plan, account, dearer)
        searched = plan.searches is not None
        choice = choose(
            plan.first, addresses, store, held, paid, fits, dearer=dearer, preview=not to_run, any_own=searched
        )
        choice, notes = with_summaries(
            plan, account, _useful(plan, choice, held), held, lambda c: _price(plan, account, c), fits
        )
        found = _priced(plan, account, choice, notes)
        # He may have bought something since, in another process: he does not receive that, he has it.
        if found.is_held(plan) or paid(account.analyst) == held:
            return found
        store.forget()


def _useful(plan: Plan, choice: ChosenAnswers, held: Collection[str]) -> ChosenAnswers:
    """Without octaves that the account holds and that found nothing: these are drawn anew.

    So are those in which nothing was seen, so that a declared cap stands, if the new ones are finer.
    """
    if plan.searches is None:
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


def _priced(plan: Plan, account: AnalystAccount, choice: ChosenAnswers, notes: tuple[str, ...] = ()) -> Resolution:
    cost = _price(plan, account, choice)
    told = (*notes_of_given(plan.first, choice, cost.received), *notes)
    return Resolution(choice.given, choice.received, cost, told)


def _price(plan: Plan, account: AnalystAccount, choice: ChosenAnswers) -> Price:
    releases, given = (*plan.first.releases, *plan.later), (*choice.given, *(GivenAnswers() for _ in plan.later))
    return price(releases, given, choice.received, account.policy.privacy.accountant)


def _ceiling(plan: Plan, account: AnalystAccount, dearer: bool) -> Callable[[ChosenAnswers], bool]:
    """Whether all that the account is charged for a choice is within what was asked, unless it allows dearer answers,
    and within its own limits.
    """

    @cache
    def asked() -> Mapping[str, Region]:
        return _price(plan, account, ChosenAnswers.nothing(plan.first)).drawn

    left = cache(account.left)

    def fits(choice: ChosenAnswers) -> bool:
        charged = _price(plan, account, choice).whole.items()
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
    found = resolve(plan, account, dearer=True).price
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

    def forget(self) -> None:
        """Read everything again."""
        self._read.clear()
