"""Whether what a run would draw is computed of a summary instead.

*Claim.* An account is given no number of a summary unless it has all of the summary's answers, or is charged what it
misses of them: and that only if `fits` admits it. The choice depends on no number. *Why.* What is chosen names every
answer of the summary (`Estimate.answers`); price and charge ask the ledger which of these the account has. Looked at
are texts, the noise of stored answers as they state it, ids and prices. *When it would be false.* If an answer of the
summary were left out of the estimate's. *Tested by* tests/core/release/test_define.py,
tests/service/test_summaries.py, tests/deep/answers/stored/test_summaries.py.

A summary that the account has is taken where it says no number less accurately than the query would buy it, or where
the query cannot be bought. One that it has not got is taken, and charged, only where it is as accurate.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from dpsql.accuracy.widths import planned_width
from dpsql.answers.stored.analyst_account import AnalystAccount
from dpsql.answers.stored.choosing import ChosenAnswers
from dpsql.answers.stored.ledger_summaries import Summary, SummaryPart
from dpsql.core.privacy_loss import largest
from dpsql.core.release.charge import Price
from dpsql.core.release.noisy import GivenAnswers, wanted
from dpsql.diagnostics.note import Note, Rank
from dpsql.diagnostics.words import about
from dpsql.planner.plan import Plan

_ROUNDING = 0.5
"""A number of a summary is a whole one: one that is less than this off is right."""


def with_summaries(
    plan: Plan,
    account: AnalystAccount,
    choice: ChosenAnswers,
    held: Collection[str],
    price: Callable[[ChosenAnswers], Price],
    fits: Callable[[ChosenAnswers], bool],
) -> tuple[ChosenAnswers, tuple[Note, ...]]:
    """The choice with what summaries say in place of new noise, and what the reader is told. Raises CannotOpen."""
    if account.summaries is None or plan.is_part or plan.finding is not None or not _missing(plan, choice):
        return choice, ()
    if account.addresses(plan).nested:
        return choice, ()
    usable, notes = account.summaries(plan, account)
    found = list(notes)
    for summary in sorted(usable, key=lambda s: (not _has(s, held), s.name.casefold())):
        missing = _missing(plan, choice)
        told = {place: part for place, part in summary.parts(plan).items() if place in missing}
        parts = {place: part for place, part in told.items() if isinstance(part, SummaryPart)}
        if not parts:
            why = next((part for part in told.values() if isinstance(part, str)), None)
            found += [] if why is None else [_of(f"not from summary {summary.name}: {why}")]
            continue
        good = {place: part for place, part in parts.items() if _as_accurate(plan, place, part)}
        if _has(summary, held):
            if not good and not account.admits(price(choice)):
                good = parts
            if good:
                choice = _taken(choice, summary, good, held)
                found.append(_of(f"{_said(plan, summary, good)}, cost 0"))
                found += [_limited(summary)] if summary.limited else []
            else:
                found.append(_of(f"from summary {summary.name} it would be ± {about(_widest(parts))}, at cost 0"))
            continue
        whole = _taken(choice, summary, good or parts, held)
        receipt = largest(price(whole).received.values())
        if good and fits(whole):
            choice = whole
            found.append(_of(f"{_said(plan, summary, good)}, first receipt {receipt}, and the total budget nothing"))
            found += [_limited(summary)] if summary.limited else []
        else:
            why = ", more than is asked for, or left" if good else ""
            widest = f"± {about(_widest(parts))}"
            found.append(_of(f"from summary {summary.name} it would be {widest}, first receipt {receipt}{why}"))
    return choice, tuple(found)


def _of(told: str) -> Note:
    return Note(told, Rank.SOURCE)


def _limited(summary: Summary) -> Note:
    whole = "a limit of rows counts over the whole table, whatever is filtered"
    return Note(f"summary {summary.name}: {whole}", Rank.BIAS)


def _missing(plan: Plan, choice: ChosenAnswers) -> list[int]:
    """The releases for which noise would be drawn."""
    return [at for at, r in enumerate(plan.releases) if wanted(r.measured, choice.given[at])]


def _has(summary: Summary, held: Collection[str]) -> bool:
    return all(answer.id in held for answer in summary.answers)


def _as_accurate(plan: Plan, place: int, part: SummaryPart) -> bool:
    """Whether no number is wider than the plan's own."""
    measured, level = plan.releases[place].measured, plan.bid.confidence
    planned = [planned_width(o.recipe, measured.measurements, level) for o in measured.node.outputs]
    return all(
        p is not None and (width <= p or width < _ROUNDING) for p, width in zip(planned, part.widths, strict=True)
    )


def _taken(
    choice: ChosenAnswers, summary: Summary, parts: Mapping[int, SummaryPart], held: Collection[str]
) -> ChosenAnswers:
    return choice.but({at: GivenAnswers(estimate=summary.estimate(part)) for at, part in parts.items()}, held)


def _said(plan: Plan, summary: Summary, parts: Mapping[int, SummaryPart]) -> str:
    of = "" if len(parts) == len(plan.releases) else f"{len(parts)} of {len(plan.releases)} counted tables "
    return f"{of}from summary {summary.name} of {summary.made_at.date().isoformat()}, ± {about(_widest(parts))}"


def _widest(parts: Mapping[int, SummaryPart]) -> float:
    return max((width for part in parts.values() for width in part.widths), default=0.0) + _ROUNDING
