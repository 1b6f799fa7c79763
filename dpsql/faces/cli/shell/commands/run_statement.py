"""Running one statement: a query with its price and its answer, EXPLAIN, SET and SHOW, batches, summaries, counters."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from dpsql.answers.results.answer import Release
from dpsql.api.session_statements import Explain, Set, Show, ShowCounters, ShowSummaries, special
from dpsql.core.policy.policy import Policy
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.diagnostics.errors import Error, reject
from dpsql.diagnostics.layout import inert, one_line, printable
from dpsql.diagnostics.note import Topic, in_order
from dpsql.diagnostics.words import about
from dpsql.faces.cli import exits
from dpsql.faces.cli.answer_text import (
    FOR_PEOPLE,
    WITH_WIDTHS,
    Style,
    answer_text,
    footer_of,
)
from dpsql.faces.cli.commands.queries.query import account_remark, left_after
from dpsql.faces.cli.options import Format, Intervals
from dpsql.faces.cli.shell.commands import (
    accounts,
    running,
)
from dpsql.faces.cli.shell.commands import (
    batch_commands as batches,
)
from dpsql.faces.cli.shell.commands import (
    counter_commands as counters,
)
from dpsql.faces.cli.shell.commands import (
    summary_commands as summaries,
)
from dpsql.faces.cli.shell.commands.running import Cancelled, agreed, left_for, left_words, located, percent, run
from dpsql.faces.cli.shell.input.items import InputPlace
from dpsql.faces.cli.shell.output.output import line_width
from dpsql.faces.cli.shell.state import Shell
from dpsql.frontend.text.batch_statement import batch_statement
from dpsql.frontend.text.counter_statements import (
    CreateCounter,
    DropCounter,
    ReceiveCounter,
    TickCounter,
    counter_statement,
)
from dpsql.frontend.text.summary_statements import CreateSummary, DropSummary, summary_statement
from dpsql.frontend.text.unfinished import with_variables
from dpsql.planner.explain.explain_text import as_text
from dpsql.policy.issues import listed
from dpsql.service.batches.batch import Batch
from dpsql.service.planning.planning import WrittenQuery
from dpsql.service.privacy_settings import confidence_level
from dpsql.service.query import Expected, accuracy

Look = Callable[[Shell, str, InputPlace], None]
"""`explain` or `cost`."""


def run_statement(shell: Shell, text: str, place: InputPlace) -> None:
    """Do what a statement says. Raises dpsql.Error, whose findings point to `place`; KeyboardInterrupt."""
    shell.last = text, place
    sql = with_variables(text, shell.variables.get, shell.dialect)
    try:
        if _about_search_path(shell, sql):
            return
        meant = special(sql, shell.dialect)
        if meant is None or isinstance(meant, Explain):
            shell.query = shell.last
        match meant:
            case Set(name=name, amount=amount):
                shell.set_amount(name, amount)
                if shell.prompting and not shell.quiet:
                    shell.output.tell(printable(shell.confirmation(name, amount)))
            case Show(name=name):
                shell.output.line(shell.amount(name))
            case ShowSummaries():
                summaries.show(shell, [])
            case CreateSummary() | DropSummary():
                summaries.do(shell, meant, sql)
            case ShowCounters():
                counters.show(shell)
            case CreateCounter() | DropCounter() | ReceiveCounter() | TickCounter():
                counters.do(shell, meant, sql)
            case Explain(sql=query):
                explain(shell, query, place)
            case None if batch_statement(sql) is not None:
                batches.do(shell, _batch(shell, sql, place))
            case None:
                _query(shell, sql)
    except Error as error:
        raise located(error, sql, place) from None


def explain(shell: Shell, sql: str, place: InputPlace) -> None:
    """Show the plan of a query, a batch, a summary or a counter. Raises Rejected."""
    if batch_statement(sql) is not None:
        batches.explain(shell, _batch(shell, sql, place))
        return
    if summary_statement(sql) is not None:
        summaries.explain(shell, sql)
        return
    if (counter := counter_statement(sql)) is not None:
        counters.explain(shell, counter, sql)
        return
    plan = shell.connection.previewed(WrittenQuery(sql, dialect=shell.dialect), shell.asked)
    charge = shell.connection.charge_to_show(plan, fresh=shell.fresh)
    text = as_text(plan, charge=charge, columns=shell.output.columns)
    if shell.output.color:
        from dpsql.faces.cli.shell.input.highlight import painted_explain  # pygments, for terminals only

        text = painted_explain(text)
    shell.output.write(f"{text}\n", shell.looks.pager)
    _complain(plan.warnings)


def cost(shell: Shell, sql: str, place: InputPlace) -> None:
    """Show what a query or a batch would be charged now, and what would be left. Raises Rejected, CannotOpen."""
    if batch_statement(sql) is not None:
        batches.cost(shell, _batch(shell, sql, place))
        return
    plan = shell.connection.planned(WrittenQuery(sql, dialect=shell.dialect), shell.asked)
    price, left = shell.connection.charge(plan, fresh=shell.fresh).loss, left_for(shell, plan)
    words = f"would cost {price}" if price != PrivacyLoss() else "would cost nothing"
    if left is not None and price != PrivacyLoss():
        words += f", {percent(accounts.share(price, left))} of what is left ({left_words(price, left)})"
    shell.output.line(words)
    for column, error in accuracy(plan, confidence_level(shell.confidence)).items():
        shell.output.line(f"  {one_line(column)}  ± {_around(error)}")
    for note in (n for n in plan.notes if n.topic is Topic.LATER):
        shell.output.line(f"  {inert(note)}")


def _around(error: Expected) -> str:
    """The ± before a run."""
    match error:
        case None:
            return "depends on the data"
        case (least, most):
            return f"{about(least)} at least" + ("" if most is None else f", {about(most)} at most")
        case _:
            return about(error)


def _batch(shell: Shell, sql: str, place: InputPlace) -> Batch:
    """The batch that a statement asks; what is said of its queries names their places in the input."""
    source = running.at(sql, place)
    return shell.connection.batch_of(source.text, source.name)


def _query(shell: Shell, sql: str) -> None:
    try:
        plan = shell.connection.planned(WrittenQuery(sql, dialect=shell.dialect), shell.asked)
        against = shell.connection.warnings(plan, fresh=shell.fresh)
        _complain(against)
        may_run = agreed(shell, plan, bool(against))
    except KeyboardInterrupt:
        raise Cancelled("cancelled; nothing was charged") from None
    if not may_run:
        exits.say("not run; nothing was spent")
        return
    show(shell, run(shell, plan))


def _complain(against: Sequence[Diagnostic]) -> None:
    if against:
        exits.complain(against)


def show(shell: Shell, release: Release) -> None:
    """Print an answer as the looks say, with its footer."""
    looks, out = shell.looks, shell.output
    level = confidence_level(shell.confidence)
    style = Style(looks.intervals, looks.null, not looks.tuples_only, looks.fieldsep, out.color)
    format = looks.format
    if looks.expanded and format in (Format.TABLE, Format.BOX, Format.UNALIGNED):
        format = Format.VERTICAL
    text = answer_text(release, format, style, level, out.stream)
    if looks.expanded is None and format in (Format.TABLE, Format.BOX) and _too_wide(text, out.columns):
        text = answer_text(release, Format.VERTICAL, style, level, out.stream) if release.rows else text
    remarks = tuple(r for r in (account_remark(shell.connection, shell.analyst),) if r)
    shell.notes = in_order((*remarks, *release.notes))
    shown = level if format in WITH_WIDTHS and looks.intervals is not Intervals.OFF else None
    ends = "intervals" if looks.intervals is Intervals.COLS else "±"
    footer = ""
    if looks.footer and not looks.tuples_only and format is not Format.JSON:
        left = left_after(shell.connection, release)
        footer = footer_of(release, left, remarks, shown, ends, more="\\notes")
    below = f"{footer}\n" if footer and format in FOR_PEOPLE else ""
    if shell.prompting and format in FOR_PEOPLE and (text or below):
        below += "\n"
    out.write(text, looks.pager, below)
    if format not in FOR_PEOPLE and footer and not shell.quiet:
        exits.say(footer)


def _too_wide(text: str, columns: int | None) -> bool:
    return columns is not None and any(line_width(line) > columns for line in text.split("\n"))


_SEARCH_PATH: Final = re.compile(
    r"\s*(?:SET\s+(?:SESSION\s+|LOCAL\s+)?search_path\s*(?:=|\bTO\b)\s*(?P<path>[^;]+?)"
    r"|(?P<reset>RESET)\s+search_path|(?P<show>SHOW)\s+search_path)\s*;?\s*",
    re.IGNORECASE,
)
_SCHEMAS: Final = ("public", "main")
_NOBODYS: Final = ("$user", "pg_catalog", "default")


def _about_search_path(shell: Shell, sql: str) -> bool:
    """Whether this was about the search path, which whoever comes from PostgreSQL sets; then it is answered.

    Every table of the policy has one name; `public.` and `main.` may stand before it. So a path of these changes
    nothing. Raises Rejected DP903 for other schemas, with the names to write instead.
    """
    found = _SEARCH_PATH.fullmatch(sql) if len(sql) < 1_000 else None
    if found is None:
        return False
    if found["show"]:
        shell.output.line(", ".join(_SCHEMAS))
        return True
    for schema in [] if found["path"] is None else _schemas(found["path"]):
        accept_schema(shell.connection.policy, schema)
    if shell.prompting and not shell.quiet:
        shell.output.tell(f"search_path: {', '.join(_SCHEMAS)}, as always: tables are found by the names of the policy")
    return True


def _schemas(path: str) -> list[str]:
    return [part.strip().strip("'\"").casefold() for part in path.split(",") if part.strip()]


def accept_schema(policy: Policy, schema: str) -> None:
    """Raise Rejected DP903 for a schema that would change where names are looked up."""
    inside = [t.name for t in policy.tables.values() if t.name.casefold().startswith(f"{schema}.")]
    if schema in (*_SCHEMAS, *_NOBODYS) or (not inside and schema in _catalogues(policy)):
        return
    if inside:
        raise reject(
            "DP903", f"tables of the schema {schema!r} are named with it, whatever the search path",
            help=[f"write  {listed(inside[:4])}"],
        )  # fmt: skip
    raise reject("DP903", f"the policy has no schema {schema!r}", help=["\\d  lists its tables"])


def _catalogues(policy: Policy) -> set[str]:
    return {schema for table in policy.tables.values() for schema in policy.schemas_of(table)}
