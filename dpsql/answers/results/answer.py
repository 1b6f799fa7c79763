"""Release: the answer that users hold. Public numbers, what they cost, and how far to trust them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from html import escape
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from dpsql.answers.results import frame_columns as frames
from dpsql.answers.results.cell_texts import Reach, cell, reach_of
from dpsql.core.ir.types import DOUBLE, SqlType
from dpsql.core.numbers.confidence import LEVEL
from dpsql.core.privacy_loss import PrivacyLoss, exact
from dpsql.core.release.noisy import NoisyRelease
from dpsql.diagnostics.errors import reject
from dpsql.diagnostics.layout import one_line
from dpsql.diagnostics.note import Note
from dpsql.frontend.aggregates.formula import Ends
from dpsql.planner.postprocessing.coverage import Covered, covered
from dpsql.planner.postprocessing.intervals.shown_intervals import ShownIntervals
from dpsql.planner.postprocessing.run import AnswerRows
from dpsql.planner.postprocessing.searches.told import FoundLimit, bounds, found_coverage

T = TypeVar("T")
_SHOWN = 20
"""Rows that a prompt of Python shows, and a notebook of more than `_MOST_IN_NOTEBOOKS`."""
_MOST_IN_NOTEBOOKS = 60

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow
    from matplotlib.axes import Axes

    from dpsql.core.release.planned import PlannedRelease
    from dpsql.planner.plan import Plan


@dataclass(frozen=True, slots=True)
class Release:
    """The rows of an answer.

    columns, types: names and SQL types in order.
    spent: what was counted in the analyst's account, for new noise and for stored answers that it did not have; the
        largest over all privacy units.
    notes: what was clipped or bounded, what was answered from stored answers, and how the data was opened: texts, each
        with its `rank`, dangers first.
    plan: the very plan that was priced and run.
    Iteration, `len` and `in` are those of `rows`. It is held in columns: `df`, `pl`, `arrow`, `to_dict` make no rows.

    >>> con = dpsql.connect("clinic.yaml")
    >>> answer = con.sql("SELECT region, COUNT(*) AS n FROM patients GROUP BY region ORDER BY region").run(epsilon=1)
    >>> answer.columns, [str(t) for t in answer.types], len(answer)
    (('region', 'n'), ['VARCHAR', 'BIGINT'], 4)
    >>> [region for region, n in answer]
    ['east', 'north', 'south', 'west']
    >>> answer.spent
    PrivacyLoss(epsilon=1)
    """

    columns: tuple[str, ...]
    types: tuple[SqlType, ...]
    spent: PrivacyLoss
    notes: tuple[Note, ...]
    plan: Plan = field(repr=False)
    _noisy: tuple[NoisyRelease, ...] = field(repr=False)
    _table: AnswerRows = field(repr=False)

    @property
    def rows(self) -> tuple[tuple[Any, ...], ...]:
        """All rows, of plain Python values."""
        return self._table.rows

    def __len__(self) -> int:
        return self._table.height

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.rows)

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows as tuples. (A Release is a value and has no place in it to fetch one row after another from: iterate
        over it, or use the cursor that `Connection.execute` gives.)"""
        return list(self.rows)

    def intervals(
        self, level: float | Fraction = float(LEVEL), *, bounded: bool = False
    ) -> list[dict[str, Ends | None]]:
        """One dict per row: column → (low, high) at this confidence, or None where no interval can be given.

        The intervals cover what the query would give without noise and without limits on units; clips of values stay
        in place. Where a limit cuts a number by an unknown amount, the end to that side is None. Numbers computed from
        released ones have intervals, too; `gaps` says why one has none, or lacks an end. What has no noise has None,
        and group keys do not appear. Repeated names get a number (`to_dict`).
        bounded: of what the query would give with its limits in place, whatever they cut.
        Raises Rejected DP406 unless 0 < level < 1.
        """
        found = column_intervals(self, _confidence(level), bounded=bounded)
        return _by_row({n: t.bounds for n, t in found.items()}, len(self))

    def gaps(self, level: float | Fraction = float(LEVEL)) -> list[dict[str, str]]:
        """One dict per row: column → why its number has no interval at this confidence, or lacks an end of it; nothing
        where it has both, or no noise. Raises Rejected DP406 unless 0 < level < 1.
        """
        found = column_intervals(self, _confidence(level))
        return [{n: t.why[row] for n, t in found.items() if t.why[row]} for row in range(len(self))]

    @property
    def coverage(self) -> tuple[Covered, ...]:
        """How many units are above the limits that were enforced, if that was asked for: `run(coverage=True)`.

        Of limits that were found (`limits="search"`) it is known for nothing.

        Noisy numbers, paid for as a tenth of the price; they correct nothing in the answer. One for each set of limits.
        """
        return (*covered(self.plan.coverage, self._noisy), *found_coverage(self.plan.found_of_own_rows))

    @property
    def bounds(self) -> tuple[FoundLimit, ...]:
        """The limits that were found (`limits="search"`), each with the counts that it was read from; else nothing.

        >>> con = dpsql.connect("clinic.yaml")
        >>> answer = con.sql("SELECT COUNT(*) AS n FROM visits").run(epsilon=1, limits="search")
        >>> (rows,) = answer.bounds
        >>> rows.what, rows.unit, len(rows.octaves)
        ('COUNT(*)', 'patient', 63)
        """
        return bounds(self.plan.found)

    @property
    def _made(self) -> tuple[PlannedRelease, ...]:
        """The releases as their numbers were drawn: of a stored one, that which made it."""
        return tuple(n.planned for n in self._noisy) or self.plan.releases

    @property
    def components(self) -> list[dict[str, Any]]:
        """The measurements behind the answer, as in EXPLAIN's JSON; of a stored number, the one that made it.

        Of what was computed of a summary: the noise of each of its marginals, and of how many cells each number that is
        added up is a sum (`copies`).
        """
        from dpsql.planner.explain.stable_json import as_json

        made = as_json(self.plan.with_releases(self._made))["releases"]
        estimates = {at: n.estimate for at, n in enumerate(self._noisy) if n.estimate is not None}
        found = [c for at, release in enumerate(made) if at not in estimates for c in release["components"]]
        for source in {id(e.sources): e.sources for e in estimates.values()}.values():
            found += [
                {"mechanism": s.mechanism.name, "scale": float(s.mechanism.scale), "copies": s.copies} for s in source
            ]
        return found

    def to_dict(self) -> dict[str, list[Any]]:
        """Column name → values. Repeated names get a number."""
        names = unique_names(self.columns)
        return {name: list(values) for name, values in zip(names, self._table.columns, strict=True)}

    def df(self, *, intervals: bool = False, level: float | Fraction = float(LEVEL)) -> pandas.DataFrame:
        """As a pandas DataFrame (needs the `pandas` extra), its dtypes those of the SQL types, also without rows.

        Integers are int64, with NULL Int64; DATE and TIMESTAMP are datetime64; DECIMAL are Decimal objects.
        intervals: with columns `<column>_low` and `<column>_high` beside each that has intervals, at this level.
        """
        with frames.extra("pandas"):
            return frames.to_pandas(*self._framed(intervals, level))

    def pl(self, *, intervals: bool = False, level: float | Fraction = float(LEVEL)) -> polars.DataFrame:
        """As a polars DataFrame (needs the `polars` extra), of the SQL types. intervals, level: as for `df`."""
        with frames.extra("polars"):
            return frames.to_polars(*self._framed(intervals, level))

    def arrow(self, *, intervals: bool = False, level: float | Fraction = float(LEVEL)) -> pyarrow.Table:
        """As an Arrow table (needs the `arrow` extra), of the SQL types. intervals, level: as for `df`.

        Arrow has no integers of 128 bits: HUGEINT (what SUM of integers is) is int64, where a number is larger decimal.
        """
        with frames.extra("arrow"):
            return frames.to_arrow(*self._framed(intervals, level))

    def _framed(
        self, intervals: bool, level: float | Fraction
    ) -> tuple[Mapping[str, Sequence[Any]], Sequence[SqlType]]:
        if intervals:
            return with_ends(self, _confidence(level))
        return dict(zip(unique_names(self.columns), self._table.columns, strict=True)), self.types

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Arrow's interface between libraries: `polars.DataFrame(answer)`, `pyarrow.table(answer)`. Needs pyarrow."""
        return self.arrow().__arrow_c_stream__(requested_schema)

    def plot(
        self,
        y: str | Sequence[str] | None = None,
        *,
        x: str | None = None,
        kind: Literal["bar", "point"] | None = None,
        level: float | Fraction = float(LEVEL),
        ax: Axes | None = None,
    ) -> Any:
        """Each released number with its interval as an error bar (needs the `plot` extra).

        y: the column or columns to show; all released numbers if none is named. Several are drawn one below the other.
        x: the column along the axis; the group keys if none is named.
        kind: bars or points; points if x holds numbers, dates or timestamps, and bars for names.
        level: the confidence of the error bars; what has no interval has none.
        ax: where to draw, for one y; else a new figure.
        Returns the Axes; of several y an array of Axes. Raises Rejected DP903 for names that are no such columns.
        """
        from dpsql.answers.results.plot import draw

        with frames.extra("plot"):
            return draw(self, y, x, kind, level, ax)

    def _repr_html_(self) -> str:
        """What notebooks show: the table, each number with its ±; of many rows the first."""

        return _as_html(self)

    def __repr__(self) -> str:
        """What a prompt of Python shows: the table, of many rows the first."""
        if len(self) <= _SHOWN:
            return _as_text(self)
        return f"{_as_text(self, _SHOWN)}\n… ({len(self)} rows)"

    def __str__(self) -> str:
        return _as_text(self)


def _confidence(level: float | Fraction) -> Fraction:
    """Raises Rejected DP406."""
    try:
        wanted = exact(level, "level")
    except ValueError as error:
        raise reject("DP406", str(error)) from None
    if not 0 < wanted < 1:
        raise reject("DP406", f"a confidence level lies between 0 and 1, not {level}")
    return wanted


def unique_names(names: Sequence[str]) -> list[str]:
    """The names with numbers appended to repetitions: n, n_1, n_2."""
    found: dict[str, None] = {}
    numbers: dict[str, int] = {}  # name → its last number: smaller ones are taken
    for name in names:
        candidate, number = name, numbers.get(name, 0)
        while candidate in found:
            number += 1
            candidate = f"{name}_{number}"
        numbers[name] = number
        found[candidate] = None
    return list(found)


def column_intervals(
    release: Release, level: Fraction, most: int | None = None, bounded: bool = False
) -> dict[str, ShownIntervals]:
    """Column → its intervals in the first rows, or (None) in all; group keys do not appear. level: in (0, 1)."""
    from dpsql.planner.postprocessing.planning.unchanged_columns import is_key

    plan, table = release.plan, release._table if most is None else release._table.first(most)
    found: dict[str, ShownIntervals] = {}
    for name, column, values in zip(unique_names(release.columns), plan.columns, table.columns, strict=True):
        if not is_key(plan.tree.node, column.uid):
            nothing = ShownIntervals.nothing(table.height)
            found[name] = (
                nothing if table.derived is None else table.derived.intervals(column.uid, values, level, bounded)
            )
    return found


def with_ends(release: Release, level: Fraction) -> tuple[dict[str, list[Any]], list[SqlType]]:
    """`to_dict` with `<column>_low` and `<column>_high` behind each column that has intervals, and all SQL types."""
    intervals, columns = column_intervals(release, level), release.to_dict()
    bounded = [n for n in columns if n in intervals and any(b is not None for b in intervals[n].bounds)]
    ends = [f"{n}_{end}" for n in bounded for end in ("low", "high")]
    names = dict(zip(ends, unique_names([*columns, *ends])[len(columns) :], strict=True))
    found: dict[str, list[Any]] = {}
    types: list[SqlType] = []
    for (name, values), type_ in zip(columns.items(), release.types, strict=True):
        found[name] = values
        types.append(type_)
        if name in bounded:
            for i, end in enumerate(("low", "high")):
                found[names[f"{name}_{end}"]] = [None if b is None else b[i] for b in intervals[name].bounds]
                types.append(DOUBLE)
    return found, types


def reaches(release: Release, level: Fraction = LEVEL, most: int | None = None) -> list[dict[str, Reach | None]]:
    """How far each interval reaches below and above its number: what tables show. most: of the first rows only."""
    rows = first_rows(release, most)
    names = unique_names(release.columns)
    found = _by_row({n: t.bounds for n, t in column_intervals(release, level, most).items()}, len(rows))
    values = (dict(zip(names, row, strict=True)) for row in rows)
    return [
        {name: None if b is None else reach_of(numbers[name], *b) for name, b in row.items()}
        for numbers, row in zip(values, found, strict=True)
    ]


def remarks(release: Release, level: Fraction = LEVEL, most: int | None = None) -> list[dict[str, str]]:
    """What tables show beside a number that has no ±, though others of its column have: column → why."""
    found = {n: t.why for n, t in column_intervals(release, level, most).items() if t.single}
    return [{n: w for n, w in row.items() if w} for row in _by_row(found, len(first_rows(release, most)))]


def _by_row(columns: Mapping[str, Sequence[T]], height: int) -> list[dict[str, T]]:
    """Columns as one dict per row."""
    if not columns:
        return [{} for _ in range(height)]
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def first_rows(release: Release, most: int | None) -> tuple[tuple[Any, ...], ...]:
    """The first rows, without making the others; None: all."""
    return release.rows if most is None else release._table.first(most).rows


def _as_text(release: Release, most: int | None = None) -> str:
    table, names = [[one_line(name) for name in release.columns]], unique_names(release.columns)
    beside = reaches(release, most=most), remarks(release, most=most)
    for row, width, why in zip(first_rows(release, most), *beside, strict=True):
        table.append([cell(v, width.get(n), why.get(n, "")).text for n, v in zip(names, row, strict=True)])
    sizes = [max(len(line[i]) for line in table) for i in range(len(release.columns))]
    return "\n".join("  ".join(c.ljust(s) for c, s in zip(line, sizes, strict=True)).rstrip() for line in table)


def _as_html(release: Release) -> str:
    """One table: names, rows with the ± of each number at 95 %, and below it the rows left out and what was spent.

    Every text in it is escaped: group keys are values of the data.
    """

    height = len(release)
    shown = height if height <= _MOST_IN_NOTEBOOKS else _SHOWN
    names = unique_names(release.columns)
    lines = ["<table>", "<thead><tr>", *(f"<th>{_escaped(name)}</th>" for name in release.columns), "</tr></thead>"]
    lines.append("<tbody>")
    beside = reaches(release, most=shown), remarks(release, most=shown)
    for row, widths, why in zip(first_rows(release, shown), *beside, strict=True):
        cells = [cell(value, widths.get(n), why.get(n, "")) for n, value in zip(names, row, strict=True)]
        parts = (f'<td style="text-align: {"right" if c.numeric else "left"}">{escape(c.text)}</td>' for c in cells)
        lines.append(f"<tr>{''.join(parts)}</tr>")
    lines += ["</tbody>", "</table>"]
    counted = f"{height} row{'' if height == 1 else 's'}"
    if shown < height:
        counted += f", of which the first {shown} are shown"
    lines.append(f"<p>{counted}; ± at 95 %; spent {_escaped(str(release.spent))}</p>")
    return "\n".join(lines)


def _escaped(text: str) -> str:
    return escape(one_line(text))
