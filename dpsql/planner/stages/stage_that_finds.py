"""What stands before the numbers of a query: of its noisy answers, what follows is planned anew."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.planner.stages.query_to_plan import Parameters
from dpsql.planner.stages.stage import Stage

if TYPE_CHECKING:
    from dpsql.planner.plan import Plan


@dataclass(frozen=True, slots=True)
class StageThatFinds(Stage):
    """A stage that finds what those behind it are planned with.

    plan: of what it asks, an ordinary one with a price of its own. settings, parameters: of what follows.
    """

    finds: ClassVar[bool] = True
    plan: Plan
    settings: QuerySettings
    parameters: Parameters
