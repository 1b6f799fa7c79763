"""Workflow commands of GitHub Actions: each finding becomes an annotation of its line in a pull request.

`::error file=…,line=…,col=…,endLine=…,endColumn=…,title=…::text`, where `%`, line ends and, in properties, `:` and `,`
are escaped (GitHub's documentation of workflow commands). Columns are left out of a finding over several lines: the
runner refuses them there.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.diagnostics.layout import inert, one_line
from dpsql.faces.check.report.finding import Report
from dpsql.faces.check.report.formats.texts import file_name, path_of, place, story


def render(report: Report) -> str:
    """A command for each finding, then one for each file that could not be read; empty for a clean report."""
    return "\n".join(_command(d) for d in (*(f.diagnostic for f in report.findings), *report.unreadable))


def _command(diagnostic: Diagnostic) -> str:
    level = "warning" if diagnostic.severity == "warning" else "error"
    properties = ",".join(f"{name}={_property(value)}" for name, value in _properties(diagnostic))
    # It is one line: `::` is a command at its beginning only.
    return "::" + inert(f"{level} {properties}::{_data(chr(10).join(story(diagnostic)))}")


def _properties(diagnostic: Diagnostic) -> Iterator[tuple[str, str]]:
    name, found = file_name(diagnostic), place(diagnostic)
    if name:
        yield "file", one_line(path_of(name))
    if found is not None:
        line, column, end_line, end_column = found
        yield "line", str(line)
        if line == end_line:
            yield "col", str(column)
        yield "endLine", str(end_line)
        if line == end_line:
            yield "endColumn", str(end_column)
    yield "title", f"dpsql {diagnostic.code}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
