"""A part of a batch or of a summary: its share of the whole is fixed by those, and no other summary answers it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from dpsql.planner.batch.unlisted import shares_of
from dpsql.planner.stages.finished_tree import FinishedTree
from dpsql.planner.stages.query_to_plan import QueryToPlan
from dpsql.planner.stages.stage import Stage


@dataclass(frozen=True, slots=True)
class PartOfBatch(Stage):
    """It asks nothing of its own. shares: of each release of the query, its part of the whole; (): weights say that."""

    shares: tuple[Fraction, ...] = ()

    @classmethod
    def of(cls, query: QueryToPlan, tree: FinishedTree) -> PartOfBatch | None:
        """Of what is planned as if the policy listed no values of columns."""
        return cls(query.settings.shares) if query.settings.unlisted else None

    def weighed(self, weights: Mapping[int, Fraction], query: QueryToPlan, tree: FinishedTree) -> dict[int, Fraction]:
        """Raises Rejected DP904."""
        return shares_of(self.shares, tree.releases.distinct) if self.shares else dict(weights)
