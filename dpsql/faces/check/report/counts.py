"""`--statistics`: how often each code was found."""

from __future__ import annotations

import json
from collections import Counter

from dpsql.diagnostics.codes import CODES
from dpsql.faces.check.report.finding import Report


def counts(report: Report) -> list[tuple[str, int]]:
    """Codes and how many findings have them, the most frequent first."""
    found = Counter(finding.diagnostic.code for finding in report.findings)
    return sorted(found.items(), key=lambda item: (-item[1], item[0]))


def as_text(report: Report) -> str:
    """A line for each code: number, code, what it means."""
    found = counts(report)
    width = max((len(str(number)) for _, number in found), default=0)
    return "\n".join(f"{number:>{width}}  {code}  {CODES[code].title}" for code, number in found)


def as_json(report: Report) -> str:
    """A list of objects `{"code", "count", "title"}`."""
    records = [{"code": code, "count": number, "title": CODES[code].title} for code, number in counts(report)]
    return "[\n" + ",\n".join(f"  {json.dumps(record)}" for record in records) + "\n]" if records else "[]"
