"""What the tests of the check share: a policy, statements that are clean, refused and warned about, and settings."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from dpsql.diagnostics.diagnostic import Source
from dpsql.faces.check.documents.document import Document
from dpsql.faces.check.examine.check_settings import Asked, CheckSettings, settle
from dpsql.faces.check.examine.examine_text import TextOptions, check_text
from dpsql.faces.check.report.finding import Finding
from dpsql.policy.load import load_policy
from dpsql.policy.policy import Policy

POLICY = Path(__file__).resolve().parents[1] / "fixtures" / "policies" / "pages.yaml"
GOOD = "SELECT region, COUNT(*) AS n FROM patients GROUP BY region"
NO_KEY = "SELECT fee, COUNT(*) AS n FROM visits GROUP BY fee"  # DP301, which may be ignored
NO_BOUNDS = "SELECT SUM(fee) AS f FROM visits"  # DP201, which may not
DEAR = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 5) COUNT(*) AS n FROM patients"
CHEAP = DEAR.replace("= 5", "= 0.25")


@cache
def policy() -> Policy:
    return load_policy(POLICY)


def found(text: str, options: TextOptions | None = None, name: str = "q.sql") -> list[Finding]:
    return check_text(Source(text, name), policy(), options)


def shown(text: str, options: TextOptions | None = None, name: str = "q.sql") -> list[str]:
    """`line:code what-the-span-covers` of each finding."""
    lines = []
    for finding in found(text, options, name):
        d = finding.diagnostic
        assert d.source is not None and d.span is not None and d.source.name == name and d.source.text == text
        lines.append(f"{d.source.position(d.span.start)[0]}:{d.code} {text[d.span.start : d.span.end]}")
    return lines


def codes(text: str, options: TextOptions | None = None, name: str = "q.sql") -> list[str]:
    return [finding.diagnostic.code for finding in found(text, options, name)]


def settings(folder: Path, **asked: object) -> CheckSettings:
    return settle(Asked(**{"policy": str(POLICY), "no_config": True, **asked}), folder)  # type: ignore[arg-type]


def documents(*texts: str) -> list[Document]:
    return [Document(Source(text, f"f{number}.sql")) for number, text in enumerate(texts)]
