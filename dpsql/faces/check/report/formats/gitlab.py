"""GitLab's code quality report: a JSON list of issues, a subset of Code Climate's. A clean report is `[]`.

`location.path` is relative to the top of the repository, without `./`; `fingerprint` tells issues apart and recognises
an old one in the next pipeline.
"""

from __future__ import annotations

import hashlib
from typing import Any

from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.diagnostics.layout import one_line
from dpsql.faces.check.report.finding import Report
from dpsql.faces.check.report.formats.texts import as_json, code_span, file_name, fingerprints, path_of, place, story


def render(report: Report) -> str:
    """An issue for each finding, then one for each file that could not be read."""
    marks = fingerprints(report.findings)
    issues = [_issue(f.diagnostic, mark) for f, mark in zip(report.findings, marks, strict=True)]
    issues += [_issue(diagnostic, _mark(number, diagnostic)) for number, diagnostic in enumerate(report.unreadable)]
    return as_json(issues)


def _issue(diagnostic: Diagnostic, fingerprint: str) -> dict[str, Any]:
    line, column, end_line, end_column = place(diagnostic) or (1, 1, 1, 1)
    name = one_line(path_of(file_name(diagnostic)))
    return {
        "type": "issue",
        "check_name": diagnostic.code,
        "description": f"{diagnostic.code}: {one_line(diagnostic.message)}",
        "content": {"body": _markdown(diagnostic)},
        "categories": ["Security"],
        "severity": "minor" if diagnostic.severity == "warning" else "major",
        "fingerprint": fingerprint,
        "location": {
            "path": name or ".",
            "lines": {"begin": line, "end": end_line},
            "positions": {
                "begin": {"line": line, "column": column},
                "end": {"line": end_line, "column": end_column},
            },
        },
    }


def _markdown(diagnostic: Diagnostic) -> str:
    """What is said quotes the query, whose names could be links, images or mentions."""
    return "\n\n".join([*map(code_span, story(diagnostic)), f"`dpsql rule {diagnostic.code}` explains it."])


def _mark(number: int, diagnostic: Diagnostic) -> str:
    """Of a file that could not be read: there is no statement, and the message names the file."""
    text = f"unreadable\x00{number}\x00{diagnostic.code}\x00{diagnostic.message}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
