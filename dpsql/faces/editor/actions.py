"""Quick fixes: edits that an editor offers at a finding. A person chooses them, so guesses are offered, too."""

from __future__ import annotations

from dataclasses import dataclass

from dpsql.diagnostics.diagnostic import Edit, Source, Span
from dpsql.faces.check.examine.examine_text import check_document
from dpsql.faces.check.examine.selection import is_protected
from dpsql.faces.check.report.finding import Finding
from dpsql.faces.check.report.fixing import fix_text
from dpsql.faces.editor.file_settings import Look
from dpsql.frontend.text.repairs import alternatives
from dpsql.frontend.text.split import split_text


@dataclass(frozen=True, slots=True)
class Action:
    """One offer. finding: what it is about, None for the whole file. preferred: it keeps the meaning."""

    title: str
    edits: tuple[Edit, ...]
    finding: Finding | None
    preferred: bool = False


def actions(look: Look, span: Span) -> list[Action]:
    """What can be done about the findings at a place of the text: repairs first, then comments that ignore them."""
    near = [f for f in look.findings if _touches(f, span, look.text)]
    found = []
    for finding in near:
        fix = finding.diagnostic.fix
        if fix is not None:
            found.append(Action(f"{finding.diagnostic.code}: {fix.message}", fix.edits, finding, fix.safe))
        elif look.setting is not None and finding.diagnostic.source is not None and not look.rendered:
            dialect = look.setting.options.dialect
            for guess in alternatives(finding.diagnostic, finding.diagnostic.source, dialect):
                found.append(Action(f"{finding.diagnostic.code}: {guess.message}", guess.edits, finding))
    for finding in near:
        comment = _ignoring(look, finding)
        if comment is not None:
            found.append(Action(f"Ignore {finding.diagnostic.code} for this statement", (comment,), finding))
    return found


def fix_all(look: Look, name: str) -> Action | None:
    """Every repair that keeps the meaning, in the whole text; None if there is none."""
    setting = look.setting
    if setting is None or not any(f.diagnostic.fix is not None and f.diagnostic.fix.safe for f in look.findings):
        return None
    fixed = fix_text(
        look.text, lambda text: check_document(setting.document(Source(text, name)), setting.policy, setting.options)
    )
    return Action("Repair what keeps the meaning", (Edit(Span(0, len(look.text)), fixed.text),), None, True)


def _touches(finding: Finding, span: Span, text: str) -> bool:
    own = finding.diagnostic.span
    about = finding.diagnostic.source is not None and finding.diagnostic.source.text == text
    return about and own is not None and own.start <= span.end and span.start <= own.end


def _ignoring(look: Look, finding: Finding) -> Edit | None:
    """A comment above the statement; None for what must not be ignored, and where no line of its own is free."""
    diagnostic, setting = finding.diagnostic, look.setting
    if setting is None or look.rendered or diagnostic.span is None:
        return None
    if is_protected(diagnostic.code) or diagnostic.code == "DP902":
        return None
    at = diagnostic.span.start
    parts = split_text(look.text, setting.options.dialect).statements
    start = next((p.start for p in parts if p.start <= at <= p.end), None)
    if start is None:
        return None
    line = look.text.rfind("\n", 0, start) + 1
    indent = look.text[line:start]
    if indent.strip():
        return None
    end = "\r\n" if "\r\n" in look.text else "\n"
    return Edit(Span(start, start), f"-- dpsql: ignore[{diagnostic.code}] say here why it is right{end}{indent}")
