"""What searches get of a query's price: a quarter, fixed by public facts before anything is drawn."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from dpsql.core.noise.mechanisms import DiscreteGaussian
from dpsql.core.policy.policy import Policy
from dpsql.core.privacy_loss import pure_to_rho
from dpsql.planner.searches.limits_to_search import Searching
from dpsql.planner.settings.query_settings import QuerySettings


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
