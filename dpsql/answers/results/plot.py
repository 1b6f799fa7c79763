"""An answer as a picture: each released number with its interval. Needs matplotlib (the `plot` extra)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

from dpsql.answers.results.cell_texts import plain
from dpsql.core.ir.types import Kind
from dpsql.diagnostics.errors import reject
from dpsql.frontend.aggregates.formula import Ends

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dpsql.answers.results.answer import Release

_MOST_LABELS = 40
"""More names than this below an axis are not readable: they are left out."""


def draw(
    release: Release,
    y: str | Sequence[str] | None,
    x: str | None,
    kind: Literal["bar", "point"] | None,
    level: float | Fraction,
    ax: Axes | None,
) -> Any:
    """See `Release.plot`."""
    from matplotlib import pyplot

    columns, types = release.to_dict(), dict(zip(release.to_dict(), release.types, strict=True))
    bounds = release.intervals(level)
    released = set(bounds[0]) if bounds else set(columns)
    measures = [name for name in columns if name in released and types[name].numeric and name != x]
    wanted = measures if y is None else [y] if isinstance(y, str) else list(y)
    for name in [*wanted, *([] if x is None else [x])]:
        if name not in columns or (name in wanted and not types[name].numeric):
            raise reject("DP903", f"{name!r} is no column to draw", help=[f"numbers: {', '.join(measures) or 'none'}"])
    if not wanted:
        raise reject("DP903", "the answer holds no number to draw", help=["name a column with y="])
    if kind not in (None, "bar", "point"):
        raise reject("DP903", f"unknown kind {kind!r}", help=["use bar or point"])
    keys = [name for name in columns if name not in measures and name not in wanted]
    keys = [x] if x is not None else [name for name in keys if not (name in released and types[name].temporal)]
    if ax is not None and len(wanted) > 1:
        raise reject("DP903", "several columns do not fit into one `ax`", help=["name one of them with y="])
    made: Any = ax
    if ax is None:
        size = (max(4.0, min(12.0, 1.5 + 0.5 * len(release))), 3.2 * len(wanted))
        _, made = pyplot.subplots(len(wanted), 1, figsize=size, squeeze=True, sharex=True, layout="constrained")
    continuous = len(keys) == 1 and (types[keys[0]].numeric or types[keys[0]].kind in (Kind.DATE, Kind.TIMESTAMP))
    places = columns[keys[0]] if continuous else list(range(len(release)))
    rows = [i for i, place in enumerate(places) if place is not None]
    labels = [" · ".join(plain(columns[k][i]) or "NULL" for k in keys) for i in rows]
    shown = [places[i] for i in rows]
    for name, one in zip(wanted, made if len(wanted) > 1 else [made], strict=True):
        found = [_float(columns[name][i]) for i in rows]
        _draw(one, shown, found, [bounds[i].get(name) for i in rows], kind, continuous)
        one.set_ylabel(_safe(name))
        if not continuous:
            one.set_xticks(range(len(rows)) if len(rows) <= _MOST_LABELS else [])
            if len(rows) <= _MOST_LABELS:
                one.set_xticklabels([_safe(label) for label in labels], rotation=0 if len(rows) <= 6 else 60)
    first, last = (made[0], made[-1]) if len(wanted) > 1 else (made, made)
    last.set_xlabel(_safe(" · ".join(keys)))
    if not first.get_title():
        first.set_title(_safe(_title(wanted, keys, bounds, level)), fontsize="medium")
    return made


def _title(
    names: Sequence[str],
    keys: Sequence[str],
    bounds: Sequence[Mapping[str, Ends | None]],
    level: float | Fraction,
) -> str:
    """What is drawn, and at which confidence: `n by origin, ± at 95 %`."""
    by = f" by {' · '.join(keys)}" if keys else ""
    has_ends = any(row.get(name) is not None for row in bounds for name in names)
    return f"{', '.join(names)}{by}" + (f", ± at {float(level) * 100:.4g} %" if has_ends else "")


def _draw(
    ax: Axes,
    places: Sequence[Any],
    values: Sequence[float],
    bounds: Sequence[Ends | None],
    kind: str | None,
    continuous: bool,
) -> None:
    # Without an interval there is no bar, not one of no length, which would say that the number is exact.
    below, above = ([_side(v, b, end) for v, b in zip(values, bounds, strict=True)] for end in (0, 1))
    around = [below, above] if any(b is not None for b in bounds) else None
    if kind == "bar" or (kind is None and not continuous):
        ax.bar(places, values, yerr=around, capsize=3)
    else:
        ax.errorbar(places, values, yerr=around, fmt="o", capsize=3)
    for end, arrow in ((0, "v"), (1, "^")):  # nothing is known to that side
        open_at = [(p, v) for p, v, b in zip(places, values, bounds, strict=True) if b is not None and b[end] is None]
        if open_at:
            ax.plot(*zip(*open_at, strict=True), arrow, color="black", markersize=8)


def _side(value: float, bounds: Ends | None, end: int) -> float:
    """How far a bar reaches to one side: not at all where nothing is known to it."""
    if bounds is None:
        return math.nan
    at = bounds[end]
    return 0.0 if at is None else max(0.0, (value - float(at)) * (1 - 2 * end))


def _float(value: Any) -> float:
    return math.nan if value is None else float(value)


def _safe(label: str) -> str:
    """A name that matplotlib does not take for a formula."""
    return label.replace("$", r"\$")
