"""Searches of limits and bounds as a policy allows them: refused where it does not, proposed where they would help."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from dpsql.core.ir.nodes import Aggregate, Node, inputs
from dpsql.core.policy.policy import Policy
from dpsql.diagnostics.diagnostic import Diagnostic, Source, Span
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.frontend.bind.searched_clips import searched_in
from dpsql.frontend.google.clause import Clause
from dpsql.planner.settings import Settings

SEARCH_IT = (
    "or let a quarter of ε find it:  SET limits = 'search'  (in Python  limits=\"search\",  else  --limits search)"
)
"""A repair of what has no limit or no bounds."""


def require_search_allowed(policy: Policy, settings: Settings, clause: Clause | None, root: Node) -> None:
    """Raises Rejected DP213: a bound query wants a search, and the policy refuses them. settings: with the clause's."""
    if policy.search == "allow":
        return
    clip = _first_auto(root)
    if clip is not None or settings.search:
        raise search_refused(clip or (clause.span if clause is not None and clause.search else None))


def search_refused(span: Span | None = None) -> Rejected:
    """The refusal of a search by the policy."""
    return reject(
        "DP213", "the policy refuses to search limits and bounds", span=span,
        label="would be found by a search" if span is not None else "",
        help=[
            "write them into the query:  OPTIONS (max_rows_contributed = 20),  CLIP(x, lower, upper)",
            "and leave searches off:  SET limits = 'declared'",
            "custodian: leave  search: refuse  out of the policy, or declare limits and bounds there",
        ],
    )  # fmt: skip


def or_searched(
    found: tuple[Diagnostic, ...], policy: Policy, settings: Settings, plan: Callable[[Settings], object]
) -> tuple[Diagnostic, ...]:
    """A refusal for want of a limit or of bounds, with a search as a repair if the query can be asked so.

    plan: plans the query with other settings, or raises Rejected.
    """
    if settings.search or policy.search == "refuse" or not any(d.code in ("DP201", "DP211") for d in found):
        return found
    with suppress(Rejected, RecursionError):
        plan(replace(settings, search=True))
        return tuple(replace(d, help=(*d.help, SEARCH_IT)) if d.code in ("DP201", "DP211") else d for d in found)
    return found


def found_at_run_time(what: str, source: Source) -> Diagnostic:
    """The warning of a check that cannot know a limit. what: whose limits, in words."""
    return Diagnostic(
        "DP506", f"{what} is found when the query runs, and with it how large the error is",
        source, Span(0, len(source.text.rstrip())),
        help=("declare it, to know the error beforehand:  max_rows_per_unit: 20,  bounds: [0, 100]",),
        notes=("what the query costs is known: the search takes a part of its ε",),
        severity="warning",
    )  # fmt: skip


def says_auto(root: Node) -> bool:
    """Whether a bound query leaves the bounds of a CLIP to a search."""
    return _first_auto(root) is not None


def _first_auto(root: Node) -> Span | None:
    todo = [root]
    while todo:
        node = todo.pop()
        for call in node.calls if isinstance(node, Aggregate) else ():
            if (clip := searched_in(call.arg)) is not None:
                return clip.span
        todo += inputs(node)
    return None
