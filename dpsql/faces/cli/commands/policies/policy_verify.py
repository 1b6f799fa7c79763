"""`dpsql policy verify`: every promise of a policy against the data. 0 all kept, 1 broken or doubtful, 2 no data."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import assert_never

from dpsql.diagnostics.layout import one_line, printable
from dpsql.faces.cli import exits
from dpsql.faces.cli.json_text import document
from dpsql.faces.cli.options import ExplainFormat
from dpsql.service.checks.verify import Checked, Verification, verify_policy

WARNING = "for the custodian: exact numbers about private data; not differentially private"


def run(file: str, format: ExplainFormat, threads: int | None, memory_limit: str | None, progress: bool) -> int:
    """Raises dpsql.Error if policy or data cannot be opened, or the engine fails."""
    found = verify_policy(file, threads=threads, memory_limit=memory_limit, progress=progress)
    match format:
        case ExplainFormat.TEXT:
            print(printable("\n".join(_text(found))))
        case ExplainFormat.JSON:
            listed = [asdict(c) for c in found.checks]
            head = {"warning": WARNING, "policy": found.policy, "hash": found.hash, "holds": found.holds}
            print(document({**head, "checks": listed}))
        case _:
            assert_never(format)
    return exits.OK if found.holds else exits.CHECK_FINDINGS


def _text(found: Verification) -> list[str]:
    """A line for each check, in the policy's order; a broken promise has its consequence and its repair below it."""
    places = [_place(c) for c in found.checks]
    width = max(map(len, places), default=0)
    lines = [f"{WARNING}.", ""]
    for place, check in zip(places, found.checks, strict=True):
        lines.append(f"{check.status:<10}  {place:<{width}}  {one_line(f'{check.where}: {_said(check)}')}")
        if check.status in ("broken", "doubtful"):
            lines += [f"{'':<10}  if false: {check.when_false}", f"{'':<10}  repair:   {one_line(str(check.repair))}"]
    return [
        *lines,
        "",
        _summary(found),
        *([_NOT_TO_CHOOSE_BY] if any(c.status == "info" for c in found.checks) else []),
    ]


_NOT_TO_CHOOSE_BY = (
    "choose no limits or bounds by these numbers, which would give them away: "
    "`dpsql policy suggest` finds such, and pays"
)


def _place(check: Checked) -> str:
    return "" if check.line is None else one_line(f"{check.file}:{check.line}")


def _said(check: Checked) -> str:
    match check.status:
        case "ok" | "broken":
            most = "at most " if check.comparison == "at_most" and check.promised else ""
            return f"{check.measures}: {check.measured:,} (promised {most}{check.promised:,})"
        case "info":
            if check.of is None or check.measured is None:
                return f"{check.claim}: {check.measured:,}"
            return f"{check.measures}: {check.measured:,} of {check.of:,}{_share(check.measured, check.of)}"
        case "doubtful":
            of, measured = check.of or 0, check.measured or 0
            return f"{check.claim}: {check.measures}: {measured:,} of {of:,}{_share(measured, of)}"
        case "enforced":
            return f"{check.claim}: enforced by the plan"
        case "untestable":
            return f"{check.claim}: the data cannot tell"
        case _:
            assert_never(check.status)


def _share(part: int, whole: int) -> str:
    """In percent; nothing of nothing."""
    return f" ({100 * part / whole:.2g} %)" if whole else ""


def _summary(found: Verification) -> str:
    n = Counter(c.status for c in found.checks)
    tested = n["ok"] + n["broken"]
    first = f"this data breaks {n['broken'] or 'none'} of {tested} promises"
    if found.holds:
        first += " and proves none: they are about any other data, too"
    if n["doubtful"]:
        first += f"; it speaks against {len({c.where for c in found.doubtful})} that no data can refute"
    return f"policy {found.policy}: {first}; {n['enforced']} enforced, {n['untestable']} that no data can test"
