"""What the text of a query says as its settings, in comments and in a privacy clause: never looser than the policy.

Policy → session → keyword → comment → clause: the last that says something wins. Limits only ever tighten what the
policy enforces: the rewrites take the smaller of both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from dpsql.core.analysis.facts import Facts
from dpsql.core.analysis.rules.release import contribution
from dpsql.core.ir.nodes import Release
from dpsql.core.ir.walk import Tagged
from dpsql.core.privacy_loss import exact_delta, exact_epsilon
from dpsql.diagnostics.diagnostic import Source, Span
from dpsql.diagnostics.errors import reject
from dpsql.frontend.google.privacy_clause import Clause
from dpsql.frontend.text.comment_settings import FORM, Said
from dpsql.frontend.text.query_comments import settings_before
from dpsql.planner.settings.query_settings import QuerySettings


def with_clause(settings: QuerySettings, clause: Clause | None) -> QuerySettings:
    """The settings with what the clause says in place of what it overrides. Raises Rejected DP406."""
    if clause is None:
        return settings
    if clause.epsilon is not None and settings.max_error:
        raise reject(
            "DP406", "the query gives an epsilon, and max_error was given, too: each says how much to spend",
            span=clause.span, help=["leave one of them out"],
        )  # fmt: skip
    limits = settings.limits
    if clause.max_groups is not None:
        limits = replace(limits, groups=clause.max_groups)
    if clause.max_rows is not None:
        limits = replace(limits, rows=clause.max_rows)
    if clause.min_units is not None:
        limits = replace(limits, min_units=clause.min_units)
    return replace(
        settings,
        epsilon=settings.epsilon if clause.epsilon is None else clause.epsilon,
        rho=settings.rho if clause.epsilon is None else None,
        nominal=settings.nominal and clause.epsilon is None,
        delta=settings.delta if clause.delta is None else clause.delta,
        limits=limits,
        search=True if clause.search else settings.search,
        consistent_totals=settings.consistent_totals if clause.consistent_totals is None else clause.consistent_totals,
    )


def require_clause(clause: Clause, releases: Sequence[Tagged[Facts]]) -> None:
    """What the clause demands and no rewrite enforces. Raises Rejected DP303, DP014."""
    for tagged in releases:
        node, below = tagged.node, tagged.inputs[0].fact
        assert isinstance(node, Release)
        if clause.public_groups and node.threshold is not None:
            raise reject(
                "DP303", "PUBLIC_GROUPS needs public group keys", span=node.keys[0].span or clause.span,
                label="no public list of these values is known",
                help=[
                    f"write {node.keys[0].name} IN (…), or leave group_selection_strategy out and give a delta",
                    f"custodian: declare  domain: […]  for {node.keys[0].name}",
                ],
            )  # fmt: skip
        if below.ids:
            continue
        # Rows are the unit: how many of them change is a fact of the query, and no rewrite can make it smaller.
        found = contribution(node, below)
        for asked, actual, what in (
            (clause.max_rows, found.rows, "rows"),
            (clause.max_groups, found.most_groups if node.keys else 1, "groups"),
        ):
            if asked is not None and actual > asked:
                raise reject(
                    "DP014", f"max_{what}_contributed = {asked} cannot be enforced: rows are the privacy unit",
                    span=clause.span, label=f"one unit changes up to {actual} {what} here", help=["leave it out"],
                )  # fmt: skip


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
