"""The stages of an ordinary plan, in the order of a run. What searches limits comes before all (`searching.py`)."""

from __future__ import annotations

from dpsql.planner.stages.answering_rows import AnsweringRows
from dpsql.planner.stages.covering import Covering
from dpsql.planner.stages.part_of_batch import PartOfBatch
from dpsql.planner.stages.releasing import Releasing
from dpsql.planner.stages.stage import Stage
from dpsql.planner.stages.totalling import Totalling

STAGES: tuple[type[Stage], ...] = (
    Releasing,
    Totalling,
    Covering,
    PartOfBatch,
    AnsweringRows,
)
