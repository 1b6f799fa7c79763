"""SARIF 2.1.0 (OASIS Standard, errata 01), for GitHub's code scanning and viewers in editors.

Paths are URI references relative to the folder that the check was run in. Columns count UTF-16 code units, as most
viewers do, and the run says so. Rules are those of the findings, with their pages as help.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from dpsql import __version__
from dpsql.diagnostics.codes import CODES
from dpsql.diagnostics.diagnostic import Diagnostic, Edit, Fix, Source
from dpsql.diagnostics.layout import anchor, one_line
from dpsql.diagnostics.pages_loader import load_page
from dpsql.faces.check.report.finding import Finding, Report
from dpsql.faces.check.report.formats.texts import as_json, file_name, fingerprints, story, uri_of, utf16_region

SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
BASE: Final = "%SRCROOT%"


def render(report: Report) -> str:
    """One run. Files that could not be read are notifications of it, and it then counts as not successful."""
    codes = sorted({finding.diagnostic.code for finding in report.findings})
    order = {code: number for number, code in enumerate(codes)}
    marks = fingerprints(report.findings)
    run = {
        "tool": {
            "driver": {
                "name": "dpsql",
                "version": __version__,
                "semanticVersion": __version__,
                "rules": [_rule(code) for code in codes],
            }
        },
        "columnKind": "utf16CodeUnits",
        "originalUriBaseIds": {BASE: {"description": {"text": "The folder that the check was run in."}}},
        "invocations": [
            {
                "executionSuccessful": not report.unreadable,
                "toolExecutionNotifications": [_notification(diagnostic) for diagnostic in report.unreadable],
            }
        ],
        "results": [_result(f, order, mark) for f, mark in zip(report.findings, marks, strict=True)],
    }
    return as_json({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]})


def _rule(code: str) -> dict[str, Any]:
    entry, page = CODES[code], load_page(code)
    level = "warning" if code.startswith("DP5") else "error"
    return {
        "id": code,
        "name": "".join(word.capitalize() for word in entry.slug.split("-")),
        "shortDescription": {"text": entry.title},
        "fullDescription": {"text": _meaning(page)},
        "help": {"text": page, "markdown": page},
        "defaultConfiguration": {"level": level},
        "properties": {"tags": ["privacy", "sql"], "problem.severity": level, "precision": "very-high"},
    }


def _meaning(page: str) -> str:
    """The whole sentences of the first paragraph of *What it means*, on one line, without one that leads to a list."""
    section = page.split("## What it means\n", 1)[1].strip()
    paragraph = " ".join(re.split(r"\n\s*\n", section, maxsplit=1)[0].split())
    return paragraph[: paragraph.rfind(".") + 1]


def _result(finding: Finding, order: Mapping[str, int], mark: str) -> dict[str, Any]:
    diagnostic = finding.diagnostic
    result: dict[str, Any] = {
        "ruleId": diagnostic.code,
        "ruleIndex": order[diagnostic.code],
        "level": _level(diagnostic),
        "message": {"text": _message(diagnostic)},
        "partialFingerprints": {"dpsqlFinding/v1": mark},
    }
    if diagnostic.source is not None and diagnostic.source.name:
        result["locations"] = [_location(diagnostic)]
        if diagnostic.fix is not None:
            result["fixes"] = [_fix(diagnostic.fix, diagnostic.source)]
    return result


def _level(diagnostic: Diagnostic) -> str:
    return "warning" if diagnostic.severity == "warning" else "error"


def _message(diagnostic: Diagnostic) -> str:
    """A sentence first, because viewers show no more of it where there is little room."""
    first, *rest = story(diagnostic)
    return _escaped("\n".join([f"{first}.", *rest]))


def _escaped(text: str) -> str:
    """Plain text as section 3.11 of the standard wants it: braces are no placeholders, and brackets no links."""
    return text.replace("{", "{{").replace("}", "}}").replace("](", "] (")


def _artifact(name: str) -> dict[str, str]:
    uri = uri_of(name)
    return {"uri": uri} if uri.startswith("file:") else {"uri": uri, "uriBaseId": BASE}


def _location(diagnostic: Diagnostic) -> dict[str, Any]:
    found: dict[str, Any] = {"artifactLocation": _artifact(file_name(diagnostic))}
    if diagnostic.source is not None and diagnostic.span is not None:
        found["region"] = utf16_region(diagnostic.source, anchor(diagnostic.source, diagnostic.span))
    return {"physicalLocation": found}


def _fix(fix: Fix, source: Source) -> dict[str, Any]:
    return {
        "description": {"text": _escaped(one_line(fix.message))},
        "artifactChanges": [{"artifactLocation": _artifact(source.name), "replacements": _edits(fix.edits, source)}],
    }


def _edits(edits: Sequence[Edit], source: Source) -> list[dict[str, Any]]:
    return [
        {"deletedRegion": utf16_region(source, edit.span), "insertedContent": {"text": edit.text}} for edit in edits
    ]


def _notification(diagnostic: Diagnostic) -> dict[str, Any]:
    found: dict[str, Any] = {"level": "error", "message": {"text": _message(diagnostic)}}
    if file_name(diagnostic):
        found["locations"] = [_location(diagnostic)]
    return found
