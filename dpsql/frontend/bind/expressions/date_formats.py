"""TO_CHAR, TO_DATE and TO_TIMESTAMP with a literal format of PostgreSQL's.

    to_char(day, 'YYYY-MM')                   →  strftime(day, '%Y-%m')
    to_char(day, 'IYYY-"W"IW')                →  isoyear and week, as texts, joined
    TO_DATE('2024-01-31', 'YYYY-MM-DD')       →  DATE '2024-01-31', of a constant text

What a date is written as must be the same on every engine: patterns that are not listed are refused by name.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from dpsql.core.ir.expressions import Cast, Expr, Literal
from dpsql.core.ir.types import DATE, TIMESTAMP, VARCHAR, Kind
from dpsql.diagnostics.diagnostic import Span
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.frontend.bind.expressions import literals
from dpsql.frontend.bind.expressions.replacements import arguments

if TYPE_CHECKING:
    from dpsql.frontend.bind.expressions.expressions import ExprBinder

_DIRECTIVES: Final = {
    "YYYY": "%Y", "YY": "%y", "MM": "%m", "DD": "%d", "DDD": "%j", "HH24": "%H", "HH12": "%I", "HH": "%I", "MI": "%M",
    "SS": "%S", "US": "%f", "FMMonth": "%B", "Mon": "%b", "FMDay": "%A", "Dy": "%a", "AM": "%p", "PM": "%p",
}  # fmt: skip
"""Patterns whose texts strftime gives."""
_PARTS: Final = {
    "Q": ("quarter", 1), "IYYY": ("isoyear", 4), "IW": ("week", 2), "ID": ("isodow", 1), "FMMM": ("month", 1),
    "FMDD": ("day", 1), "FMHH24": ("hour", 1), "FMDDD": ("dayofyear", 1),
}  # fmt: skip
"""Patterns that are a part of a date, and how many digits it has at least."""
_NAMES: Final = {"Month": "%B", "Day": "%A"}
"""Names with blanks behind them, up to nine characters."""
_READ: Final = {
    "YYYY": r"(\d{4})", "MM": r"(\d{2})", "DD": r"(\d{2})", "HH24": r"(\d{2})", "MI": r"(\d{2})", "SS": r"(\d{2})",
    "MS": r"(\d{1,3})", "US": r"(\d{1,6})",
}  # fmt: skip
_KNOWN: Final = sorted({*_DIRECTIVES, *_PARTS, *_NAMES, *_READ}, key=len, reverse=True)
_PATTERN: Final = re.compile(
    rf"(?!SSSS|IDDD)({'|'.join(_KNOWN)})|\"((?:[^\"\\]|\\.)*)\"|([A-Za-z]+)|([^A-Za-z\"]+)", re.DOTALL
)
_FORMAT: Final = re.compile(r"'((?:[^']|'')*)'", re.DOTALL)


def _written(binder: ExprBinder, at: Span) -> str:
    """The format as it is written: sqlglot's tree has it in other letters."""
    given = arguments(binder.source.text[at.start :])
    found = _FORMAT.fullmatch(given[-1]) if len(given) == 2 else None
    if found is None:
        raise _unread("its format must be a literal", at)
    return found[1].replace("''", "'")


def _unread(why: str, at: Span) -> Rejected:
    return reject(
        "DP106", f"the format of a date: {why}", span=at,
        help=["of these:  YYYY MM DD HH24 MI SS US Mon Dy Q IYYY IW ID", "as in  to_char(x, 'YYYY-MM-DD HH24:MI')"],
    )  # fmt: skip


def _patterns(text: str, at: Span) -> list[tuple[str, str]]:
    """(pattern, '') or ('', text that stands for itself), in order. Raises Rejected DP106."""
    found, end = [], 0
    for match in _PATTERN.finditer(text):
        if match.start() != end or match[3] is not None:
            raise _unread(f"{match[3] or text[end:]!r} is not known", at)
        end = match.end()
        quoted = None if match[2] is None else re.sub(r"\\(.)", r"\1", match[2])
        found.append((match[1] or "", "" if match[1] else quoted if quoted is not None else match[4]))
    if end != len(text) or not text:
        raise _unread(f"{text[end:]!r} is not known", at)
    return found


def to_char(binder: ExprBinder, subject: exp.Expr, at: Span) -> Expr:
    """A date or time as a text by a format."""
    x = binder.bind(subject)
    if not x.type.temporal and x.type.kind is not Kind.TIMESTAMPTZ:
        raise reject(
            "DP106", f"to_char takes a date or timestamp, not {x.type}", span=at, help=["write  CAST(x AS VARCHAR)"]
        )
    pieces: list[Expr | str] = [""]  # formats of strftime, and other texts between them

    def more(text: str) -> None:
        last = pieces[-1]
        pieces[-1:] = [last + text] if isinstance(last, str) else [last, text]

    for pattern, itself in _patterns(_written(binder, at), at):
        if pattern in _DIRECTIVES:
            more(_DIRECTIVES[pattern])
        elif pattern in _PARTS:
            name, digits = _PARTS[pattern]
            part: Expr = Cast(binder.call(name, (x,), at), VARCHAR, at)
            pieces.append(part if digits == 1 else _padded(binder, "lpad", part, digits, "0", at))
        elif pattern in _NAMES:
            pieces.append(_padded(binder, "rpad", _formatted(binder, x, _NAMES[pattern], at), 9, " ", at))
        elif pattern:
            raise _unread(f"{pattern} is read only", at)
        else:
            more(itself.replace("%", "%%"))
    made = [p if isinstance(p, Expr) else _formatted(binder, x, p, at) for p in pieces if p != ""]
    if not made:
        raise _unread("it says nothing", at)
    found = made[0]
    for piece in made[1:]:
        found = binder.call("concat_op", (found, piece), at)
    return found


def _formatted(binder: ExprBinder, x: Expr, form: str, at: Span) -> Expr:
    return binder.call("strftime", (x, Literal(form, VARCHAR, at)), at)


def _padded(binder: ExprBinder, name: str, x: Expr, length: int, fill: str, at: Span) -> Expr:
    return binder.call(name, (x, literals.integer(length, at), Literal(fill, VARCHAR, at)), at)


def to_date(binder: ExprBinder, subject: exp.Expr, timed: bool, at: Span) -> Expr:
    """A constant text read by a format: a DATE, or, `timed`, a TIMESTAMP by the clock of UTC, the session's zone."""
    given = binder.bind(subject)
    text = given.value if isinstance(given, Literal) else None
    if isinstance(given, Literal) and given.value is None:
        return Literal(None, TIMESTAMP if timed else DATE, at)
    if not isinstance(text, str):
        raise reject(
            "DP106", "TO_DATE and TO_TIMESTAMP read constants", span=at,
            help=["of a column, write  CAST(x AS DATE),  or  CAST(x AS TIMESTAMP)"],
        )  # fmt: skip
    if text == "" and type(text) is not str:  # a parameter whose value is not known yet
        return Literal(dt.datetime(2000, 1, 1) if timed else dt.date(2000, 1, 1), TIMESTAMP if timed else DATE, at)
    patterns = _patterns(_written(binder, at), at)
    if (other := next((p for p, _ in patterns if p and p not in _READ), None)) is not None:
        raise _unread(f"{other} is not read", at)
    names = [p for p, _ in patterns if p]
    found = re.fullmatch(
        "".join(_READ[p] if p else re.escape(itself) for p, itself in patterns), text.strip(), re.ASCII
    )
    if found is None or len(set(names)) != len(names) or not {"YYYY"} <= set(names):
        raise _unread(f"{text!r} is not written so", at)
    part = dict(zip(names, found.groups(), strict=True))
    micros = (part.get("US") or "").ljust(6, "0") if "US" in part else (part.get("MS") or "").ljust(3, "0") + "000"
    try:
        moment = dt.datetime(
            int(part["YYYY"]), int(part.get("MM", 1)), int(part.get("DD", 1)), int(part.get("HH24", 0)),
            int(part.get("MI", 0)), int(part.get("SS", 0)), int(micros),
        )  # fmt: skip
    except ValueError:
        raise _unread(f"{text!r} is no date", at) from None
    return Literal(moment, TIMESTAMP, at) if timed else Literal(moment.date(), DATE, at)
