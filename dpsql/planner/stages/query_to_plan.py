"""A query that is bound, and what every stage of its planning reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from dpsql.core.analysis.context import Context
from dpsql.core.ir.expressions import Call
from dpsql.core.ir.nodes import GroupKeys
from dpsql.core.policy.policy import Policy
from dpsql.core.printing.dialect import Dialect
from dpsql.core.printing.expressions import TableNames
from dpsql.diagnostics.diagnostic import Source
from dpsql.frontend import dialects
from dpsql.frontend.bind.statement import bind
from dpsql.frontend.bound import BoundQuery
from dpsql.frontend.parse import Parsed, parse
from dpsql.planner.batch.unlisted import summed_by_row
from dpsql.planner.rewrites.rewrite_context import ContributionLimits
from dpsql.planner.searches.may_search import require_search_allowed
from dpsql.planner.settings.privacy_clause import with_clause, with_comments
from dpsql.planner.settings.query_settings import QuerySettings

Parameters = Sequence[Any] | Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class QueryToPlan:
    """settings: with the query's comments and privacy clause. limits: with the policy's fewest units of a private key.

    weights: number of an output column → its weight, beside those that the settings name. clips: what is clipped to
    bounds that a search finds. counted: rows of which a search finds how many of a unit count.
    """

    parsed: Parsed
    bound: BoundQuery
    settings: QuerySettings
    limits: ContributionLimits
    ctx: Context
    dialect: Dialect
    tables: TableNames
    parameters: Parameters = ()
    weights: Mapping[int, Fraction] = field(default_factory=dict)
    clips: frozenset[Call] = frozenset()
    counted: tuple[GroupKeys, ...] = ()

    @property
    def policy(self) -> Policy:
        """What it is planned under."""
        return self.ctx.policy

    @property
    def source(self) -> Source:
        """Its text."""
        return self.parsed.source


def bound_query(
    source: Source,
    ctx: Context,
    settings: QuerySettings,
    parameters: Parameters,
    dialect: Dialect,
    tables: TableNames | None,
) -> QueryToPlan:
    """Parse, and bind names and types. Raises Rejected."""
    parsed = parse(source, settings.dialect)
    settings = with_clause(with_comments(settings, source, settings.dialect), parsed.clause)
    limits = replace(settings.limits, min_units=max(settings.limits.min_units, ctx.policy.defaults.min_units))
    bound = bind(parsed, ctx.policy, parameters, settings.asked, ctx.public.closed, settings.relations)
    bound = replace(bound, root=summed_by_row(bound.root)) if settings.unlisted else bound
    require_search_allowed(ctx.policy, settings, parsed.clause, bound.root)
    dialects.check_types(bound.root, parsed.dialect)
    return QueryToPlan(parsed, bound, settings, limits, ctx, dialect, tables or dialect.identifier, parameters)
