"""Refusals and notices → the fields of ErrorResponse and NoticeResponse: SQLSTATE, message, detail, hint and place.

The code of a diagnostic stands in front of its message; drivers read the SQLSTATE, so that an unknown table is their
UndefinedTable. Places are counted in characters of the text that the client sent, from 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.diagnostics.layout import anchor, one_line
from dpsql.diagnostics.render import closing_note
from dpsql.faces.server.front.hints import in_sql
from dpsql.faces.server.statements import Refused

Fields = list[tuple[str, str]]

_NOT_SUPPORTED, _SYNTAX, _INVALID, _LIMIT = "0A000", "42601", "22023", "53400"

SQLSTATES: Final = {
    "DP001": "F0000", "DP002": "F0000", "DP003": "F0000", "DP004": "F0000", "DP005": "F0000", "DP006": "58030",
    "DP007": "F0000", "DP008": "F0000", "DP009": "F0000",
    "DP010": _SYNTAX, "DP011": _SYNTAX, "DP012": _NOT_SUPPORTED, "DP013": "42P02", "DP014": _SYNTAX,
    "DP015": "F0000", "DP016": "F0000", "DP017": "55000",
    "DP101": _NOT_SUPPORTED, "DP102": "42P01", "DP103": "42703", "DP104": "42702", "DP105": "42883", "DP106": "42883",
    "DP107": "42712", "DP108": "42803", "DP109": "42803", "DP110": "42501", "DP111": _NOT_SUPPORTED,
    "DP112": _NOT_SUPPORTED, "DP113": _NOT_SUPPORTED, "DP114": _NOT_SUPPORTED, "DP115": _NOT_SUPPORTED,
    "DP116": _NOT_SUPPORTED, "DP117": "42804", "DP118": _NOT_SUPPORTED, "DP119": _NOT_SUPPORTED,
    "DP120": _NOT_SUPPORTED,
    "DP201": _NOT_SUPPORTED, "DP202": _NOT_SUPPORTED, "DP203": "42883", "DP204": _INVALID, "DP210": _NOT_SUPPORTED,
    "DP211": _NOT_SUPPORTED, "DP212": "P0002", "DP213": "42501", "DP214": _INVALID, "DP220": _NOT_SUPPORTED,
    "DP230": _NOT_SUPPORTED,
    "DP301": _NOT_SUPPORTED, "DP302": "54000", "DP303": _NOT_SUPPORTED, "DP304": _INVALID, "DP305": _INVALID,
    "DP401": _INVALID, "DP402": _INVALID, "DP403": _LIMIT, "DP404": _LIMIT, "DP405": _LIMIT, "DP406": _INVALID,
    "DP407": "58030", "DP408": _NOT_SUPPORTED, "DP409": "40001", "DP410": "22003", "DP411": _INVALID, "DP412": _LIMIT,
    "DP413": _LIMIT, "DP414": "53300", "DP415": "54000", "DP416": _LIMIT,
    "DP501": "01000", "DP502": "01000", "DP503": "01000", "DP504": "01000", "DP505": "01000", "DP506": "01000",
    "DP507": "01000", "DP508": "01000",
    "DP901": "58000", "DP902": "01000", "DP903": _INVALID, "DP904": "XX000", "DP905": "58000", "DP906": _NOT_SUPPORTED,
    "DP910": "F0000",
}  # fmt: skip
"""PostgreSQL's code for each of ours; one that is missing here is a refusal without a class of its own."""


class ProtocolFault(Exception):
    """What is wrong with a statement of the protocol rather than with a query, in PostgreSQL's terms.

    at: the offset of its place in the statement; None for none.
    """

    def __init__(self, sqlstate: str, message: str, hint: str = "", at: int | None = None, detail: str = "") -> None:
        super().__init__(message)
        self.sqlstate, self.hint, self.at, self.detail = sqlstate, hint, at, detail

    def fields(self, offset: int = 0, severity: str = "ERROR") -> Fields:
        """offset: where the statement begins in what the client sent."""
        found = [*_head(severity, self.sqlstate), ("M", one_line(str(self)))]
        found += [("D", self.detail)] if self.detail else []
        found += [("H", self.hint)] if self.hint else []
        return found + ([] if self.at is None else [("P", str(offset + self.at + 1))])


def refusal(refused: Refused, offset: int = 0) -> Fields:
    """The fields of a refused statement. Its first diagnostic is the error, the others stand in the detail."""
    first, *others = refused.diagnostics
    place = None if refused.at is None else offset + refused.at
    state = refused.sqlstate or SQLSTATES.get(first.code, _NOT_SUPPORTED)
    return _fields("ERROR", state, first, others, place)


def warning(diagnostic: Diagnostic, offset: int = 0) -> Fields:
    """The fields of what spoke against a run."""
    return _fields("WARNING", SQLSTATES.get(diagnostic.code, "01000"), diagnostic, (), offset)


def notice(text: str, is_danger: bool = False) -> Fields:
    """The fields of what is told with an answer. is_danger: it is not what it seems."""
    return [*(_head("WARNING", "01000") if is_danger else _head("NOTICE", "00000")), ("M", one_line(text))]


def failure() -> Fields:
    """What is said of anything unforeseen: nothing of its own words, which could tell values of single rows."""
    return [
        *_head("ERROR", "XX000"),
        ("M", "[DP904] dpsql itself failed; this is an error in dpsql"),
        ("D", "what was charged by then stays charged"),
        ("H", "tell the custodian when this happened"),
    ]


def _head(severity: str, state: str) -> Fields:
    return [("S", severity), ("V", severity), ("C", state)]


def _fields(severity: str, state: str, first: Diagnostic, others: Sequence[Diagnostic], offset: int | None) -> Fields:
    found = [*_head(severity, state), ("M", _message(first))]
    notes = (closing_note(first, severity == "ERROR").replace("`dpsql rule", "page: `dpsql rule"),)
    detail = [one_line(part) for part in (first.label, *first.notes) if part]
    detail += [f"also {_message(d)}{_where(d)}" for d in others]
    detail += [one_line(note) for note in notes]
    found.append(("D", "\n".join(detail)))
    hints = [in_sql(line) for d in (first, *others) for line in d.help]
    if hints:
        found.append(("H", "\n".join(dict.fromkeys(h for h in hints if h))))
    if offset is not None and first.source is not None and first.span is not None:
        found.append(("P", str(offset + anchor(first.source, first.span).start + 1)))
    return found


def _message(diagnostic: Diagnostic) -> str:
    return f"[{diagnostic.code}] {one_line(diagnostic.message)}"


def _where(diagnostic: Diagnostic) -> str:
    if diagnostic.source is None or diagnostic.span is None:
        return ""
    line, column = diagnostic.source.position(anchor(diagnostic.source, diagnostic.span).start)
    return f" (line {line}, column {column})"
