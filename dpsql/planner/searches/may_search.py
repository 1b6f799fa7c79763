"""Searches of limits and bounds as a policy allows them: refused where it does not, proposed where they would help.

What they get of a query's price is a quarter, fixed by public facts before anything is drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.expressions import Call, Column, Expr, transform, walk
from dpsql.core.ir.nodes import Aggregate, Node, inputs
from dpsql.core.noise.mechanisms import DiscreteGaussian
from dpsql.core.policy.policy import Policy
from dpsql.core.policy.tables import Table
from dpsql.core.privacy_loss import pure_to_rho
from dpsql.diagnostics.diagnostic import Diagnostic, Mark, Source, Span
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.frontend.bind.aggregates.searched_clips import searched_in
from dpsql.frontend.google.privacy_clause import Clause
from dpsql.planner.searches.limits_to_search import Searching
from dpsql.planner.settings.query_settings import QuerySettings

SEARCH_IT = "or let a quarter of ε find it, in front of the query:  /* dpsql: limits=search */"
"""A repair of what has no limit or no bounds."""


def require_search_allowed(policy: Policy, settings: QuerySettings, clause: Clause | None, root: Node) -> None:
    """Raises Rejected DP213: a bound query wants a search, and the policy refuses them. settings: with the clause's."""
    if policy.search != "refuse":
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


def would_be_searched(found: Sequence[Diagnostic], policy: Policy, settings: QuerySettings) -> bool:
    """Whether a refusal is for want of a limit or of bounds, which a search might find."""
    return not settings.search and policy.search != "refuse" and any(map(lacks_limits, found))


def with_search_proposed(found: Sequence[Diagnostic]) -> tuple[Diagnostic, ...]:
    """The refusal, with a search as a repair."""
    return tuple(replace(d, help=(*d.help, SEARCH_IT)) if lacks_limits(d) else d for d in found)


def lacks_limits(found: Diagnostic) -> bool:
    """Whether a refusal is for want of a limit or of bounds."""
    return found.code in ("DP201", "DP211")


def left_open(arg: Expr, facts: Facts, table: Callable[[str], Table]) -> Expr | None:
    """A number whose bounds the policy leaves to a search, without the clips that say where this stays; else None.

    It has a column with `bounds: search`, every other one without bounds has this, too, and the query bounds it by
    nothing else. table: of the policy, by its name.
    """

    def searched(e: Expr) -> bool:
        hint = facts.columns[e.uid].hint if isinstance(e, Column) else None
        column = None if hint is None or not hint.table else table(hint.table).column(hint.column)
        return column is not None and column.search_bounds

    within = [e for e in walk(arg) if isinstance(e, Call) and e.function == "clip" and searched(e.args[0])]
    opened = transform(arg, lambda e: e.args[0] if isinstance(e, Call) and e in within else e)
    columns = [e for e in walk(opened) if isinstance(e, Column)]
    unbounded = [e for e in columns if not facts.value(e).interval.bounded]
    hints = [facts.columns[e.uid].hint for e in unbounded]
    declared = [h is not None and h.bounds is not None and h.bounds.bounded for h in hints]
    asked = all(d or searched(e) for e, d in zip(unbounded, declared, strict=True))
    if not any(map(searched, columns)) or not asked or facts.value(opened).interval.bounded:
        return None
    return opened if facts.value(opened).type.numeric else None


def not_searched(found: Diagnostic) -> Diagnostic:
    """A refusal for want of a limit or of bounds of rows that depend on other released numbers."""
    if not lacks_limits(found) and found.mark is not Mark.UNSEARCHED:
        return found
    why = "no search finds it: these rows depend on numbers of another aggregate, which would have to be drawn first"
    return replace(found, notes=(*found.notes, why))


def found_at_run_time(what: str, source: Source) -> Diagnostic:
    """The warning of a check that cannot know a limit. what: whose limits, in words."""
    return Diagnostic(
        "DP506", f"{what} is found when the query runs, and with it how large the error is",
        source, Span(0, len(source.text.rstrip())),
        help=("declare it, to know the error beforehand:  max_rows_per_unit: 20,  bounds: [0, 100]",),
        notes=("what the query costs is known: the search takes a part of its ε",),
        severity="warning",
    )  # fmt: skip


def says_auto(root: Node, text: str) -> bool:
    """Whether a bound query leaves the bounds of a CLIP to a search: it says AUTO in its text."""
    return "auto" in text.lower() and _first_auto(root) is not None


def _first_auto(root: Node) -> Span | None:
    todo = [root]
    while todo:
        node = todo.pop()
        for call in node.calls if isinstance(node, Aggregate) else ():
            if (clip := searched_in(call.arg)) is not None:
                return clip.span
        todo += inputs(node)
    return None


def searching_of(settings: QuerySettings, policy: Policy, asked: bool, clause: bool) -> Searching | None:
    """What a query may leave to searches; None: no limit. asked: whether its text says AUTO. clause: whether it has a
    privacy clause, under which bounds may be left out."""
    implicit = clause and policy.search != "refuse"
    undeclared = settings.search is None and policy.search == "auto" and not settings.unlisted
    if settings.search or undeclared or asked or implicit or any(table.searched for table in policy.tables.values()):
        gaussian = settings.rooted and settings.family == DiscreteGaussian.name
        everywhere = bool(settings.search)
        return Searching(everywhere, undeclared, settings.found, values_everywhere=implicit, gaussian=gaussian)
    return None


def part_of(settings: QuerySettings, policy: Policy, part: Fraction) -> QuerySettings:
    """The settings of a query that may lose a part of what this one may: of its ε, or of its ρ in a ledger of ρ."""
    epsilon = policy.defaults.epsilon if settings.epsilon is None else settings.epsilon
    if policy.privacy.accountant != "zcdp":
        return replace(settings, epsilon=None if epsilon is None else epsilon * part)
    rho = settings.rho if settings.rho is not None else None if epsilon is None else pure_to_rho(epsilon)
    return replace(settings, rho=None if rho is None else rho * part)


def for_searches(settings: QuerySettings, policy: Policy, share: Fraction) -> QuerySettings:
    """Of the octaves alone. They need no δ: their keys are public, and their noise is priced as the ledger counts."""
    own = part_of(settings, policy, share)
    return QuerySettings(
        own.epsilon, Fraction(0), rho=own.rho, dialect=settings.dialect, confidence=settings.confidence
    )
