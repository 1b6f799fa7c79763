"""How a report is printed: one module a format, each a function from the report to the text on standard output.

A text without a line end at its end; an empty text prints nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from dpsql.faces.check.report.finding import Report
from dpsql.faces.check.report.formats import concise, full, github, gitlab, json, sarif

Formatter: TypeAlias = Callable[[Report], str]

FORMATS: Final[dict[str, Formatter]] = {
    "full": full.render,
    "concise": concise.render,
    "json": json.render,
    "github": github.render,
    "sarif": sarif.render,
    "gitlab": gitlab.render,
}
"""Name of `--output-format` → its function."""
