"""`-- dpsql: parameters(lo = 18, since = DATE '2024-01-01')`: values that a statement is checked with.

A file of queries has no caller who passes values, and a plan depends on them. The statement that a comment is about is
found as for all comments (check_comments.py). Values without a name are for `?`, in order. The comment is stronger than
values for all files, of the command line and of the configuration, which a statement takes only if it asks for them.
Nothing is executed. What is wrong with a comment is a DP013, which cannot be ignored.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dpsql.diagnostics.diagnostic import Diagnostic, Mark, Span
from dpsql.faces.check.documents.check_comments import PARAMETERS, Directive, Remark, directives_in
from dpsql.faces.check.documents.parameter_values import Value, Values, read_constant
from dpsql.frontend.placeholders import placeholders
from dpsql.frontend.text.split import Parts

_NAME = re.compile(r"\$?(\w+)\s*=\s*")
_BLANK = re.compile(r"\s*")
_UP_TO = re.compile(r"[^,)]*")
_FORM = "write  -- dpsql: parameters(lo = 18, since = DATE '2024-01-01')  for $lo and $since,  parameters(18)  for ?"


@dataclass(frozen=True, slots=True)
class GivenValues:
    """The values of each statement of a text, and the comments that something is wrong with."""

    values: tuple[Values, ...]
    wrong: tuple[Remark, ...]


@dataclass(frozen=True, slots=True)
class _Entry:
    name: str
    value: Value
    span: Span


def given_in(text: str, parts: Parts, dialect: str, general: Values) -> GivenValues:
    """What the statements of a text are checked with. general: values for all files."""
    own: list[dict[str, Value]] = [{} for _ in parts.statements]
    asked: dict[int, frozenset[str] | None] = {}
    wrong = []

    def names(number: int) -> frozenset[str] | None:
        if number not in asked:
            asked[number] = placeholders(parts.statements[number].text, dialect)
        return asked[number]

    for directive in directives_in(text, parts):
        if directive.word != PARAMETERS:
            continue
        entries, mistakes = _read(text, directive)
        number = directive.statement
        if number is None:
            mistakes = [_wrong(directive.span, "this comment is about no statement",
                               "put it into the statement, at the end of its line, or directly above it")]  # fmt: skip
        else:
            mistakes += _taken(entries, own[number], names(number))
        if mistakes:
            wrong.append(Remark(directive.span, number, (), tuple(mistakes)))
    values = [
        {**{name: value for name, value in general.items() if name in (names(number) or ())}, **mine}
        if general
        else mine
        for number, mine in enumerate(own)
    ]
    return GivenValues(tuple(values), tuple(wrong))


def with_help(diagnostic: Diagnostic, text: str, dialect: str, values: Values) -> Diagnostic:
    """A finding about a statement; if it is that a value is missing, with how one is given in a file."""
    if diagnostic.mark is not Mark.NO_VALUE:
        return diagnostic
    missing = sorted((placeholders(text, dialect) or frozenset()) - values.keys(), key=lambda n: (len(n), n))
    numbered = missing == [str(n + 1) for n in range(len(missing))]
    listed = ", ".join("VALUE" if numbered else f"{name} = VALUE" for name in missing)
    repairs = [f"write above the statement  -- dpsql: parameters({listed})"]
    # The first `?` of one statement has nothing to do with that of another.
    repairs += [
        f"or for all files  --parameter {name}=VALUE,  or [parameters] in dpsql.toml"
        for name in missing
        if not name.isdigit()
    ][:1]
    return replace(diagnostic, help=tuple(repairs), notes=())


def _taken(entries: Sequence[_Entry], own: dict[str, Value], names: frozenset[str] | None) -> list[Diagnostic]:
    """Put the values of one comment to the statement's own; what is wrong with them. names: None, not known."""
    mistakes = []
    for entry in entries:
        shown = f"parameter ${entry.name}"
        if entry.name in own:
            mistakes.append(_wrong(entry.span, f"{shown} is given twice", "remove one of the values"))
        elif names is not None and entry.name not in names:
            known = f"it has {', '.join(f'${n}' for n in sorted(names))}" if names else "it has none"
            mistakes.append(_wrong(entry.span, f"the statement has no {shown}", f"{known}: remove or rename the value"))
        elif names is not None:
            own[entry.name] = entry.value
    return mistakes


def _read(text: str, directive: Directive) -> tuple[list[_Entry], list[Diagnostic]]:
    """The values of a comment, up to the first mistake."""
    comment, at, end = directive.span, directive.body.start, directive.body.end

    def blank(place: int) -> int:
        found = _BLANK.match(text, place, end)
        return place if found is None else found.end()

    def here(place: int) -> Span:
        stop = _UP_TO.match(text, place, end)
        length = 0 if stop is None else len(stop[0].rstrip())
        return Span(place, place + max(length, 1)) if place < end else comment

    entries: list[_Entry] = []
    at = blank(at)
    if not text.startswith("(", at, end):
        return entries, [_wrong(comment, "this comment gives no values", _FORM)]
    while True:
        at = start = blank(at + 1)
        name = _NAME.match(text, at, end)
        at = at if name is None else name.end()
        try:
            read = read_constant(text, at, end)
        except ValueError as error:
            return entries, [_wrong(here(at), str(error), _FORM)]
        if read is None:
            return entries, [_wrong(here(at), "a constant of SQL is expected here", _FORM)]
        entries.append(_Entry(str(len(entries) + 1) if name is None else name[1], read[0], Span(start, read[1])))
        at = blank(read[1])
        if text.startswith(")", at, end):
            break
        if not text.startswith(",", at, end):
            return entries, [_wrong(here(at), "a comma or the closing bracket is expected here", _FORM)]
    if text[at + 1 : end].strip():
        return entries, [_wrong(Span(blank(at + 1), end), "nothing may stand behind the values", _FORM)]
    return entries, []


def _wrong(span: Span, message: str, repair: str) -> Diagnostic:
    return Diagnostic("DP013", message, None, span, help=(repair,))
