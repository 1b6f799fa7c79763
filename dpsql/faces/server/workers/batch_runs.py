"""What a worker does with a batch: one plan, one charge, one moment at which it may leave; an answer for each query."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from typing import Any

from dpsql.answers.results.answer import Release
from dpsql.answers.results.interval_columns import ENDS
from dpsql.core.ir.types import DOUBLE, VARCHAR
from dpsql.core.numbers.confidence import LEVEL
from dpsql.core.privacy_loss import NO_LOSS
from dpsql.diagnostics.errors import Error
from dpsql.faces.server.asked import DIALECT, asked
from dpsql.faces.server.statements import Answer
from dpsql.faces.server.workers.notices import cost_told, price_told, sendable, too_many_rows, with_notes
from dpsql.faces.server.workers.worker_messages import Ask, Reply
from dpsql.planner.plan import Plan
from dpsql.service.batches.batch import Batch
from dpsql.service.batches.batch_release import BatchAnswer
from dpsql.service.privacy_settings import settled
from dpsql.service.session import Session


def batch_reply(ask: Ask, session: Session, rows: int, run: Callable[[Plan], tuple[Release, str]]) -> Reply:
    """What came of a batch. rows: the most of all its answers together. run: see `WorkerAnswering`.

    Raises dpsql.Error.
    """
    batch = session.batch_of(ask.sql, skip_refused=ask.batch == "skip")
    settings = replace(settled(asked(ask.settings), session.settings), dialect=DIALECT, asked=ask.asked)
    plan = (batch.previewed if ask.wish in ("explain", "cost") else batch.planned_with)(settings)
    refused = tuple(replace(d, severity="warning") for each in batch.design.refused.values() for d in each.diagnostics)

    def answered(release: Release) -> Answer:
        return _answer(ask, session, batch, release, rows)

    match ask.wish:
        case "explain":
            lines = [(line,) for line in batch.explained(plan).splitlines()]
            answer = Answer((("QUERY PLAN", VARCHAR),), lines, plan=plan.hash, command="EXPLAIN")
            return Reply(ask.id, answer, plan=plan.hash)
        case "cost":
            return Reply(ask.id, _cost(session, plan, len(batch.design.members)), plan=plan.hash)
        case "look":
            held = session.held(plan)
            if held is None and sum(len(table.keys) for table in batch.design.tables.values()) > rows:
                raise Error([too_many_rows(rows, is_paid=False)])  # all groups of a batch are public
            found = None if held is None else replace(answered(held), warnings=refused)
            return Reply(ask.id, found, plan=plan.hash)
        case "run":
            release, entry = run(plan)
            return Reply(ask.id, replace(answered(release), entry=entry, warnings=refused), plan=plan.hash)
        case "spent" | "entry" | "stopped" | "given":
            raise AssertionError(f"{ask.wish} is no wish of a batch")


def _cost(session: Session, plan: Plan, count: int) -> Answer:
    """As of a query, in one row: the columns of the marginals are nobody's."""
    found = cost_told(session, plan)
    price, _, _, left, times = found.rows[0]
    return replace(found, rows=[(price, f"{count} queries", None, left, times)])


def _answer(ask: Ask, session: Session, batch: Batch, release: Release, rows: int) -> Answer:
    found = batch.answered(release)
    given = [_shown(each, ask.settings.intervals) for each in found.answers if each is not None]
    if sum(len(each.rows) for each in given) > rows:
        raise Error([too_many_rows(rows, is_paid=release.spent != NO_LOSS)])
    given = [replace(each, rows=sendable(each.rows, release.spent != NO_LOSS)) for each in given]
    notices = with_notes([price_told(session, release.spent)], found.notes) if ask.settings.notices else ()
    spent = str(release.spent) if release.spent != NO_LOSS else ""
    answer = Answer((), (), notices, spent=spent, plan=release.plan.hash, command="BATCH", more=tuple(given))
    left = None if release.spent == NO_LOSS else session.budget.remaining
    return replace(answer, charged=release.spent, left=left)


def _shown(answer: BatchAnswer, ends: bool) -> Answer:
    """The rows of one query, behind their columns `n_low` and `n_high` of each number if that is asked."""
    columns = list(zip(answer.columns, answer.types, strict=True))
    if not ends:
        return Answer(tuple(columns), answer.rows)
    places = [at for at, is_noisy in enumerate(answer.noisy) if is_noisy]
    heads = [*columns, *((f"{columns[at][0]}_{end}", DOUBLE) for at in places for end in ENDS)]
    found: list[tuple[Any, ...]] = []
    for row, bounds in zip(answer.rows, answer.bounds(float(LEVEL)), strict=True):
        shown = (bounds[at] or (None, None) for at in places)
        found.append((*row, *(None if end is None else float(end) for end in chain.from_iterable(shown))))
    return Answer(tuple(heads), found, ends=tuple(places))
