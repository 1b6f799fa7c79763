"""What a query may set for itself."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from dpsql.core.ir.components import KeySource
from dpsql.core.ir.periods import Span
from dpsql.core.numbers.confidence import LEVEL
from dpsql.frontend.bind.parameters import GivenRelation
from dpsql.planner.rewrites.rewrite_context import ContributionLimits


@dataclass(frozen=True, slots=True)
class QuerySettings:
    """What a query may set for itself.

    epsilon: ε of the whole query; None is an error (DP401). rho: its ρ instead, under zCDP. max_error: output column →
    the largest half-width of its interval at `confidence`, in place of both: the least that meets all of them.
    delta: δ, charged only if private keys or Gaussian noise use it. weights: output column → its part of the whole,
    where others have 1. limits: contribution limits that tighten the policy's. dialect: the SQL dialect of the text.
    allow_dearer: stored answers of others may cost more than what is asked; None: as the policy says.
    coverage: a part of ε tells how many units are above the limits.
    consistent_totals: totals of ROLLUP and the like are the sums of their parts.
    anyway: also where no group could be shown. nominal: the ε stands for one that nobody has said, to look.
    search: a part of ε finds the limits and bounds that nobody declares, and smaller ones where somebody does. None:
        as the policy says, under `search: auto` those that nobody declares, and of rows smaller ones if 16 may count.
    family: the noise that was chosen before limits were found, and stays; empty: whichever errs least.
    found: label of a search → the limit that it found, or (low, high) of values; from answers that the account holds.
    asked: what CURRENT_DATE and NOW() mean, in UTC; None where the text asks for neither, or for a check: now.
    unlisted: as if the policy listed no values of columns, so that no row is left out of groups, and with sums
        that weigh a row as counts do: marginals of a batch.
    shares: of each release, in the order in which the text has them, its part of the whole; empty: weights say that.
    keys: of the groups, where they were shown before; None: the query has all its keys to find. half: of what it may
        lose, of an ε once it is converted to ρ, the other half is for its keys, or for its numbers. aside: the part
        that searches have before. rooted: whether limits may be on the root of a sum of squares.
    relations: public rows that the account has, under names of the schema `dpsql`.
    only: growing table → the days of it that are read at most: what of a plan is not stored.
    """

    epsilon: Fraction | None = None
    delta: Fraction | None = None
    limits: ContributionLimits = field(default_factory=ContributionLimits)
    dialect: str = "duckdb"
    rho: Fraction | None = None
    max_error: Mapping[str, Fraction] = field(default_factory=dict)
    confidence: Fraction = LEVEL
    weights: Mapping[str, Fraction] = field(default_factory=dict)
    allow_dearer: bool | None = None
    coverage: bool = False
    consistent_totals: bool = False
    anyway: bool = False
    nominal: bool = False
    search: bool | None = None
    family: str = ""
    found: Mapping[str, int | tuple[int, int]] = field(default_factory=dict)
    asked: dt.datetime | None = None
    unlisted: bool = False
    shares: tuple[Fraction, ...] = ()
    keys: KeySource | None = None
    half: bool = False
    aside: Fraction = Fraction(0)
    rooted: bool = True
    relations: tuple[GivenRelation, ...] = ()
    only: Mapping[str, tuple[Span, ...]] = field(default_factory=dict)
