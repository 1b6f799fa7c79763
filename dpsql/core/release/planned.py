"""A release that is ready to be asked for: its measurements and the statements of its exact integers."""

from __future__ import annotations

from dataclasses import dataclass

from dpsql.core.noise.measurement import MeasuredRelease
from dpsql.core.printing.shapes.release_statement import Statement


@dataclass(frozen=True, slots=True)
class PlannedRelease:
    """A measured release and the statements that fetch its exact integers."""

    measured: MeasuredRelease
    statements: tuple[Statement, ...]
    label: str
