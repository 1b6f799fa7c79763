"""Making, pricing and forgetting a summary.

Its marginals are ordinary queries of this session: each is planned, priced, charged, drawn and stored as any other; how
ε is divided between them follows from the statement and the policy alone. The last step names them: an entry of the
ledger that charges nobody. Whoever is stopped before has paid for stored answers, and goes on from there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from dpsql.answers.stored.address import Addresses
from dpsql.answers.stored.analyst_account import AnalystAccount
from dpsql.answers.stored.ledger_summaries import Definition, definitions
from dpsql.core.ledger.ledger import Entry
from dpsql.core.ledger.privacy_filter import require_fits
from dpsql.core.ledger.released import StoredAnswer
from dpsql.core.noise.mechanisms import made_by
from dpsql.core.privacy_loss import PrivacyLoss, largest, remaining, show_spent
from dpsql.core.release.charge import ChargeRequest, define, price
from dpsql.diagnostics.diagnostic import Diagnostic, Source
from dpsql.diagnostics.errors import CannotOpen, Rejected, reject
from dpsql.diagnostics.note import NOTHING_RAN, Note, Rank
from dpsql.frontend.text.query_comments import settings_before
from dpsql.frontend.text.summary_statements import CreateSummary, DropSummary
from dpsql.planner.batch.workload import Marginal
from dpsql.planner.plan import Charge, Plan
from dpsql.planner.settings.privacy_clause import with_said
from dpsql.planner.summaries.design import SummaryDesign, require_additive, shown_in
from dpsql.service.accounts.remaining_budgets import total, total_of_new
from dpsql.service.planning.planning import WrittenQuery
from dpsql.service.privacy_settings import Amount, settled

if TYPE_CHECKING:
    from dpsql.service.session import Session


@dataclass(frozen=True, slots=True)
class SummaryMade:
    """A summary that was measured. cost: of all of it. spent: what was charged now; what was stored before is free."""

    name: str
    cost: PrivacyLoss
    spent: PrivacyLoss
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class KnownSummary:
    """A summary that a ledger knows.

    held: whether this account has all of it; else `receipt` is what its first answer is charged. state: "" if it is
    used; else why not. made: when it was measured; None if it is not used. statement: what makes it.
    """

    name: str
    table: str
    columns: tuple[str, ...]
    k: int
    analyst: str
    made: date | None
    held: bool
    receipt: PrivacyLoss
    state: str
    statement: str


class SummaryQuery:
    """A summary to look at and to make. Everything but `run` spends nothing.

    >>> con = dpsql.connect("clinic.yaml")
    >>> summary = con.summary("wards", "patients", ["region", "age"])
    >>> summary.cost(epsilon=0.5)
    PrivacyLoss(epsilon=0.5)
    >>> made = summary.run(epsilon=0.5)
    >>> con.sql("SELECT region, COUNT(*) AS n FROM patients GROUP BY region").run(epsilon=0.05).spent
    PrivacyLoss()
    """

    def __init__(self, session: Session, statement: CreateSummary, sql: str) -> None:
        """sql: as it was written, for refusals."""
        self._session, self.statement, self._sql = session, statement, sql

    @property
    def design(self) -> SummaryDesign:
        """What is measured. Raises Rejected."""
        try:
            return self._session.service.summaries.design(self.statement)
        except Rejected as refusal:
            raise shown_in(refusal, self._sql) from None

    def _with_amounts(self, epsilon: Amount | None, rho: Amount | None) -> SummaryQuery:
        """With the amount that is asked for, as the definition will say it. Raises Rejected DP401."""
        session, asked = self._session, dict(self.statement.amounts)
        source = Source(self._sql)
        said = settings_before(source)
        if any(each.name in ("epsilon", "rho") for each in said):
            epsilon = rho = None
        given = {"epsilon": epsilon, "rho": rho} if epsilon is not None or rho is not None else asked
        read = {what: text.strip("'") if isinstance(text, str) else text for what, text in given.items()}
        settings = settled(
            {"epsilon": read.get("epsilon"), "rho": read.get("rho")}, with_said(session.settings, said, source)
        )
        if settings.rho is not None:
            amounts: tuple[tuple[str, str], ...] = (("rho", _written(settings.rho)),)
        else:
            whole = settings.epsilon or session.policy.defaults.epsilon
            if whole is None:
                raise reject(
                    "DP401", "no epsilon was given, and the policy has no default",
                    help=["run(epsilon=0.5)", "WITH (epsilon = 0.5)"],
                )  # fmt: skip
            amounts = (("epsilon", _written(whole)),)
        return SummaryQuery(session, replace(self.statement, amounts=amounts), self._sql)

    def _plans(self, design: SummaryDesign, only: int | None) -> dict[Marginal, Plan]:
        session = self._session
        ((what, amount),) = self.statement.amounts
        settings = replace(session.settings, max_error={}, coverage=False, search=False, weights={})
        found: dict[Marginal, Plan] = {}
        for place, (marginal, share) in enumerate(design.shares.items()):
            if only not in (None, place):
                continue
            whole = Fraction(amount.strip("'"))
            if design.gaussian:
                part = (whole if what == "rho" else whole**2 / 2) * share
                asked = replace(settings, epsilon=None, rho=part, unlisted=True)
            elif what == "rho":
                raise reject("DP401", "only a zCDP ledger counts in ρ", help=["run(epsilon=0.5)"])
            else:
                asked = replace(settings, epsilon=whole * share, rho=None, unlisted=True)
            plan = session.planned_with(WrittenQuery(design.sql(marginal)), asked)
            require_additive(plan)
            found[marginal] = plan
        return found

    # --- looking and running -----------------------------------------------------------------------------------------

    def cost(self, epsilon: Amount | None = None, *, rho: Amount | None = None) -> PrivacyLoss:
        """What making it charges now: stored marginals are free. Raises Rejected, CannotOpen."""
        return largest(total(self.begun(epsilon, rho).charges).values())

    def explain(self, epsilon: Amount | None = None, *, rho: Amount | None = None) -> str:
        """What is measured, at which share, with the spread of each noise. Raises Rejected, CannotOpen."""
        begun = self.begun(epsilon, rho)
        lines = [begun.statement.sql, "", "share   cells  σ of a cell  measured"]
        for marginal, share in begun.design.shares.items():
            (m,) = begun.plans[marginal].releases[0].measured.measurements
            cells = math.prod(begun.design.sizes[place] for place in marginal)
            spread = math.sqrt(m.mechanism.variance()) * float(m.unit)
            lines.append(f"{float(share):.3f} {cells:>7,} {spread:>12.1f}  {begun.design.name(marginal)}")
        return "\n".join([*lines, "", f"cost: {largest(total(begun.charges).values())}"])

    def run(self, epsilon: Amount | None = None, *, rho: Amount | None = None) -> SummaryMade:
        """Measure every marginal that is not stored yet, and name them.

        Raises Rejected (also: the name is taken by another summary), BudgetExceeded (nothing ran), EngineError,
        CannotOpen: what was charged stays charged, what was drawn is stored, and the same statement goes on from there.
        """
        begun = self.begun(epsilon, rho)
        begun.require_room()
        spent = PrivacyLoss()
        for plan in begun.plans.values():
            spent += self._session.run(plan).spent
        return SummaryMade(self.statement.name, begun.defined(), spent, begun.notes)

    def begun(self, epsilon: Amount | None = None, rho: Amount | None = None, only: int | None = None) -> SummaryMaking:
        """The summary with its plans, or with one of them. Raises Rejected: it cannot be made, or another one has the
        name; CannotOpen.
        """
        asked = self._with_amounts(epsilon, rho)
        design = asked.design
        asked._require_free_name()
        return SummaryMaking(self._session, asked.statement, design, asked._plans(design, only))

    def _require_free_name(self) -> None:
        """Raises Rejected: another summary has the name."""
        session = self._session
        if not session.has_ledger:
            return
        account = session.service.account(session.analyst)
        known = definitions(account.ledger).get(self.statement.name.casefold())
        if known is None or known.same(self.statement):
            return
        # One of another policy that holds no more gives its name away.
        if known.policy_hash == session.policy.hash or session.service.summaries.summary(known, account) is not None:
            raise _taken(known)

    def __repr__(self) -> str:
        return f"<dpsql summary: {self.statement.sql}>"


def _written(amount: Fraction) -> str:
    """As the statement says it, exactly."""
    text = show_spent(amount, 20)
    return text if Fraction(text) == amount else f"'{amount}'"


def _request(account: AnalystAccount, statement: str) -> ChargeRequest:
    return ChargeRequest(
        account.analyst, account.policy.privacy.accountant, account.caps, "", account.policy.hash, statement
    )  # fmt: skip


_NOT_STORED: Final = Diagnostic(
    "DP407", "a part of the summary could not be stored, so that it has no name yet",
    help=("make it again: what was stored is free",),
)  # fmt: skip


def _taken(known: Definition) -> Rejected:
    return reject(
        "DP903", f"there is a summary {known.name} already: {known.statement.sql}",
        help=["take another name", DropSummary(known.name).sql],
        notes=[NOTHING_RAN],
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class SummaryMaking:
    """A summary that is being made: what is measured, and a plan for each part of it."""

    session: Session
    statement: CreateSummary
    design: SummaryDesign
    plans: Mapping[Marginal, Plan]

    @property
    def charges(self) -> list[Charge]:
        """What each part charges now: what is stored is free. Raises CannotOpen."""
        return [self.session.charge(plan) for plan in self.plans.values()]

    @property
    def notes(self) -> tuple[Note, ...]:
        """For whoever makes it."""
        listed = [c.name for c in self.design.classes.values() if not c.complete]
        unlisted = "has values that are not listed: conditions on it are not answered"
        return tuple(Note(f"{name} {unlisted}", Rank.DANGER) for name in listed)

    def require_room(self) -> None:
        """Refuse before the first part what would be refused before the last. Raises BudgetExceeded, CannotOpen."""
        session, charges = self.session, self.charges
        account = session.service.account(session.analyst, ceilings=session.ceilings, named=session.named)
        whole = total(charges)
        new = total_of_new(charges)
        received = {unit: remaining(loss, new.get(unit, PrivacyLoss())) for unit, loss in whole.items()}
        require_fits(
            Entry("-", account.analyst, new, "", account.policy.hash, received=received), account.caps,
            account.ledger,
        )  # fmt: skip

    def defined(self) -> PrivacyLoss:
        """Name what is stored; what that has cost in all. Raises CannotOpen: a part is not stored; Rejected: somebody
        else took the name meanwhile.
        """
        session, own = self.session, self.statement
        account = session.service.account(session.analyst)
        held, answers = account.ledger.received(account.analyst), list[StoredAnswer]()
        for plan in self.plans.values():
            component = plan.releases[0].measured.node.components[0]
            place = Addresses(plan, account.policy, account.order).of(0, {}).address(component)
            stored = [a for a in account.store.find([place]).get(place, ()) if a.id in held]
            if not stored:
                raise CannotOpen([_NOT_STORED])
            answers.append(min(stored, key=lambda a: made_by(a.mechanism, a.parameter).variance()))
        known = definitions(account.ledger).get(own.name.casefold())
        wanted = tuple(answer.id for answer in answers)
        cost = largest(price((), (), answers, session.policy.privacy.accountant).received.values())
        current = known is not None and known.policy_hash == session.policy.hash and known.same(own)
        if known is not None and current and known.answers == wanted:
            return cost
        define(account.ledger, _request(account, own.sql), answers)
        now = definitions(account.ledger).get(own.name.casefold())
        if now is None or not now.same(own):
            raise reject(
                "DP903", f"summary {own.name} was dropped, or its name taken, while it was made",
                help=["make it again, or under another name: what was measured is stored, and free"],
            )  # fmt: skip
        return cost


def drop(session: Session, statement: DropSummary) -> None:
    """Forget a summary's name. Its stored answers stay, and whoever holds them holds them. Raises Rejected DP903."""
    found = definitions(session.ledger).get(statement.name.casefold())
    if found is None:
        known = [d.name for d in definitions(session.ledger).values()]
        raise reject(
            "DP903", f"there is no summary {statement.name!r}",
            help=[f"there are {', '.join(known)}" if known else "there are none"],
        )  # fmt: skip
    define(session.ledger, _request(session.service.account(session.analyst), DropSummary(found.name).sql), ())


def known_summaries(session: Session) -> tuple[KnownSummary, ...]:
    """All that the ledger knows, by name. Raises CannotOpen."""
    if not session.has_ledger:
        return ()
    account = session.service.account(session.analyst)
    held, found = account.ledger.received(account.analyst), list[KnownSummary]()
    for definition in definitions(account.ledger).values():
        own, made = definition.statement, session.service.summaries.summary(definition, account)
        same = definition.policy_hash == session.policy.hash
        gone = "its stored answers are gone" if same else "of another policy or data version"
        state = gone if made is None else ""
        missing = [] if made is None else [a for a in made.answers if a.id not in held]
        receipt = largest(price((), (), missing, session.policy.privacy.accountant).received.values())
        known = KnownSummary(
            own.name, own.table_sql, own.columns, own.k, definition.analyst,
            None if made is None else made.made_at.date(), made is not None and not missing, receipt, state, own.sql,
        )  # fmt: skip
        found.append(known)
    return tuple(sorted(found, key=lambda s: s.name.casefold()))
