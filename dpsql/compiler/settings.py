"""What a query may set for itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from dpsql.rewrite.context import Limits


@dataclass(frozen=True, slots=True)
class Settings:
    """What a query may set for itself.

    epsilon: ε of the whole query; None is an error (DP401). delta: δ, charged only if private keys need it.
    limits: contribution limits that tighten the policy's. dialect: the SQL dialect of the text.
    """

    epsilon: Fraction | None = None
    delta: Fraction | None = None
    limits: Limits = field(default_factory=Limits)
    dialect: str = "duckdb"
