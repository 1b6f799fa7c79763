"""JUnit's XML, as Jenkins, GitLab and others read it: each file is a test case, which its errors fail.

A file keeps its name however many findings it has, so that a history of results shows one line for each file. Warnings
do not fail a file; they are in `system-out`. A file that could not be read is a case with an `error`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final
from xml.sax.saxutils import escape as escape_text
from xml.sax.saxutils import quoteattr

from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.diagnostics.layout import inert, one_line
from dpsql.diagnostics.render import render_text
from dpsql.faces.check.report.finding import Report
from dpsql.faces.check.report.formats.texts import file_name, path_of

_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # XML 1.0, section 2.2


def render(report: Report) -> str:
    """One suite. No times and no host: the text depends on the files and the policy alone."""
    cases: dict[str, list[Diagnostic]] = {name: [] for name in report.names}
    for finding in report.findings:
        cases.setdefault(file_name(finding.diagnostic), []).append(finding.diagnostic)
    for name in map(file_name, report.unreadable):
        cases.pop(name, None)  # each of them is a case of its own
    lines = [_case(name, found) for name, found in cases.items()]
    lines += [_unreadable(diagnostic) for diagnostic in report.unreadable]
    warnings = [f.diagnostic for f in report.findings if f.diagnostic.severity == "warning"]
    if warnings:
        lines.append(f"    <system-out>{_text(render_text(warnings, spends=False))}</system-out>")
    failures = sum(any(d.severity == "error" for d in found) for found in cases.values())
    numbers = f'tests="{len(cases) + len(report.unreadable)}" failures="{failures}" errors="{len(report.unreadable)}"'
    suite = [f'  <testsuite name="dpsql check" {numbers}>', *lines, "  </testsuite>"]
    head = '<?xml version="1.0" encoding="UTF-8"?>'
    return "\n".join([head, f'<testsuites name="dpsql" {numbers}>', *suite, "</testsuites>"])


def _case(name: str, found: Sequence[Diagnostic]) -> str:
    errors = [diagnostic for diagnostic in found if diagnostic.severity == "error"]
    head = f"    <testcase {_named(path_of(name))}"
    if not errors:
        return f"{head}/>"
    summary = "; ".join(f"{d.code} {one_line(d.message)}" for d in errors)
    kinds = ", ".join(dict.fromkeys(d.code for d in errors))
    told = _text(render_text(errors, spends=False))
    failure = f"<failure type={_attribute(kinds)} message={_attribute(summary)}>{told}</failure>"
    return f"{head}>\n      {failure}\n    </testcase>"


def _unreadable(diagnostic: Diagnostic) -> str:
    message = one_line(diagnostic.message)
    error = f"<error type={_attribute(diagnostic.code)} message={_attribute(message)}>"
    case = f"    <testcase {_named(path_of(file_name(diagnostic)) or message)}>"
    return f"{case}\n      {error}{_text(render_text([diagnostic], spends=False))}</error>\n    </testcase>"


def _named(name: str) -> str:
    return f'classname="dpsql.check" name={_attribute(one_line(name) or "(no file)")}'


def _attribute(text: str) -> str:
    return _ascii(quoteattr(_NOT_XML.sub("\ufffd", text), {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"}))


def _text(text: str) -> str:
    return _ascii(escape_text(_NOT_XML.sub("\ufffd", text), {"\r": "&#13;"}))


def _ascii(text: str) -> str:
    return inert(text).encode("ascii", "xmlcharrefreplace").decode("ascii")
