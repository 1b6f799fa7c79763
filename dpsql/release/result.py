"""Release: the answer that users hold. Public numbers, what they cost, and how far to trust them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

from dpsql.diagnostics.errors import reject
from dpsql.diagnostics.layout import one_line
from dpsql.loss import PrivacyLoss, exact
from dpsql.numbers.confidence import LEVEL
from dpsql.release import frames
from dpsql.release.cells import cell
from dpsql.release.intervals import Bounds, output_intervals
from dpsql.release.noisy import NoisyRelease
from dpsql.release.post import Rows
from dpsql.types import SqlType

_ByRow = list[Bounds] | dict[int, Bounds]
"""Row of a release → its interval."""
_SHOWN = 20
"""Rows that a prompt of Python shows."""

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow
    from matplotlib.axes import Axes

    from dpsql.compiler.plan import Plan


@dataclass(frozen=True, slots=True)
class Release:
    """The rows of an answer.

    columns, types: names and SQL types in order.
    spent: what was counted in the analyst's account, for new noise and for stored answers that it did not have; the
        largest over all privacy units.
    notes: what was clipped or bounded, what was answered from stored answers, and how the data was opened.
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
    notes: tuple[str, ...]
    plan: Plan = field(repr=False)
    _noisy: tuple[NoisyRelease, ...] = field(repr=False)
    _table: Rows = field(repr=False)

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

    def intervals(self, level: float | Fraction = float(LEVEL)) -> list[dict[str, Bounds | None]]:
        """One dict per row: column → (low, high) at this confidence, or None where no interval can be given.

        The intervals cover what the query would give without noise, with clips and limits in place. Columns that are
        computed from released numbers, or that a join or a scalar subquery brings in, have None; group keys do not
        appear. Repeated names get a number (`to_dict`).
        Raises Rejected DP406 unless 0 < level < 1.
        """
        try:
            wanted = exact(level, "level")
        except ValueError as error:
            raise reject("DP406", str(error)) from None
        if not 0 < wanted < 1:
            raise reject("DP406", f"a confidence level lies between 0 and 1, not {level}")
        return self._intervals(wanted, None)

    def _intervals(self, level: Fraction, most: int | None) -> list[dict[str, Bounds | None]]:
        """Those of the first rows, or (None) of all."""
        from dpsql.compiler.post import is_key

        branches, table = self.plan.post.branches, self._table
        shown: list[list[int] | None] = [None] * len(branches)
        if most is not None and most < table.height:
            table = table.first(most)
            shown = [sorted({o[1] for o in table.origin if o is not None and o[0] == i}) for i in range(len(branches))]
        named: dict[str, Sequence[Bounds | None]] = {}
        for at, (name, column) in enumerate(zip(unique_names(self.columns), self.plan.columns, strict=True)):
            if not is_key(self.plan.tree.node, column.uid):
                found = [self._bounds(b[at], level, rows) for b, rows in zip(branches, shown, strict=True)]
                named[name] = _in_rows(found, table)
        if not named:
            return [{} for _ in range(table.height)]
        return [dict(zip(named, row, strict=True)) for row in zip(*named.values(), strict=True)]

    def _bounds(self, source: tuple[int, int] | None, level: Fraction, rows: list[int] | None) -> _ByRow | None:
        """Intervals of an output of a release: of each row, or only of these."""
        if source is None:
            return None
        noisy = self._noisy[source[0]]
        output = noisy.planned.measured.node.outputs[source[1]]
        if rows is None:
            return output_intervals(noisy, output, level)
        return dict(zip(rows, output_intervals(noisy.only(rows), output, level), strict=True))

    @property
    def components(self) -> list[dict[str, Any]]:
        """The measurements behind the answer, as in EXPLAIN's JSON; of a stored number, the one that made it."""
        from dpsql.compiler.explain import as_json

        made = replace(self.plan, releases=tuple(n.planned for n in self._noisy) or self.plan.releases)
        return [c for r in as_json(made)["releases"] for c in r["components"]]

    def to_dict(self) -> dict[str, list[Any]]:
        """Column name → values. Repeated names get a number."""
        names = unique_names(self.columns)
        return {name: list(values) for name, values in zip(names, self._table.columns, strict=True)}

    def df(self) -> pandas.DataFrame:
        """As a pandas DataFrame (needs the `pandas` extra), its dtypes those of the SQL types, also without rows.

        Integers are int64, with NULL Int64; DATE and TIMESTAMP are datetime64; DECIMAL are Decimal objects.
        """
        with frames.extra("pandas"):
            return frames.to_pandas(self.to_dict(), self.types)

    def pl(self) -> polars.DataFrame:
        """As a polars DataFrame (needs the `polars` extra), of the SQL types."""
        with frames.extra("polars"):
            return frames.to_polars(self.to_dict(), self.types)

    def arrow(self) -> pyarrow.Table:
        """As an Arrow table (needs the `arrow` extra), of the SQL types.

        Arrow has no integers of 128 bits: HUGEINT (what SUM of integers is) is int64, where a number is larger decimal.
        """
        with frames.extra("arrow"):
            return frames.to_arrow(self.to_dict(), self.types)

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
        from dpsql.release.plot import draw

        with frames.extra("plot"):
            return draw(self, y, x, kind, level, ax)

    def _repr_html_(self) -> str:
        """What notebooks show: the table, each number with its ±; of many rows the first."""
        from dpsql.release.html import as_html

        return as_html(self)

    def __repr__(self) -> str:
        """What a prompt of Python shows: the table, of many rows the first."""
        if len(self) <= _SHOWN:
            return _as_text(self)
        return f"{_as_text(self, _SHOWN)}\n… ({len(self)} rows)"

    def __str__(self) -> str:
        return _as_text(self)


def _in_rows(found: Sequence[_ByRow | None], table: Rows) -> Sequence[Bounds | None]:
    """For each row of the answer the interval that it shows, if any. found: for each branch those of its release."""
    if table.traced is None:
        (only,) = found
        return (None,) * table.height if only is None else list(only.values()) if isinstance(only, dict) else only
    return [_at(found, origin) for origin in table.traced]


def _at(found: Sequence[_ByRow | None], origin: tuple[int, int] | None) -> Bounds | None:
    """The interval of the row that is shown, if one is."""
    if origin is None:
        return None
    branch, row = origin
    bounds = found[branch]
    return None if bounds is None else bounds[row]


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


def half_widths(release: Release, level: Fraction = LEVEL, most: int | None = None) -> list[dict[str, float | None]]:
    """How far each interval reaches from its number: the ± that tables show. most: of the first rows only.

    Half the width where the number is in the middle. That of an average in a small group, or at an end of its bounds,
    is not; then the farther end counts, so that `value ± width` covers whatever the interval covers.
    """
    found = release.intervals(level) if most is None else release._intervals(level, most)
    names = unique_names(release.columns)
    values = (dict(zip(names, row, strict=True)) for row in first_rows(release, most))
    return [
        {name: None if b is None else _reach(numbers[name], *b) for name, b in row.items()}
        for numbers, row in zip(values, found, strict=True)
    ]


def _reach(value: Any, low: float, high: float) -> float:
    half, far = (high - low) / 2, max(high - float(value), float(value) - low)
    return far if far > half * (1 + 1e-9) else half  # what is less is a float's own error


def first_rows(release: Release, most: int | None) -> tuple[tuple[Any, ...], ...]:
    """The first rows, without making the others; None: all."""
    return release.rows if most is None else release._table.first(most).rows


def _as_text(release: Release, most: int | None = None) -> str:
    widths = half_widths(release, most=most)
    table, names = [[one_line(name) for name in release.columns]], unique_names(release.columns)
    for row, width in zip(first_rows(release, most), widths, strict=True):
        named = zip(names, row, strict=True)
        table.append([cell(value, width.get(name)).text for name, value in named])
    sizes = [max(len(line[i]) for line in table) for i in range(len(release.columns))]
    return "\n".join("  ".join(c.ljust(s) for c, s in zip(line, sizes, strict=True)).rstrip() for line in table)
