"""`dpsql check`: every statement of every file against a policy, from texts alone. 0 clean, 1 findings, 2 could not."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from dpsql.checking.finding import Finding, Report
from dpsql.checking.formats import FORMATS, full
from dpsql.checking.statements import Options, check_statement
from dpsql.cli import exits
from dpsql.cli.inputs import read_file, read_stdin
from dpsql.cli.options import CheckFormat
from dpsql.diagnostics.errors import Error, reject
from dpsql.policy.load import load_policy
from dpsql.sql.parse import require_dialect
from dpsql.sql.split import split_statements

_SKIPPED = frozenset({"node_modules", "__pycache__", "venv", "site-packages", "dbt_packages"})


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
            findings += check_statement(source, part, loaded, Options(dialect))
    if not files and not unreadable and not allow_empty:
        raise reject(
            "DP903", f"no *.sql file in {', '.join(paths)}", help=["name files or folders; or use  --allow-empty"]
        )
    report = Report(tuple(findings), files, statements)
    _print(report, format)
    if format is CheckFormat.FULL:
        exits.say(_summary(findings, statements, files))
    if unreadable:
        return exits.CHECK_IMPOSSIBLE
    return exits.CHECK_FINDINGS if report.has_errors else exits.OK


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


def _print(report: Report, format: CheckFormat) -> None:
    if format is CheckFormat.FULL:
        text = full.render(report, color=exits.wants_color(sys.stdout))
    else:
        text = FORMATS[format.value](report)
    if text:
        print(text)


def _summary(findings: Sequence[Finding], statements: int, files: int) -> str:
    found = _counted(len(findings), "finding")
    return f"checked {_counted(statements, 'statement')} in {_counted(files, 'file')}: {found}"


def _counted(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"
