"""`dpsql query`: one query, paid for and answered."""

from __future__ import annotations

import sys

from dpsql.api.connection import Connection, connect
from dpsql.cli import exits
from dpsql.cli.answer import WITH_WIDTHS, footer_of, print_answer
from dpsql.cli.inputs import one_query, pointing_into
from dpsql.cli.options import Format
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.diagnostics.errors import Error
from dpsql.results.answer import Release
from dpsql.service.planning import Question
from dpsql.service.settings import USUAL, Asked, confidence_level


def run(
    policy: str,
    sql: str | None,
    file: str | None,
    asked: Asked,
    analyst: str | None,
    ledger: str | None,
    fresh: bool,
    format: Format,
    dialect: str,
    threads: int | None,
    memory_limit: str | None,
    progress: bool,
) -> int:
    """Raises dpsql.Error; nothing is charged unless an answer (or DP901) comes."""
    source = one_query(sql, file)
    with connect(
        policy, analyst=analyst, ledger=ledger, threads=threads, memory_limit=memory_limit, progress=progress
    ) as connection:
        try:
            plan = connection.planned(Question(source.text, dialect=dialect), asked)
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


def account_remark(connection: Connection, analyst: str | None) -> str:
    """Says so if the analyst's name is not in the policy, so that the shared account pays."""
    if analyst is None or connection.analyst == analyst:
        return ""
    return f"charged to the shared account {connection.analyst}: the policy does not name this analyst"
