"""`dpsql check`: every statement of every file against a policy, from texts alone. 0 clean, 1 findings, 2 could not."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import assert_never

from dpsql.cli import exits
from dpsql.cli.inputs import read_file, read_stdin
from dpsql.cli.json_text import dumps
from dpsql.cli.options import CheckFormat
from dpsql.diagnostics.diagnostic import Diagnostic, Source, Span
from dpsql.diagnostics.errors import Error, reject
from dpsql.diagnostics.render import as_record, render_concise, render_text
from dpsql.policy.load import load_policy
from dpsql.policy.models import Policy
from dpsql.session.check import check
from dpsql.sql.parse import require_dialect
from dpsql.sql.split import Statement, split_statements

_SKIPPED = frozenset({"node_modules", "__pycache__", "venv", "site-packages", "dbt_packages"})


@dataclass(frozen=True, slots=True)
class Finding:
    """A diagnostic, pointing into its file, and the text of the statement it is about."""

    diagnostic: Diagnostic
    statement: str


def run(paths: Sequence[str], policy: str, format: CheckFormat, allow_empty: bool, dialect: str) -> int:
    """Raises dpsql.Error if nothing could be checked at all; files that cannot be read are named and make it 2."""
    require_dialect(dialect)
    loaded = load_policy(policy)
    findings: list[Finding] = []
    files = statements = 0
    unreadable = False
    for name in dict.fromkeys(name for path in paths for name in sql_files(path)):
        try:
            source = read_stdin() if name == "-" else read_file(name)
        except Error as error:
            exits.complain(error.diagnostics)
            unreadable = True
            continue
        parts = split_statements(source.text, dialect)
        files, statements = files + 1, statements + len(parts)
        for part in parts:
            findings += check_statement(source, part, loaded, dialect)
    if not files and not unreadable and not allow_empty:
        raise reject(
            "DP903", f"no *.sql file in {', '.join(paths)}", help=["name files or folders; or use  --allow-empty"]
        )
    _print(findings, format)
    if format is CheckFormat.FULL:
        exits.say(_summary(findings, statements, files))
    if unreadable:
        return exits.CHECK_IMPOSSIBLE
    return exits.CHECK_FINDINGS if any(f.diagnostic.severity == "error" for f in findings) else exits.OK


def sql_files(path: str) -> Iterator[str]:
    """The files that an argument stands for: itself, or every *.sql below a folder, sorted; hidden folders are left
    out, and so are those of packages."""
    if path == "-" or not os.path.isdir(path):
        yield path
        return
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(f for f in folders if not f.startswith(".") and f not in _SKIPPED)
        for name in sorted(names):
            if name.lower().endswith(".sql"):
                yield str(Path(folder) / name)


def check_statement(source: Source, part: Statement, policy: Policy, dialect: str) -> list[Finding]:
    """The findings of one statement of a file, their places counted in the file."""
    found = []
    for d in check(part.text, policy, dialect=dialect, name=source.name):
        if d.source is None or d.source.text == part.text:
            span = d.span if d.span is not None and d.source is not None else Span(0, len(part.text.split("\n", 1)[0]))
            d = replace(d, source=source, span=Span(span.start + part.start, span.end + part.start))
        found.append(Finding(d, part.text))
    return found


def _print(findings: Sequence[Finding], format: CheckFormat) -> None:
    diagnostics = [f.diagnostic for f in findings]
    match format:
        case CheckFormat.FULL:
            if diagnostics:
                print(render_text(diagnostics, color=exits.wants_color(sys.stdout)))
        case CheckFormat.CONCISE:
            if diagnostics:
                print(render_concise(diagnostics))
        case CheckFormat.JSON:
            records = [f"  {dumps(as_record(f.diagnostic, f.statement))}" for f in findings]
            print("[\n" + ",\n".join(records) + "\n]" if records else "[]")
        case _:
            assert_never(format)


def _summary(findings: Sequence[Finding], statements: int, files: int) -> str:
    found = _counted(len(findings), "finding")
    return f"checked {_counted(statements, 'statement')} in {_counted(files, 'file')}: {found}"


def _counted(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"
