"""`dpsql query`: one query, paid for and answered."""

from __future__ import annotations

import sys

from dpsql.answers.results.answer import Release
from dpsql.api.connection import Connection, connect
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.diagnostics.errors import Error
from dpsql.diagnostics.layout import one_line
from dpsql.diagnostics.note import Note, Rank
from dpsql.faces.cli import exits
from dpsql.faces.cli.answer_text import WITH_WIDTHS, footer_of, print_answer
from dpsql.faces.cli.commands.queries import batches
from dpsql.faces.cli.inputs import one_query, pointing_into
from dpsql.faces.cli.options import Format
from dpsql.frontend.text.batch_statement import batch_statement
from dpsql.frontend.text.counter_statements import counter_statement
from dpsql.frontend.text.summary_statements import CreateSummary, SummaryStatement, summary_statement
from dpsql.service.counters.counter import CounterDone
from dpsql.service.planning.planning import WrittenQuery
from dpsql.service.privacy_settings import USUAL, Asked, confidence_level
from dpsql.service.summaries.summary import SummaryMade


def run(
    policy: str,
    sql: str | None,
    file: str | None,
    batch: str | None,
    skip_refused: bool,
    asked: Asked,
    analyst: str | None,
    ledger: str | None,
    fresh: bool,
    format: Format,
    dialect: str,
    threads: int | None,
    memory_limit: str | None,
    progress: bool,
    draft: bool,
) -> int:
    """Raises dpsql.Error; nothing is charged unless an answer (or DP901) comes."""
    source = one_query(sql, file, batch)
    with connect(
        policy,
        analyst=analyst,
        ledger=ledger,
        threads=threads,
        memory_limit=memory_limit,
        progress=progress,
        draft=draft,
    ) as connection:
        if batch is not None or batch_statement(source.text) is not None:
            found = connection.batch_of(source.text, source.name, skip_refused=skip_refused)
            return batches.run(connection, found, asked, fresh, format)
        try:
            if (statement := summary_statement(source.text)) is not None:
                return _summary(connection, statement, source.text, asked)
            if (about := counter_statement(source.text)) is not None:
                done = connection.do_counter(about, source.text, asked.get("epsilon"), asked.get("rho"))
                print(said_of_counter(done))
                return 0
            plan = connection.planned(WrittenQuery(source.text, dialect=dialect), asked)
            if against := connection.warnings(plan, fresh=fresh):
                exits.complain(against)
            release = connection.run(plan, fresh=fresh)
        except Error as error:
            raise pointing_into(error, source) from None
        left = left_after(connection, release)
        remarks = tuple(r for r in (account_remark(connection, analyst),) if r)
        level = confidence_level(asked.get("confidence", USUAL))
        shown = level if format in WITH_WIDTHS else None
        print_answer(release, format, footer_of(release, left, remarks, shown), sys.stdout, level)
    return 0


def _summary(connection: Connection, statement: SummaryStatement, sql: str, asked: Asked) -> int:
    if isinstance(statement, CreateSummary):
        print(said(connection.summary_of(sql).run(asked.get("epsilon"), rho=asked.get("rho"))))
    else:
        connection.drop_summary(statement.name)
        print(f"summary {statement.name} is dropped; what was paid for stays stored")
    return 0


def said_of_counter(done: CounterDone) -> str:
    """What came of a statement about a counter, in a line."""
    spent = "" if done.charged is None else f"spent {done.charged} of each period; "
    return f"counter {one_line(done.name)}: {spent}{one_line(done.remark)}"


def said(made: SummaryMade) -> str:
    """What came of making a summary, in a line."""
    spent = "nothing" if made.spent == PrivacyLoss() else str(made.spent)
    notes = "".join(f"; {note}" for note in made.notes)
    return f"summary {one_line(made.name)} is made: spent {spent}, of {made.cost} in all{notes}"


def left_after(connection: Connection, release: Release) -> PrivacyLoss | None:
    """The least that is left of any unit that the query charged, for this analyst and in total; None: no cap."""
    units = [unit for unit, loss in release.plan.cost.items() if loss != PrivacyLoss()]
    if not units:
        return None
    budget = connection.budget
    found = [b for u in units for b in (budget[u].remaining, budget[u].total_remaining) if b is not None]
    if not found:
        return None
    return PrivacyLoss(min(b.epsilon for b in found), min(b.delta for b in found), min(b.rho for b in found))


def account_remark(connection: Connection, analyst: str | None) -> Note | None:
    """Says so if the rows are made up, or the analyst's name is not in the policy, so that the shared account pays."""
    if connection.service.free:
        return Note(connection.service.free, Rank.DANGER)
    if analyst is None or connection.analyst == analyst:
        return None
    if not connection.policy.has_account(analyst):
        return Note(f"nobody's account: the policy names neither {analyst!r} nor {connection.analyst!r}")
    return Note(f"charged to the shared account {connection.analyst}: the policy does not name this analyst")
