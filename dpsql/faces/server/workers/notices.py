"""What is told beside an answer: its price, what is left, its ± and its notes. Of released numbers and policy alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from dpsql.answers.results.answer import Release, reaches
from dpsql.core.ir.types import BIGINT, DOUBLE, VARCHAR
from dpsql.core.numbers.confidence import LEVEL
from dpsql.core.privacy_loss import NO_LOSS, PrivacyLoss, largest, left_text
from dpsql.diagnostics.diagnostic import Diagnostic, Mark
from dpsql.diagnostics.errors import Error
from dpsql.diagnostics.note import Note, Rank, Topic
from dpsql.diagnostics.words import TOO_HIGH, TOO_LOW
from dpsql.faces.server.packed_rows import MOST_BYTES, TooManyBytes, packed
from dpsql.faces.server.statements import Answer, Value
from dpsql.planner.plan import Plan
from dpsql.service.accounts.remaining_budgets import total
from dpsql.service.query import accuracy, at_most
from dpsql.service.session import Session
from dpsql.service.summaries.summary import SummaryMaking


def told(session: Session, release: Release) -> tuple[Note, ...]:
    """One sentence each, dangers first; no price of what is public, unless that is made up, too."""
    price = () if release.plan.known and not session.service.free else (price_told(session, release.spent),)
    return with_notes((*price, *_errors(release)), release.notes)


def with_notes(own: Sequence[Note], notes: Sequence[Note]) -> tuple[Note, ...]:
    """Dangers, then what is told of price and ±, then the other notes."""
    dangers = [note for note in notes if note.rank is Rank.DANGER]
    return (*dangers, *own, *notes[len(dangers) :])


def price_told(session: Session, spent: PrivacyLoss) -> Note:
    """What an answer cost, and what is left."""
    if spent == NO_LOSS and session.service.free:
        return Note(session.service.free, Rank.DANGER, Topic.PRICE)
    left = session.budget.remaining
    rest = "" if left is None else f"; left {left_text(left)}"
    return Note("nothing was charged" if spent == NO_LOSS else f"charged {spent}{rest}", Rank.SOURCE, Topic.PRICE)


def _errors(release: Release) -> list[Note]:
    """Column by column, the largest ± of all rows, at 95 %; of what a limit cuts, its only side."""
    rows = reaches(release)
    names = dict.fromkeys(name for row in rows for name in row)
    found = []
    for name in names:
        ends = [w for row in rows if (w := row.get(name)) is not None]
        for sign, sides in (("±", [max(b, a) for b, a in ends if b is not None and a is not None]),
                            ("−", [b for b, a in ends if b is not None and a is None]),
                            ("+", [a for b, a in ends if b is None and a is not None])):  # fmt: skip
            if sides:
                upto = "" if len(set(sides)) == 1 else "up to "
                cut = {"±": "", "−": f"; {TOO_LOW}", "+": f"; {TOO_HIGH}"}[sign]
                found.append(Note(f"{name} {sign} {upto}{max(sides):.6g} (95 %){cut}", Rank.SOURCE, Topic.WIDTH))
    return found


def cost_told(session: Session, plan: Plan) -> Answer:
    """EXPLAIN (COST): for each noisy column the price now, its ±, what is left, and how often that would be enough."""
    charge = session.charge_to_show(plan)
    found = _cost(session, charge.loss, {name: at_most(width) for name, width in accuracy(plan, LEVEL).items()})
    later = (note for note in plan.notes if note.topic is Topic.LATER)
    return replace(found, notices=(*charge.notes, *later), plan=plan.hash)


def summary_cost_told(session: Session, making: SummaryMaking) -> Answer:
    """EXPLAIN (COST) of a summary: for each of its marginals the price of all of them now, the ± of a cell, the rest as
    of a query."""
    widths = {making.design.name(m): at_most(accuracy(plan, LEVEL)["n"]) for m, plan in making.plans.items()}
    return replace(_cost(session, largest(total(making.charges).values()), widths), notices=making.notes)


def counter_cost_told(session: Session, loss: PrivacyLoss, widths: Mapping[str, float]) -> Answer:
    """EXPLAIN (COST) about a counter: its price in each period, the ± of one period, the rest as of a query."""
    return _cost(session, NO_LOSS if session.service.free else loss, dict(widths))


def _cost(session: Session, loss: PrivacyLoss, widths: Mapping[str, float | None]) -> Answer:
    remaining = session.budget.remaining
    left = left_text(remaining)
    times = None if remaining is None or loss == NO_LOSS else _times(loss, remaining)
    rows = [(str(loss), name or None, width, left, times) for name, width in (widths or {"": None}).items()]
    names = (("price", VARCHAR), ("column", VARCHAR), ("error", DOUBLE), ("left", VARCHAR), ("queries_left", BIGINT))
    return Answer(names, rows, command="EXPLAIN", charged=loss, left=remaining)


def _times(price: PrivacyLoss, left: PrivacyLoss) -> int:
    parts = ((price.epsilon, left.epsilon), (price.delta, left.delta), (price.rho, left.rho))
    return min(int(Fraction(has) / Fraction(costs)) for costs, has in parts if costs)


def sendable(rows: Sequence[tuple[Value, ...]], is_paid: bool) -> Sequence[tuple[Value, ...]]:
    """Rows as they travel. Raises Error (DP415) for too many bytes."""
    try:
        return packed(rows)
    except TooManyBytes:
        raise Error([_too_much(f"{MOST_BYTES:,} bytes", is_paid)]) from None
    except ValueError:  # a number with more digits than Python writes: whoever sends it says so
        return rows


def too_many_rows(most: int, *, is_paid: bool) -> Diagnostic:
    """is_paid: whether it was charged before that could be known."""
    return _too_much(f"{most:,} rows", is_paid)


def _too_much(what: str, is_paid: bool) -> Diagnostic:
    fewer = "ask for fewer:  … ORDER BY … LIMIT n"
    stored = ";  what was charged is stored, and asking again for it is free"
    return Diagnostic(
        "DP415",
        f"the answer has more than {what}, which the server does not give at one time",
        help=(fewer + stored if is_paid else fewer,),
        notes=("what was charged stays charged" if is_paid else "nothing was spent",),
        mark=Mark.SAYS_CHARGE if is_paid else None,
    )
