"""Refusals as problem details (RFC 9457), with the code of the diagnostic, its place, repairs and what was spent."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from starlette.responses import Response

from dpsql.core.privacy_loss import PrivacyLoss, show_left, show_spent
from dpsql.diagnostics.codes import CODES
from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.diagnostics.layout import anchor, one_line
from dpsql.diagnostics.note import NOTHING_RAN
from dpsql.diagnostics.render import says_nothing_ran
from dpsql.faces.server.statements import Refused
from dpsql.faces.server.web.hints import in_json

MEDIA_TYPE: Final = "application/problem+json"
NOTHING: Final[Mapping[str, float]] = {"epsilon": 0.0, "delta": 0.0, "rho": 0.0}
_STATUS: Final = {
    "DP403": 403, "DP404": 403, "DP405": 403, "DP413": 403, "DP416": 403, "DP407": 503, "DP414": 429, "DP901": 500,
    "DP904": 500,
}  # fmt: skip
"""HTTP's word for each code; 422, understood and refused, for all others."""


def refusal(refused: Refused) -> Response:
    """The response to a statement that is not answered."""
    first = refused.diagnostics[0]
    return problem(_STATUS.get(first.code, 422), one_line(first.message), refused.diagnostics)


def problem(
    status: int, detail: str, found: Sequence[Diagnostic] = (), headers: Mapping[str, str] | None = None
) -> Response:
    """A problem. found: what it is made of, the first of it in front."""
    body = as_data(status, detail, found)
    return Response(json.dumps(body, ensure_ascii=True), status, headers=dict(headers or {}), media_type=MEDIA_TYPE)


def as_data(status: int, detail: str, found: Sequence[Diagnostic] = ()) -> dict[str, Any]:
    """The members of a problem. spent: null where a run was charged and ended without an answer."""
    first = found[0] if found else None
    known = first is not None and first.code in CODES
    return {
        "type": f"/codes/{first.code}" if first is not None and known else "about:blank",
        "title": CODES[first.code].title if first is not None and known else detail,
        "status": status,
        "detail": detail,
        "code": None if first is None else first.code,
        "span": None if first is None else _span(first),
        "hint": "\n".join(_hints(found)) or None,
        "findings": [finding(d) for d in found],
        "spent": NOTHING if not found or all(map(_spent_nothing, found)) else None,
    }


def not_a_query() -> Refused:
    """EXPLAIN and SHOW have no price."""
    notes = (NOTHING_RAN,)
    return Refused([Diagnostic("DP012", "only a query has a price", help=("SELECT …",), notes=notes)])


def finding(found: Diagnostic) -> dict[str, Any]:
    """One diagnostic."""
    notes = [one_line(note) for note in found.notes]
    return {
        "code": found.code, "severity": found.severity, "message": one_line(found.message),
        "label": one_line(found.label) or None, "span": _span(found), "hints": _hints([found]), "notes": notes,
    }  # fmt: skip


def _hints(found: Sequence[Diagnostic]) -> list[str]:
    return list(dict.fromkeys(text for d in found for line in d.help if (text := in_json(line))))


def _spent_nothing(found: Diagnostic) -> bool:
    return says_nothing_ran(found)


def _span(found: Diagnostic) -> dict[str, int] | None:
    """Characters of the statement from 0, the end not included; line and column from 1."""
    if found.source is None or found.span is None:
        return None
    place = anchor(found.source, found.span)
    line, column = found.source.position(place.start)
    return {"start": place.start, "end": place.end, "line": line, "column": column}


def spent(loss: PrivacyLoss) -> dict[str, float]:
    """Amounts, rounded up."""
    return {part: float(show_spent(amount)) for part, amount in asdict(loss).items()}


def left(loss: PrivacyLoss | None) -> dict[str, float] | None:
    """What is left, rounded down; None for no limit."""
    return None if loss is None else {part: float(show_left(amount)) for part, amount in asdict(loss).items()}
