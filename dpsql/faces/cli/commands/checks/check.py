"""`dpsql check`: every statement of every file against a policy, from texts alone. 0 clean, 1 findings, 2 could not."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from dpsql.diagnostics.diagnostic import Diagnostic, Source
from dpsql.diagnostics.errors import CannotOpen, Error, reject
from dpsql.diagnostics.layout import one_line
from dpsql.faces.check.documents.checkout import require_inside
from dpsql.faces.check.documents.discovery import STDIN, discover, is_left_out
from dpsql.faces.check.documents.document import Document
from dpsql.faces.check.examine.check_settings import Asked, CheckSettings, settle
from dpsql.faces.check.examine.run_check import CheckOutcome, check_documents, load
from dpsql.faces.check.report import baseline as baselines
from dpsql.faces.check.report.finding import Finding, Report
from dpsql.faces.check.report.formats import FORMATS, full
from dpsql.faces.cli import exits
from dpsql.faces.cli.commands.checks.check_options import Wish
from dpsql.faces.cli.inputs import read_file, read_stdin


def run(paths: Sequence[str], asked: Asked, wish: Wish) -> int:
    """Raises dpsql.Error if nothing could be checked at all; files that cannot be read are named and make it 2."""
    if wish.unsafe_fixes and not wish.fix and not wish.diff:
        raise reject("DP903", "--unsafe-fixes needs --fix or --diff", help=["look first:  --diff --unsafe-fixes"])
    if wish.statistics and wish.budget_report:
        raise reject("DP903", "--statistics and --budget-report were given together", help=["leave one of them out"])
    settings = settle(asked, Path.cwd())
    writing = wish.write_baseline is not None
    known = None if settings.baseline is None or writing else baselines.read_baseline(settings.baseline)
    if settings.making.dbt is not None:
        from dpsql.faces.cli.commands.checks.check_dbt import read_dbt

        settings, documents = read_dbt(paths, settings)
        refused: list[Diagnostic] = []
    else:
        documents, refused = read_documents(paths, settings, wish.stdin_filename)
    if not documents and not refused and not wish.allow_empty:
        raise reject(
            "DP903", f"no *.sql file in {', '.join(paths)}", help=["name files or folders; or use  --allow-empty"]
        )
    repaired_stdin = wish.fix and STDIN in paths
    if wish.fix or wish.diff:
        from dpsql.faces.cli.commands.checks import check_fix

        if wish.diff:
            exits.complain(refused)
            changed = check_fix.diff(documents, settings, wish.unsafe_fixes)
            return exits.CHECK_IMPOSSIBLE if refused else changed if not wish.exit_zero else exits.OK
        stdin = (wish.stdin_filename or "<stdin>") if repaired_stdin else None
        documents, failed = check_fix.write(documents, settings, wish.unsafe_fixes, stdin)
        refused += failed
    try:
        outcome = check_documents(documents, settings, refused, known)
    except CannotOpen as error:
        if settings.output_format != "full":  # where findings are looked for, those of the policy are, too
            print(FORMATS[settings.output_format](_of_policy(error)))
        raise
    report = outcome.report
    if report.unreadable:
        exits.complain(report.unreadable)
    if wish.write_baseline is not None and not report.unreadable:
        count = baselines.write_baseline(Path(wish.write_baseline), report.findings)
        exits.say(f"wrote {_counted(count, 'finding')} to {wish.write_baseline}")
        report = replace(report, findings=(), known=count)
    _print(replace(outcome, report=report), settings, wish, sys.stderr if repaired_stdin else sys.stdout)
    _say_gone(outcome, settings)
    status = _status(report, settings, wish)
    if wish.budget_report and status == exits.CHECK_FINDINGS:  # standard output does not say why
        from dpsql.faces.check.report.formats import concise

        exits.say(concise.render(report))
    if settings.output_format == "full":
        exits.say(_summary(report))
    return status


def read_documents(
    paths: Sequence[str], settings: CheckSettings, stdin_filename: str | None = None
) -> tuple[list[Document], list[Diagnostic]]:
    """The documents that the arguments stand for, in order; and why some could not be read."""
    found = discover(paths, settings.wanted)
    refused = [diagnostic for refusal in found.refusals for diagnostic in refusal.diagnostics]
    documents: list[Document] = []
    document = maker(settings)
    for name in found.names:
        if name == STDIN and stdin_filename is not None and is_left_out(stdin_filename, settings.wanted):
            continue
        try:
            if name != STDIN:
                require_inside(name)
            documents.append(document(read_file(name) if name != STDIN else _stdin(stdin_filename)))
        except Error as error:
            refused += error.diagnostics
    return documents, refused


def maker(settings: CheckSettings) -> Callable[[Source], Document]:
    """What makes a document of a file. Raises Rejected DP903 if the templater is not installed."""
    making = settings.making
    if making.templater == "none":
        return Document
    from dpsql.faces.check.documents.templates import Templater, Templates

    return Templater(Templates(making.variables, making.macros)).document


def _stdin(name: str | None) -> Source:
    source = read_stdin()
    return source if name is None else replace(source, name=name)


def _of_policy(error: CannotOpen) -> Report:
    """A report of what is wrong with the policy, in its file where it has a place."""
    findings = tuple(
        Finding(d, d.source.text[d.span.start : d.span.end]) for d in error.diagnostics if d.source and d.span
    )
    return Report(findings, unreadable=tuple(d for d in error.diagnostics if not (d.source and d.span)))


def _print(outcome: CheckOutcome, settings: CheckSettings, wish: Wish, stream: TextIO) -> None:
    text = _text(outcome, settings, wish, exits.wants_color(stream))
    if text:
        print(text, file=stream)


def _text(outcome: CheckOutcome, settings: CheckSettings, wish: Wish, color: bool) -> str:
    as_json = settings.output_format == "json"
    if wish.budget_report:
        from dpsql.faces.check.examine import prices

        found = prices.budget_report(outcome.examined, load(settings))
        return prices.as_json(found) if as_json else prices.as_text(found)
    if wish.statistics:
        from dpsql.faces.check.report import counts

        return counts.as_json(outcome.report) if as_json else counts.as_text(outcome.report)
    if settings.output_format == "full":
        return full.render(outcome.report, color=color)
    return FORMATS[settings.output_format](outcome.report)


def _say_gone(outcome: CheckOutcome, settings: CheckSettings) -> None:
    if not outcome.gone:
        return
    exits.say(f"the baseline {settings.baseline} holds what does not occur any more; write it anew:")
    for key, count in outcome.gone:
        exits.say(f"  {one_line(f'{key.path}: {key.code}')}" + (f" ({count} times)" if count > 1 else ""))


def _summary(report: Report) -> str:
    found = _counted(len(report.findings), "finding")
    known = f", {report.known} in the baseline" if report.known else ""
    fixable = sum(f.diagnostic.fix is not None and f.diagnostic.fix.safe for f in report.findings)
    repair = f"; --fix repairs {fixable}" if fixable else ""
    statements, files = _counted(report.statements, "statement"), _counted(report.files, "file")
    return f"checked {statements} in {files}: {found}{known}{repair}"


def _counted(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"


def _status(report: Report, settings: CheckSettings, wish: Wish) -> int:
    if report.unreadable:
        return exits.CHECK_IMPOSSIBLE
    failed = report.has_errors or (settings.strict and bool(report.findings))
    return exits.CHECK_FINDINGS if failed and not wish.exit_zero else exits.OK
