"""Running one statement: a query with its price and its answer, EXPLAIN, SET, RESET and SHOW of settings, summaries."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Final

from dpsql.api.statements import Explain, Set, Show, ShowSummaries, in_full, special
from dpsql.cli import exits
from dpsql.cli.answer import FOR_PEOPLE, WITH_WIDTHS, Style, answer_text, cells_text, columns_and_cells, footer_of
from dpsql.cli.commands.query import account_remark, left_after
from dpsql.cli.options import Format, Intervals
from dpsql.cli.shell.commands import accounts, search_path, summaries
from dpsql.cli.shell.input.items import Place
from dpsql.cli.shell.output import crosstab
from dpsql.cli.shell.output.folding import folded
from dpsql.cli.shell.output.output import line_width
from dpsql.cli.shell.state import Shell
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.diagnostics.diagnostic import Diagnostic, Source
from dpsql.diagnostics.errors import Error
from dpsql.diagnostics.layout import inert, one_line, printable
from dpsql.frontend.text.summary_statements import CreateSummary, DropSummary, summary_statement
from dpsql.frontend.text.unfinished import with_variables
from dpsql.planner.explain.text import as_text
from dpsql.planner.plan import Plan
from dpsql.results.answer import Release
from dpsql.service.planning import Question
from dpsql.service.query import accuracy
from dpsql.service.settings import confidence_level

Look = Callable[[Shell, str], None]
"""`explain` or `cost`."""

_HELP: Final = {
    "DP401": "in this shell:  \\epsilon 0.2",
    "DP013": "in this shell:  \\set name value,  and  :name,  :'name'  or  :\"name\"  in the query",
}
_TABLES: Final = re.compile(r"\s*(SHOW|DESCRIBE|DESC|SUMMARIZE)\b", re.IGNORECASE)


def run_statement(shell: Shell, text: str, place: Place) -> None:
    """Do what a statement says. Raises dpsql.Error, whose findings point to `place`; KeyboardInterrupt."""
    shell.last = text, place
    sql = with_variables(text, shell.variables.get, shell.dialect)
    try:
        if search_path.spoken(shell, sql):
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
            case Explain(sql=query) if summary_statement(query) is not None:
                summaries.explain(shell, query)
            case Explain(sql=query):
                explain(shell, query)
            case None:
                _query(shell, sql)
    except Error as error:
        raise located(error, sql, place) from None


def explain(shell: Shell, sql: str) -> None:
    """Show a query's plan. Raises Rejected."""
    plan = shell.connection.previewed(Question(sql, dialect=shell.dialect), shell.asked)
    charge = shell.connection.charge_to_show(plan, fresh=shell.fresh)
    text, columns = as_text(plan, charge=charge), shell.output.columns
    if columns is not None:
        text = folded(text, columns)
    if shell.output.color:
        from dpsql.cli.shell.input.highlight import painted_explain  # pygments, for terminals only

        text = painted_explain(text)
    shell.output.write(f"{text}\n", shell.looks.pager)
    _complain(plan.warnings)


def cost(shell: Shell, sql: str) -> None:
    """Show what a query would be charged now, and what would be left. Raises Rejected, CannotOpen."""
    plan = shell.connection.planned(Question(sql, dialect=shell.dialect), shell.asked)
    price, left = shell.connection.charge(plan, fresh=shell.fresh).loss, left_for(shell, plan)
    words = f"would cost {price}" if price != PrivacyLoss() else "would cost nothing"
    if left is not None and price != PrivacyLoss():
        words += f", {percent(accounts.share(price, left))} of what is left ({left_words(price, left)})"
    shell.output.line(words)
    for column, error in accuracy(plan, confidence_level(shell.confidence)).items():
        around = "depends on the data" if error is None else f"{error:.4g}"
        shell.output.line(f"  {one_line(column)}  ± {around}")


def left_for(shell: Shell, plan: Plan) -> PrivacyLoss | None:
    """The least that is left of any unit that a plan charges; None if nothing is limited. Raises CannotOpen."""
    policy, account = shell.connection.policy, shell.connection.analyst
    caps = policy.caps_for(None if account == "*" else account)
    budget = shell.connection.budget if shell.connection.has_ledger else {}
    found: list[PrivacyLoss] = []
    for unit, loss in plan.cost.items():
        if loss == PrivacyLoss():
            continue
        if unit in budget:
            found += [b for b in (budget[unit].remaining, budget[unit].total_remaining) if b is not None]
        else:
            found += [c for c in (caps.analyst.get(unit), caps.total.get(unit)) if c is not None]
    if not found:
        return None
    return PrivacyLoss(min(b.epsilon for b in found), min(b.delta for b in found), min(b.rho for b in found))


def left_words(price: PrivacyLoss, left: PrivacyLoss) -> str:
    """`ε 2.35`, in ρ where the price is."""
    return f"ρ {accounts.short(left.rho)}" if price.rho else f"ε {accounts.short(left.epsilon)}"


def percent(share: Fraction) -> str:
    """A share in percent, rounded."""
    return f"{float(share) * 100:.0f} %"


def _query(shell: Shell, sql: str) -> None:
    try:
        plan = shell.connection.planned(Question(sql, dialect=shell.dialect), shell.asked)
        if shell.crossed is not None:
            crosstab.places([column.name for column in plan.columns], shell.crossed)  # before anything is paid for
        against = shell.connection.warnings(plan, fresh=shell.fresh)
        _complain(against)
        may_run = agreed(shell, plan, bool(against))
    except KeyboardInterrupt:
        raise Cancelled("cancelled; nothing was charged") from None
    if not may_run:
        exits.say("not run; nothing was spent")
        return
    show(shell, run(shell, plan))


def run(shell: Shell, plan: Plan) -> Release:
    """Run a plan. Raises dpsql.Error, Cancelled."""
    entries: list[str] = []
    try:
        return shell.connection.run(plan, fresh=shell.fresh, charging=entries.append)
    except KeyboardInterrupt:
        raise Cancelled(_cost_of(shell, entries)) from None


class Cancelled(KeyboardInterrupt):
    """A query that was stopped. Its text says what that cost."""


def _cost_of(shell: Shell, entries: Collection[str]) -> str:
    """What is said of a run that was stopped. entries: ids of what it may have charged."""
    try:
        charged = accounts.charged(shell, entries)
    except Error:
        return exits.interrupted()
    if charged == PrivacyLoss():
        return "cancelled; nothing was charged"
    return f"cancelled; {charged} was charged before the engine started, and is not given back"


def agreed(shell: Shell, plan: Plan, doubtful: bool) -> bool:
    """Whether a query may run: nobody has to be asked, or he agreed. doubtful: something was said against it."""
    limit = shell.looks.confirm
    if shell.confirm is None or shell.yes or limit is None:
        return True
    price = shell.connection.charge(plan, fresh=shell.fresh).loss
    left = left_for(shell, plan)
    if price == PrivacyLoss() or (left is not None and not price.within(left)):
        return True  # free, or about to be refused
    if left is None:
        return not doubtful or shell.confirm(f"This costs {price}. Run it all the same?")
    part = accounts.share(price, left)
    if part <= limit and not doubtful:
        return True
    return shell.confirm(f"This costs {price}, {percent(part)} of what is left ({left_words(price, left)}). Run it?")


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
    if shell.crossed is None:
        text = answer_text(release, format, style, level, out.stream)
    else:
        text = _crossed(shell, release, format, style, level)
    if (
        shell.crossed is None
        and looks.expanded is None
        and format in (Format.TABLE, Format.BOX)
        and _too_wide(text, out.columns)
    ):
        text = answer_text(release, Format.VERTICAL, style, level, out.stream) if release.rows else text
    remarks = tuple(r for r in (account_remark(shell.connection, shell.analyst),) if r)
    shown = level if format in WITH_WIDTHS and looks.intervals is not Intervals.OFF else None
    ends = "intervals" if looks.intervals is Intervals.COLS else "±"
    footer = ""
    if looks.footer and not looks.tuples_only and format is not Format.JSON:
        footer = footer_of(release, left_after(shell.connection, release), remarks, shown, ends)
    below = f"{footer}\n" if footer and format in FOR_PEOPLE else ""
    if shell.prompting and format in FOR_PEOPLE and (text or below):
        below += "\n"
    out.write(text, looks.pager, below)
    if format not in FOR_PEOPLE and footer and not shell.quiet:
        exits.say(footer)


def _crossed(shell: Shell, release: Release, format: Format, style: Style, level: Fraction) -> str:
    """The answer by two of its columns, as a table for people."""
    header, rows = columns_and_cells(release, style, level)
    assert shell.crossed is not None
    crossed = crosstab.crossed(header, rows, crosstab.places(release.columns, shell.crossed))
    text = inert(cells_text(*crossed, format if format in WITH_WIDTHS else Format.TABLE, style))
    return f"{text}\n" if text else ""


def _too_wide(text: str, columns: int | None) -> bool:
    return columns is not None and any(line_width(line) > columns for line in text.split("\n"))


def located(error: Error, sql: str, place: Place) -> Error:
    """The error with its findings at the place of the input that they are about, and with what helps in the shell."""
    error.diagnostics = tuple(_located(_helped(d, sql), sql, place) for d in error.diagnostics)
    return error


def _located(d: Diagnostic, sql: str, place: Place) -> Diagnostic:
    d = in_full(d, sql)
    if place.name == "<sql>" or d.source is None or d.source.text != sql:
        return d
    by = place.line + place.column
    source = Source("\n" * place.line + " " * place.column + sql, place.name)
    fix = None if d.fix is None else d.fix.moved(by)
    return replace(d, source=source, span=None if d.span is None else d.span.moved(by), fix=fix)


def _helped(d: Diagnostic, sql: str) -> Diagnostic:
    if d.code == "DP012" and _TABLES.match(sql):
        return replace(d, help=("in this shell:  \\d  lists tables,  \\d TABLE  shows one",))
    if d.code in _HELP:
        return replace(d, help=(_HELP[d.code], *d.help))
    return d
