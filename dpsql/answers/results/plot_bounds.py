"""The limits that a search found, as a picture: how many units have totals of which size, and what other limits leave.

Every number in it is computed from the released counts of the search.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpsql.diagnostics.errors import reject
from dpsql.diagnostics.layout import one_line
from dpsql.planner.postprocessing.searches.octaves import Octaves, SearchResult
from dpsql.planner.postprocessing.searches.told import FoundTotal, bounds, distinct, in_sql, totals

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_QUIET, _REAL, _CHOSEN, _LINES = "#c3cedb", "#2f6fab", "#c2410c", "#475569"
_BESIDE = 4
"""Octaves that are shown on both sides of those that hold units."""


def draw_bounds(found: Sequence[SearchResult], level: Fraction, ax: Axes | None = None) -> Any:
    """An array of Axes: for each search its counts, and what other limits leave on a linear and on a log scale. Of
    values, and where nothing was found, the counts alone. Raises Rejected DP903 where no limit was searched, or for an
    `ax` of one's own.
    """
    if not found:
        raise reject("DP903", "no limit of this answer was searched", help=['ask with  limits="search"'])
    if ax is not None:
        raise reject("DP903", "limits that were found do not fit into one `ax`", help=["leave `ax` out"])
    import numpy as np
    from matplotlib import pyplot

    found = distinct(found)
    figure = pyplot.figure(figsize=(13, 4.2 * len(found)), layout="constrained")
    made: list[Axes] = []
    for part, one in zip(figure.subfigures(len(found), 1, squeeze=False)[:, 0], found, strict=True):
        alone = one.octaves.signed or not one.octaves.seen
        axes = [part.subplots()] if alone else list(part.subplots(1, 3))
        _counts(axes[0], one, level)
        if not alone:
            shown = _shown(one)
            left = totals(one.octaves, level)[shown[0] : shown[-1] + 1]
            _linear(axes[1], one, left)
            _log(axes[2], one, left)
        for ax in axes:
            ax.spines[["top", "right"]].set_visible(False)
        part.suptitle(_title(one), fontsize="large", fontweight="bold")
        made += axes
    return np.array(made, dtype=object)


def _counts(ax: Axes, found: SearchResult, level: Fraction) -> None:
    """Bars of the released counts with their intervals; those that are taken for real in another colour."""
    o, keys = found.octaves, _shown(found)
    (told,) = bounds([found], level)
    octaves = dict(zip(o.keys, told.octaves, strict=True))
    heights, widths = [octaves[key].number for key in keys], [octaves[key].width for key in keys]
    colours = [_REAL if key in o.seen else _QUIET for key in keys]
    ax.bar(keys, heights, yerr=widths, color=colours, width=0.86, capsize=2, error_kw={"ecolor": _LINES, "lw": 1})
    ax.axhline(0, color=_LINES, linewidth=0.8)
    ends = [octaves[key].high if key >= 0 else octaves[key].low for key in keys]
    every = -(-len(keys) // (7 if o.seen and not o.signed else 20))
    ax.set_xticks(keys[::every], [_short(end) for end in ends[::every]])
    ax.set_xlabel(f"{_summed(o)}{'' if o.signed else f' of one {_safe(o.unit)}'}, up to")
    ax.set_ylabel(f"units of {_safe(o.unit)}")
    ax.set_title("how many have so much" if not o.signed else "how many have such values")
    for place in _places(found):
        ax.axvline(place, color=_CHOSEN, linestyle="--", linewidth=1.4)
    if not o.seen:
        ax.axhline(o.threshold / o.weight, color=_CHOSEN, linestyle=":", linewidth=1.4)
        ax.set_title("no octave reaches what the noise lets see (dotted)")


def _linear(ax: Axes, found: SearchResult, left: Sequence[FoundTotal]) -> None:
    """Around the limit, where most happens."""
    limit = _limit(found)
    near = [t for t in left if limit is None or t.bound <= 2 * limit]
    _band(ax, found, near, start=True)
    ax.set_xlim(0, in_sql(near[-1].bound, found.octaves))
    ax.set_ylim(0, 1.05 * float(in_sql(near[-1].high, found.octaves)))
    ax.set_ylabel(f"{_summed(found.octaves)} of all")
    ax.set_title("what is left if each is cut at a bound")
    ax.xaxis.set_major_formatter(lambda x, _: _short(x))
    ax.yaxis.set_major_formatter(lambda y, _: _short(y))


def _log(ax: Axes, found: SearchResult, left: Sequence[FoundTotal]) -> None:
    """All bounds, and what noise would do to a total without one."""
    _band(ax, found, [FoundTotal(t.bound, max(1, t.low), max(1, t.about), max(1, t.high)) for t in left], start=False)
    ax.set_title("the same, on logarithmic scales")
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.xaxis.set_major_formatter(lambda x, _: _short(x))
    ax.yaxis.set_major_formatter(lambda y, _: _short(y))
    ax.yaxis.set_minor_formatter(lambda y, _: "")


def _band(ax: Axes, found: SearchResult, left: Sequence[FoundTotal], start: bool) -> None:
    o = found.octaves
    x, low, about, high = (
        [0.0] * start + [float(in_sql(getattr(t, name), o)) for t in left] for name in ("bound", "low", "about", "high")
    )
    ax.fill_between(x, low, high, color=_REAL, alpha=0.2, linewidth=0)
    ax.plot(x, about, color=_REAL, linewidth=1.8, marker="o", markersize=3)
    limit = _limit(found)
    if limit is not None:
        ax.axvline(float(in_sql(limit, o)), color=_CHOSEN, linestyle="--", linewidth=1.4)
    ax.set_xlabel(f"bound of one {_safe(o.unit)}")


def _shown(found: SearchResult) -> list[int]:
    """The keys worth showing: around those that hold units, and around the limit."""
    o = found.octaves
    middle = [*o.seen, *(int(place) for place in _places(found))] or o.keys
    return [key for key in o.keys if min(middle) - _BESIDE <= key <= max(middle) + _BESIDE]


def _places(found: SearchResult) -> list[float]:
    """Where the limit, or both bounds, stand among the bars."""
    o = found.octaves
    if found.limit is None:
        return []
    if isinstance(found.limit, int):
        inside = [key for key in o.keys if o.ends(key)[1] <= found.limit]
        return [max(inside, default=-1) + 0.5]
    low, high = found.limit
    inside = [key for key in o.keys if low <= o.ends(key)[0] and o.ends(key)[1] <= high]
    return [min(inside, default=0) - 0.5, max(inside, default=0) + 0.5]


def _limit(found: SearchResult) -> int | None:
    return found.limit if isinstance(found.limit, int) else None


def _summed(o: Octaves) -> str:
    """What the axes show. Roots of squares are no part of the answer's totals: their title says of what they are."""
    return "root of squares" if o.roots else _safe(o.what)


def _title(found: SearchResult) -> str:
    (told,) = bounds([found])
    what, limit = _safe(told.what), told.limit
    beyond = "" if told.beyond is None else f"  ·  beyond it about {told.beyond[0]:,} ± {told.beyond[1]:,}"
    match limit:
        case None:
            return f"{'no bounds' if found.octaves.signed else 'no limit'} of {what} found"
        case (low, high):
            return f"bounds of {what} found: {low:,} to {high:,}{beyond.replace('it', 'them')}"
        case _:
            return f"limit of {what} found: {limit:,} per {_safe(told.unit)}{beyond}"


def _short(number: float) -> str:
    """1,024 as it is, larger ones with a suffix of thousands."""
    for suffix, size in (("E", 1e18), ("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e4)):
        if abs(number) >= size:
            return f"{number / (1e3 if suffix == 'k' else size):.3g}{suffix}"
    return f"{number:.6g}"


def _safe(text: str) -> str:
    """A text that matplotlib does not take for a formula."""
    return one_line(text).replace("$", r"\$")
