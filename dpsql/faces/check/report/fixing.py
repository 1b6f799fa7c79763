"""`--fix`: the repairs that findings bring, made in the text; and the file written so that nothing else changes."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dpsql.diagnostics.diagnostic import Diagnostic, Edit, Fix, Span
from dpsql.diagnostics.errors import reject
from dpsql.faces.check.documents.check_comments import Remark
from dpsql.faces.check.report.finding import Finding

ROUNDS = 20
"""How often a text is looked at again at most."""

_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class FixedText:
    """A text after its repairs, and how many were made."""

    text: str
    count: int


def fixes_of(findings: Iterable[Finding], unsafe: bool = False) -> list[Fix]:
    """The fixes that may be made of these findings: safe ones, or all."""
    fixes = (finding.diagnostic.fix for finding in findings)
    return [fix for fix in fixes if fix is not None and (fix.safe or unsafe)]


def fix_text(text: str, find: Callable[[str], Sequence[Finding]], unsafe: bool = False) -> FixedText:
    """Make every fix, look again, and so on until nothing changes: then another run changes nothing either.

    find: the findings of a text. unsafe: repairs that guess what was meant are made, too.
    """
    seen, count = {text}, 0
    for _ in range(ROUNDS):
        after, made = apply_fixes(text, fixes_of(find(text), unsafe))
        if after in seen:
            break
        seen.add(after)
        text, count = after, count + made
    return FixedText(text, count)


def apply_fixes(text: str, fixes: Sequence[Fix]) -> tuple[str, int]:
    """The text after the fixes, and how many were made: each whole or not at all; where two overlap, the first."""
    chosen: list[Edit] = []
    count = 0
    for fix in sorted((f for f in fixes if f.edits), key=lambda f: min(e.span for e in f.edits)):
        if not any(_overlap(edit.span, other.span) for edit in fix.edits for other in chosen):
            chosen += fix.edits
            count += 1
    pieces, at = [], 0
    for edit in sorted(chosen, key=lambda e: e.span):
        pieces += [text[at : edit.span.start], edit.text]
        at = edit.span.end
    return "".join([*pieces, text[at:]]), count


def _overlap(one: Span, other: Span) -> bool:
    """Two insertions at one place overlap, too: their order would be a guess."""
    return one == other or (one.start < other.end and other.start < one.end)


# --- comments that ignore nothing ------------------------------------------------------------------------------------


def with_removal(text: str, remarks: Sequence[Remark], diagnostic: Diagnostic) -> Diagnostic:
    """A finding about an ignored code that does not occur, with the fix that takes the code out of its comment."""
    span = diagnostic.span
    remark = None if span is None else next((r for r in remarks if _within(span, r.span)), None)
    if span is None or remark is None:
        return diagnostic
    if len(remark.codes) == 1 and not remark.mistakes:
        return replace(diagnostic, fix=Fix("remove the comment", (_without_comment(text, remark.span),), safe=True))
    behind = re.compile(r"\s*,\s*").match(text, span.end)
    if behind is not None:
        gone = Span(span.start, behind.end())
    else:
        gone = Span(len(text[: span.start].rstrip(" \t,")), span.end)
    return replace(diagnostic, fix=Fix("remove the code", (Edit(gone, ""),), safe=True))


def _within(span: Span, around: Span) -> bool:
    return around.start <= span.start and span.end <= around.end


def _without_comment(text: str, span: Span) -> Edit:
    """Without the comment, and without its line if there is nothing else in it."""
    before = text[text.rfind("\n", 0, span.start) + 1 : span.start]
    line_end = text.find("\n", span.end)
    behind = text[span.end : len(text) if line_end < 0 else line_end]
    if not before.strip() and not behind.strip():
        return Edit(Span(span.start - len(before), len(text) if line_end < 0 else line_end + 1), "")
    if not behind.strip():
        return Edit(Span(span.start - (len(before) - len(before.rstrip())), span.end), "")
    apart = not before or before[-1].isspace() or behind[0].isspace()
    return Edit(span, "" if apart else " ")


# --- files -----------------------------------------------------------------------------------------------------------


def write_fixed(name: str, before: str, after: str) -> None:
    """Put `after` into a file that holds `before`: whole or not at all, with its BOM, its rights, and through links.

    Line ends are those of the text. Raises Rejected DP903 if it cannot be written or has changed meanwhile.
    """
    path = Path(os.path.realpath(name))
    try:
        raw = path.read_bytes()
        mark = _BOM if raw.startswith(_BOM) else b""
        if raw[len(mark) :] != before.encode("utf-8"):
            raise reject("DP903", f"{name!r} was changed while it was checked", help=["run it again"])
        _replace(path, mark + after.encode("utf-8"))
    except OSError as error:
        reason = (error.strerror or "it cannot be written").lower()
        raise reject("DP903", f"{name!r} cannot be written: {reason}") from None


def _replace(path: Path, content: bytes) -> None:
    mode = path.stat().st_mode & 0o7777
    if not os.access(path, os.W_OK):
        raise PermissionError(13, "permission denied")
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, mode)  # not fchmod: on Windows Python has that since 3.13 only
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
