"""Diagnostics as text with carets, as one line each, and as records for JSON.

error[DP201]: SUM(v.cost) has no bounds, so its sensitivity is unbounded
  --> queries/cost.sql:1:20
   | select region, sum(cost) from visits v join patients p using (patient_id) group by region;
   |                    ^^^^ numeric column without `bounds`
   = help: custodian: add  bounds: [0, 5000]   or, in this query:  SUM(CLIP(cost, 0, 5000))
   = note: nothing was run and nothing was spent. `dpsql rule DP201`
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dpsql.diagnostics.diagnostic import Diagnostic, Fix, Mark, Source, Span
from dpsql.diagnostics.layout import MarkedLine, anchor, inert, marked_lines, one_line, visible, width
from dpsql.diagnostics.note import NOTHING_RAN, Note, Topic

_MOST_LINES = 6  # of a span; the middle of a longer one is left out
_RESET = "\x1b[0m"
_STYLES = {"error": "\x1b[1;31m", "warning": "\x1b[1;33m", "frame": "\x1b[34m", "bold": "\x1b[1m"}


def render_text(
    diagnostics: Sequence[Diagnostic], color: bool = False, columns: int | None = None, *, spends: bool = True
) -> str:
    """The full form, with source lines and carets; findings are separated by an empty line, no line end at the end.

    `color` adds ANSI colours. `columns`: the width of a terminal, at which words go on in a new line; source lines, to
    which carets point, stay as they are. Neither control characters of the source nor commands to CI are printed.
    spends: whether whoever says it could have spent something, so that a refusal says that nothing was spent.
    """
    return inert("\n\n".join("\n".join(_text_lines(diagnostic, color, columns, spends)) for diagnostic in diagnostics))


def render_concise(diagnostics: Sequence[Diagnostic]) -> str:
    """One `path:line:column: CODE message` per finding; the parts of the place that are not known are left out."""
    return "\n".join(f"{_prefix(d)}{d.code} {one_line(d.message)}" for d in diagnostics)


Record = dict[str, "str | int | bool | Record | list[Record] | None"]
"""What stands in JSON for a finding."""


def as_record(diagnostic: Diagnostic, statement: str | None = None) -> Record:
    """The stable record of one finding.

    Lines and columns count from 1 in characters; `end_column` is the first column after the span. `help` joins the
    repairs with line ends. `fix` is a repair that a program can make, null where there is none: its message, whether
    it is safe (the meaning stays as it is) and its edits, each a place and the text to put there. `statement` is the
    statement the finding is in: `statement` if given, else the whole text for a finding in SQL, else null.
    """
    source, span = diagnostic.source, _place(diagnostic)
    start = source.position(span.start) if source and span else None
    end = source.position(span.end) if source and span else None
    if statement is None and source is not None and not is_about_policy(diagnostic.code):
        statement = source.text.strip() or None
    return {
        "code": diagnostic.code,
        "message": one_line(diagnostic.message),
        "path": source.name if source else None,
        "line": start[0] if start else None,
        "column": start[1] if start else None,
        "end_line": end[0] if end else None,
        "end_column": end[1] if end else None,
        "help": "\n".join(diagnostic.help) or None,
        "fix": _fix_record(diagnostic.fix, source) if diagnostic.fix and source else None,
        "statement": statement,
    }


def _fix_record(fix: Fix, source: Source) -> Record:
    edits: list[Record] = []
    for edit in fix.edits:
        (line, column), (end_line, end_column) = source.position(edit.span.start), source.position(edit.span.end)
        place: Record = {"line": line, "column": column, "end_line": end_line, "end_column": end_column}
        edits.append({**place, "text": edit.text})
    return {"message": one_line(fix.message), "safe": fix.safe, "edits": edits}


_CHARGED = ("DP407", "DP212")
"""Codes that say themselves what was spent: a ledger that fails while it is written; a search that found nothing."""


def closing_note(diagnostic: Diagnostic, spends: bool = True) -> str:
    """The last note of a finding: that nothing was spent, if that is certain and news, and how to read the page."""
    page = f"`dpsql rule {diagnostic.code}`"
    return f"{NOTHING_RAN}. {page}" if spends and not _noted(diagnostic) and _means_nothing_ran(diagnostic) else page


def says_nothing_ran(diagnostic: Diagnostic) -> bool:
    """Whether a finding says that nothing was run and nothing was spent, in its notes or in the last of them."""
    return _noted(diagnostic) or _means_nothing_ran(diagnostic)


def _noted(diagnostic: Diagnostic) -> bool:
    return any(isinstance(note, Note) and note.topic is Topic.NOTHING_RAN for note in diagnostic.notes)


def _means_nothing_ran(diagnostic: Diagnostic) -> bool:
    """By its code."""
    if diagnostic.code in _CHARGED or diagnostic.mark is Mark.SAYS_CHARGE:
        return False
    refusal = diagnostic.severity == "error" and diagnostic.code[:3] in ("DP1", "DP2", "DP3", "DP4")
    return refusal or diagnostic.code.startswith("DP01") or diagnostic.code == "DP905"


def is_about_policy(code: str) -> bool:
    """Whether findings of this code point into a policy file (or at data), not into SQL."""
    return code.startswith("DP00")


def _text_lines(diagnostic: Diagnostic, color: bool, columns: int | None, spends: bool) -> Iterator[str]:
    def paint(text: str, style: str) -> str:
        return f"{_STYLES[style]}{text}{_RESET}" if color and text else text

    tone = "warning" if diagnostic.severity == "warning" else "error"
    head = f"{tone}[{one_line(diagnostic.code)}]"
    first, *rest = _folded(f"{head}: {one_line(diagnostic.message)}", columns, 0, 2)
    yield f"{paint(head, tone)}{paint(first[len(head) :], 'bold')}"
    yield from (f"  {paint(line, 'bold')}" for line in rest)
    gutter = paint("   |", "frame")
    place = _place(diagnostic)
    if diagnostic.source is not None:
        yield f"{paint('  -->', 'frame')} {_location(diagnostic.source, place)}"
    if diagnostic.source is not None and place is not None:
        lines = list(marked_lines(diagnostic.source, place))
        for line in _shortened(lines):
            if line is None:
                yield f"{gutter} …"
                continue
            underline = " " * line.start + paint("^" * (line.end - line.start), tone)
            said = one_line(diagnostic.label) if diagnostic.label and line is lines[-1] else ""
            beside = columns is None or 5 + line.end + 1 + sum(map(width, said)) <= columns
            yield f"{gutter} {line.text}".rstrip()
            yield f"{gutter} {underline}{' ' + paint(said, tone) if said and beside else ''}"
            if not beside:
                yield from (f"{gutter} {paint(part, tone)}" for part in _folded(said, columns, 5, 5))
    elif diagnostic.label:
        yield f"{gutter} {one_line(diagnostic.label)}"
    for kind, texts in (("help", diagnostic.help), ("note", (*diagnostic.notes, closing_note(diagnostic, spends)))):
        for text in texts:
            first, *rest = [p for line in text.splitlines() or [""] for p in _folded(_clean(line), columns, 11, 11)]
            yield f"{paint('   =', 'frame')} {paint(kind + ':', 'bold')} {first}"
            for line_of_text in rest:
                yield f"           {line_of_text}".rstrip()


def _folded(text: str, columns: int | None, first: int, rest: int) -> list[str]:
    """The lines of a text that leave so many columns free in front of the first one and of the others."""
    if columns is None or first + sum(map(width, text)) <= columns:
        return [text]
    lines, free = [""], max(columns - first, 20)
    for word in text.split(" "):
        size = sum(map(width, word)) + 1
        if lines[-1] and size > free:
            lines.append("")
            free = max(columns - rest, 20)
        lines[-1] += f"{word} "
        free -= size
    return [line.strip() for line in lines]


def _shortened(lines: Sequence[MarkedLine]) -> Iterator[MarkedLine | None]:
    """The lines, or their first ones, a gap (None) and the last one."""
    if len(lines) <= _MOST_LINES:
        yield from lines
    else:
        yield from lines[: _MOST_LINES - 2]
        yield None
        yield lines[-1]


def _place(diagnostic: Diagnostic) -> Span | None:
    if diagnostic.source is None or diagnostic.span is None:
        return None
    return anchor(diagnostic.source, diagnostic.span)


def _location(source: Source, place: Span | None) -> str:
    if place is None:
        return one_line(source.name)
    line, column = source.position(place.start)
    return f"{one_line(source.name)}:{line}:{column}"


def _prefix(diagnostic: Diagnostic) -> str:
    return f"{_location(diagnostic.source, _place(diagnostic))}: " if diagnostic.source is not None else ""


def _clean(text: str) -> str:
    return "".join(visible(character) for character in text.replace("\t", "    "))
