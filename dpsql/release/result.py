"""Release: the answer that users hold. Public numbers, what they cost, and how far to trust them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpsql.diagnostics.errors import reject
from dpsql.loss import PrivacyLoss, exact
from dpsql.numbers.confidence import LEVEL
from dpsql.release.cells import cell
from dpsql.release.intervals import Bounds, output_intervals
from dpsql.release.noisy import NoisyRelease
from dpsql.release.post import Rows
from dpsql.types import SqlType

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from dpsql.compiler.plan import Plan


@dataclass(frozen=True, slots=True)
class Release:
    """The rows of an answer.

    columns, types: names and SQL types in order.
    rows: plain Python values.
    spent: what was counted in the analyst's account, for new noise and for stored answers that it did not have; the
        largest over all privacy units.
    notes: what was clipped or bounded, what was answered from stored answers, and how the data was opened.
    plan: the very plan that was priced and run.
    """

    columns: tuple[str, ...]
    types: tuple[SqlType, ...]
    rows: tuple[tuple[Any, ...], ...]
    spent: PrivacyLoss
    notes: tuple[str, ...]
    plan: Plan = field(repr=False)
    _noisy: tuple[NoisyRelease, ...] = field(default=(), repr=False)
    _table: Rows | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.rows)

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows as tuples."""
        return list(self.rows)

    def fetchone(self) -> tuple[Any, ...] | None:
        """The first row, or None."""
        return self.rows[0] if self.rows else None

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
        from dpsql.compiler.post import is_key

        branches = self.plan.post.branches
        table = self._table or Rows((), ())
        named: dict[str, Sequence[Bounds | None]] = {}
        for at, (name, column) in enumerate(zip(unique_names(self.columns), self.plan.columns, strict=True)):
            if not is_key(self.plan.tree.node, column.uid):
                found = [self._bounds(branch[at], wanted) for branch in branches]
                named[name] = _in_rows(found, table)
        if not named:
            return [{} for _ in table.rows]
        return [dict(zip(named, row, strict=True)) for row in zip(*named.values(), strict=True)]

    def _bounds(self, source: tuple[int, int] | None, level: Fraction) -> list[Bounds] | None:
        """Intervals of an output of a release, one per row."""
        if source is None:
            return None
        noisy = self._noisy[source[0]]
        return output_intervals(noisy, noisy.planned.measured.node.outputs[source[1]], level)

    @property
    def components(self) -> list[dict[str, Any]]:
        """The measurements behind the answer, as in EXPLAIN's JSON; of a stored number, the one that made it."""
        from dpsql.compiler.explain import as_json

        made = replace(self.plan, releases=tuple(n.planned for n in self._noisy) or self.plan.releases)
        return [c for r in as_json(made)["releases"] for c in r["components"]]

    def to_dict(self) -> dict[str, list[Any]]:
        """Column name → values. Repeated names get a number."""
        names = unique_names(self.columns)
        columns: Sequence[Sequence[Any]] = [()] * len(names)
        if self._table is not None and self._table.rows is self.rows:
            columns = self._table.columns
        elif self.rows:
            columns = list(zip(*self.rows, strict=True))
        return {name: list(values) for name, values in zip(names, columns, strict=True)}

    def df(self) -> pandas.DataFrame:
        """As a pandas DataFrame (needs the `pandas` extra)."""
        import pandas

        return pandas.DataFrame(self.to_dict())

    def pl(self) -> polars.DataFrame:
        """As a polars DataFrame (needs the `polars` extra)."""
        import polars

        return polars.DataFrame(self.to_dict(), strict=False)

    def arrow(self) -> pyarrow.Table:
        """As an Arrow table (needs the `arrow` extra)."""
        import pyarrow

        return pyarrow.table(self.to_dict())

    def __str__(self) -> str:
        return _as_text(self)


def _in_rows(found: Sequence[list[Bounds] | None], table: Rows) -> Sequence[Bounds | None]:
    """For each row of the answer the interval that it shows, if any. found: for each branch those of its release."""
    if table.traced is None:
        (only,) = found
        return (None,) * len(table.rows) if only is None else only
    return [_at(found, origin) for origin in table.traced]


def _at(found: Sequence[list[Bounds] | None], origin: tuple[int, int] | None) -> Bounds | None:
    """The interval of the row that is shown, if one is."""
    if origin is None:
        return None
    branch, row = origin
    bounds = found[branch]
    return None if bounds is None else bounds[row]


def unique_names(names: Sequence[str]) -> list[str]:
    """The names with numbers appended to repetitions: n, n_1, n_2."""
    found: list[str] = []
    for name in names:
        candidate, number = name, 0
        while candidate in found:
            number += 1
            candidate = f"{name}_{number}"
        found.append(candidate)
    return found


def half_widths(release: Release, level: Fraction = LEVEL) -> list[dict[str, float | None]]:
    """Half the width of each interval: the ± that tables show."""
    return [
        {name: None if b is None else (b[1] - b[0]) / 2 for name, b in row.items()} for row in release.intervals(level)
    ]


def _as_text(release: Release) -> str:
    widths = half_widths(release)
    table = [list(release.columns)]
    for row, width in zip(release.rows, widths, strict=True):
        named = zip(unique_names(release.columns), row, strict=True)
        table.append([cell(value, width.get(name)).text for name, value in named])
    sizes = [max(len(line[i]) for line in table) for i in range(len(release.columns))]
    return "\n".join("  ".join(c.ljust(s) for c, s in zip(line, sizes, strict=True)).rstrip() for line in table)
