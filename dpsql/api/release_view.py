"""What a cursor offers of the Release it holds, under the same names."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

from dpsql.answers.results.answer import Release
from dpsql.core.ir.types import SqlType
from dpsql.core.numbers.confidence import LEVEL
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.diagnostics.note import Note
from dpsql.frontend.aggregates.formula import Ends
from dpsql.planner.postprocessing.coverage import Covered
from dpsql.planner.postprocessing.searches.told import FoundLimit

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow
    from matplotlib.axes import Axes

    from dpsql.planner.plan import Plan


class ReleaseView(ABC):
    """Every name here means what it means to `release`, all rows included, whatever has been fetched."""

    @property
    @abstractmethod
    def release(self) -> Release:
        """The answer."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self.release.columns

    @property
    def types(self) -> tuple[SqlType, ...]:
        """SQL types of the columns."""
        return self.release.types

    @property
    def rows(self) -> tuple[tuple[Any, ...], ...]:
        """All rows, whatever has been fetched."""
        return self.release.rows

    @property
    def spent(self) -> PrivacyLoss:
        """What was charged."""
        return self.release.spent

    @property
    def notes(self) -> tuple[Note, ...]:
        """What was clipped, bounded or given again; each with its rank, dangers first."""
        return self.release.notes

    @property
    def plan(self) -> Plan:
        """The plan that was run."""
        return self.release.plan

    @property
    def coverage(self) -> tuple[Covered, ...]:
        """`Release.coverage`."""
        return self.release.coverage

    @property
    def bounds(self) -> tuple[FoundLimit, ...]:
        """`Release.bounds`."""
        return self.release.bounds

    @property
    def components(self) -> list[dict[str, Any]]:
        """The measurements behind the answer."""
        return self.release.components

    def __len__(self) -> int:
        return len(self.release)

    def __str__(self) -> str:
        return str(self.release)

    def intervals(
        self, level: float | Fraction = float(LEVEL), *, bounded: bool = False
    ) -> list[dict[str, Ends | None]]:
        """See `Release.intervals`."""
        return self.release.intervals(level, bounded=bounded)

    def gaps(self, level: float | Fraction = float(LEVEL)) -> list[dict[str, str]]:
        """See `Release.gaps`."""
        return self.release.gaps(level)

    def to_dict(self) -> dict[str, list[Any]]:
        """See `Release.to_dict`."""
        return self.release.to_dict()

    def df(self, *, intervals: bool = False, level: float | Fraction = float(LEVEL)) -> pandas.DataFrame:
        """See `Release.df`."""
        return self.release.df(intervals=intervals, level=level)

    def pl(self, *, intervals: bool = False, level: float | Fraction = float(LEVEL)) -> polars.DataFrame:
        """See `Release.pl`."""
        return self.release.pl(intervals=intervals, level=level)

    def arrow(self, *, intervals: bool = False, level: float | Fraction = float(LEVEL)) -> pyarrow.Table:
        """See `Release.arrow`."""
        return self.release.arrow(intervals=intervals, level=level)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.release.__arrow_c_stream__(requested_schema)

    def plot(
        self,
        y: str | Sequence[str] | None = None,
        *,
        x: str | None = None,
        kind: Literal["bar", "point"] | None = None,
        level: float | Fraction = float(LEVEL),
        ax: Axes | None = None,
    ) -> Any:
        """See `Release.plot`."""
        return self.release.plot(y, x=x, kind=kind, level=level, ax=ax)

    def _repr_html_(self) -> str:
        return self.release._repr_html_()
