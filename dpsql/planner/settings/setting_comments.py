"""What comments before a query say, as its settings: stronger than the caller's, weaker than its privacy clause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from dpsql.core.privacy_loss import exact_delta, exact_epsilon
from dpsql.diagnostics.diagnostic import Source, Span
from dpsql.diagnostics.errors import reject
from dpsql.frontend.text.comment_settings import FORM, Said
from dpsql.frontend.text.query_comments import settings_before
from dpsql.planner.settings.query_settings import QuerySettings

_SWITCHED: Final = {
    "on": True, "true": True, "yes": True, "1": True, "off": False, "false": False, "no": False, "0": False,
}  # fmt: skip
_SEARCHED: Final = {"search": True, "declared": False, "auto": None}
_OF_A_SERVER: Final = ("notices", "intervals")


def with_comments(settings: QuerySettings, source: Source, dialect: str) -> QuerySettings:
    """The settings with what the comments before a query say. Raises Rejected DP902, DP406."""
    return with_said(settings, settings_before(source, dialect), source)


def with_said(settings: QuerySettings, said: Sequence[Said], source: Source) -> QuerySettings:
    """The same, of comments that were read. Raises Rejected DP406 for what is no such setting, or beside max_error."""
    for each in said:
        span = Span(each.at, each.at + len(each.name))
        if each.name in ("epsilon", "rho") and settings.max_error:
            raise reject(
                "DP406", "a comment says how much to spend, and max_error was given, too", span=span, source=source,
                help=["leave one of them out"],
            )  # fmt: skip
        try:
            settings = replace(settings, **_changed(each))
        except ValueError as error:
            raise reject("DP406", str(error), span=span, source=source, help=[FORM]) from None
    return settings


def _changed(said: Said) -> dict[str, Any]:
    """The fields that one of them changes. Raises ValueError."""
    match said.name:
        case "epsilon":
            return {"epsilon": exact_epsilon(said.value), "rho": None, "nominal": False}
        case "rho":
            return {"rho": exact_epsilon(said.value, "rho"), "epsilon": None, "nominal": False}
        case "delta":
            return {"delta": exact_delta(said.value)}
        case "limits":
            return {"search": _word(said, _SEARCHED, "limits are 'auto', 'search' or 'declared'")}
    switched = _word(said, _SWITCHED, f"{said.name} is on or off")
    return {} if said.name in _OF_A_SERVER else {said.name: switched}


def _word(said: Said, known: Mapping[str, bool | None], otherwise: str) -> bool | None:
    word = said.value.strip().lower()
    if word not in known:
        raise ValueError(otherwise)
    return known[word]
