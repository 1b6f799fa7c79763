"""What a batch answers: for each member its rows, with intervals."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpsql.core.ir.types import SqlType
from dpsql.core.numbers.confidence import LEVEL
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.diagnostics.note import Note
from dpsql.frontend.aggregates.formula import Ends
from dpsql.planner.batch.estimate import Measured
from dpsql.planner.batch.member_answers import Cells, ToldNumber
from dpsql.planner.batch.members import Member
from dpsql.planner.batch.quantities import Form, LinearNumber, Quantity
from dpsql.planner.batch.workload import MemberTable

if TYPE_CHECKING:
    import pandas

Estimated = tuple[ToldNumber, tuple[float, ...]]
"""A number, and what its estimate is made of."""


@dataclass(frozen=True, slots=True)
class BatchAnswer:
    """The answer of one member. columns, types, rows: as of any query. _is_cut: whether a limit cuts its numbers."""

    sql: str
    columns: tuple[str, ...]
    types: tuple[SqlType, ...]
    rows: tuple[tuple[Any, ...], ...]
    _noisy: tuple[bool, ...] = field(repr=False)
    _numbers: tuple[tuple[Estimated | None, ...], ...] = field(repr=False)
    _is_cut: bool = field(default=False, repr=False)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def noisy(self) -> tuple[bool, ...]:
        """Of each column whether its numbers are noisy; the others are keys."""
        return self._noisy

    def bounds(self, level: float, *, bounded: bool = False) -> list[list[Ends | None]]:
        """For each row and column (low, high) at this confidence; None for keys, and for what a limit cuts: of what is
        never negative only the upper end is. bounded: of what it would be with its limits in place."""
        cut = self._is_cut and not bounded
        return [[None if each is None else _ends(*each, level, cut) for each in row] for row in self._numbers]

    def intervals(
        self, level: float | Fraction = float(LEVEL), *, bounded: bool = False
    ) -> list[dict[str, Ends | None]]:
        """One dict per row: column → (low, high) at this confidence; an end is None where a limit cuts the number by an
        unknown amount. bounded: as of a query. Raises Rejected DP406 unless 0 < level < 1."""
        if not 0 < level < 1:
            raise reject("DP406", "a confidence is above 0 and below 1", help=["intervals(0.95)"])
        found = self.bounds(float(level), bounded=bounded)
        names = [(name, i) for i, (name, noisy) in enumerate(zip(self.columns, self._noisy, strict=True)) if noisy]
        return [{name: row[i] for name, i in names} for row in found]

    def to_dict(self) -> dict[str, list[Any]]:
        """Column name → values."""
        return {name: [row[i] for row in self.rows] for i, name in enumerate(self.columns)}

    def df(self) -> pandas.DataFrame:
        """As a pandas DataFrame (needs the `pandas` extra)."""
        from dpsql.answers.results import frame_columns as frames

        with frames.extra("pandas"):
            import pandas

            return pandas.DataFrame(self.to_dict())


@dataclass(frozen=True, slots=True)
class BatchRelease(Sequence[BatchAnswer]):
    """The answers in the order of the members. spent: for all. refused: place of a member → why it has none."""

    answers: tuple[BatchAnswer | None, ...]
    spent: PrivacyLoss
    notes: tuple[Note, ...]
    refused: Mapping[int, Rejected]

    @property
    def predicted_error(self) -> float:
        """The root of the mean variance of all counts and sums: what the design says of its own noise."""
        told = [each[0] for a in self.answers if a for row in a._numbers for each in row if each is not None]
        found = [v for v in (each.variance() for each in told) if v is not None]
        return math.sqrt(sum(found) / len(found)) if found else 0.0

    def __getitem__(self, place: Any) -> Any:
        found = self.answers[place]
        if found is None and isinstance(place, int):
            raise self.refused[place % len(self.answers)]
        return found

    def __len__(self) -> int:
        return len(self.answers)


def _ends(number: ToldNumber, values: tuple[float, ...], level: float, cut: bool) -> Ends | None:
    if cut and not (isinstance(number.form, LinearNumber) and number.form.nonnegative):
        return None
    low, high = number.bounds(values, level)
    return low, None if cut else high


def answer_of(
    member: Member, table: MemberTable, forms: Sequence[Form], measured: Mapping[Quantity, Measured],
    cells: Mapping[Quantity, Cells], is_cut: bool,
) -> BatchAnswer:  # fmt: skip
    """What the noisy marginals say of a member. is_cut: whether limits cut them by an unknown amount."""
    types = {place - len(member.keys): c.type for place, c in zip(member.shown, member.columns, strict=True)}
    rows: list[tuple[list[Any], list[Estimated | None]]] = []
    for i, key in enumerate(table.keys):
        told = [
            ToldNumber(form, column[i], types.get(at, call.column.type), measured)
            for at, (form, column, call) in enumerate(zip(forms, table.numbers, member.calls, strict=True))
        ]
        made = [(each, each.values(cells)) for each in told]
        rows.append(([*key, *(each.shown(values) for each, values in made)], [*(None for _ in key), *made]))
    for place, descending, nulls_first in reversed(member.order):
        there = [row for row in rows if row[0][place] is not None]
        there.sort(key=lambda row: row[0][place], reverse=descending)
        none = [row for row in rows if row[0][place] is None]
        rows = none + there if nulls_first else there + none
    return BatchAnswer(
        member.source.text, tuple(c.name for c in member.columns), tuple(c.type for c in member.columns),
        tuple(tuple(values[p] for p in member.shown) for values, _ in rows),
        tuple(p >= len(member.keys) for p in member.shown),
        tuple(tuple(numbers[p] for p in member.shown) for _, numbers in rows),
        is_cut,
    )  # fmt: skip
