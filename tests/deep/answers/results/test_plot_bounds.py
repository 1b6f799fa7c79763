"""Pictures of limits that were found: what is drawn are the released counts, and what is computed from them."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import matplotlib as mpl
import pytest

from dpsql.answers.results.plot_bounds import draw_bounds
from dpsql.core.noise.mechanisms import DiscreteLaplace
from dpsql.planner.postprocessing.searches.octaves import Octaves, SearchResult
from dpsql.planner.postprocessing.searches.told import totals

FIVE = DiscreteLaplace(Fraction(5))
LEVEL = Fraction(95, 100)


@pytest.fixture(autouse=True)
def pyplot() -> Iterator[None]:
    mpl.use("Agg")
    from matplotlib import pyplot

    yield
    pyplot.close("all")


def search(counts: dict[int, int], n: int = 63, **others: object) -> Octaves:
    first = -63 if n == 127 else 0
    listed = tuple(counts.get(key, 3) for key in range(first, first + n))
    return Octaves("s", "SUM($amount)", "customer", listed, FIVE, n, first, **others)  # type: ignore[arg-type]


def test_counts_and_totals() -> None:
    found = SearchResult(search({10: 4_000, 11: 3_000, 12: 900}, grid=Fraction(1, 2)), 4096)
    bars, linear, log = draw_bounds([found], LEVEL)
    shown = {round(bar.get_x() + bar.get_width() / 2): bar.get_height() for bar in bars.patches}
    assert shown == {key: found.octaves.counts[key] for key in range(17)}
    (container,) = [c for c in bars.containers if getattr(c, "errorbar", None) is not None]
    (lines,) = container.errorbar.lines[2]
    assert all(high - low == pytest.approx(30) for (_, low), (_, high) in lines.get_segments())
    dashed = [line for line in bars.lines if line.get_linestyle() == "--"]
    assert [line.get_xdata()[0] for line in dashed] == [12.5]
    # In SQL's numbers: half of integer units.
    left = totals(found.octaves)
    assert list(log.lines[0].get_xdata()) == [2.0 ** (b - 1) for b in range(17)]
    assert list(log.lines[0].get_ydata()) == [left[b].about / 2 for b in range(17)]
    assert (log.get_xscale(), log.get_yscale(), linear.get_xscale()) == ("log", "log", "linear")
    assert linear.get_xlim() == (0, 4096)
    (band,) = linear.collections
    assert band.get_datalim(linear.transData).y1 == left[13].high / 2
    bars.figure.figure.canvas.draw()  # names are no formulas


def test_values_and_nothing_found_are_bars_alone() -> None:
    values = SearchResult(search({5: 400, -4: 300}, n=127), (-8, 16))
    nothing = SearchResult(search({5: 40}), None)
    first, second = draw_bounds([values, nothing], LEVEL)
    assert [line.get_xdata()[0] for line in first.lines if line.get_linestyle() == "--"] == [-4.5, 5.5]
    assert [line.get_ydata()[0] for line in second.lines if line.get_linestyle() == ":"] == [52]
    assert len(second.patches) == 63
    first.figure.figure.canvas.draw()


@pytest.mark.parametrize("limit", [1, 2**62, 1000])
def test_limits_at_the_ends(limit: int) -> None:
    key = (limit - 1).bit_length()
    cap = 1000 if limit == 1000 else None
    found = SearchResult(search({key: 900}, n=11 if cap else 63, at_most=cap), limit)
    axes = draw_bounds([found], LEVEL)
    assert len(axes) == 3
    axes[0].figure.figure.canvas.draw()


def test_axes_of_roots_do_not_speak_of_totals() -> None:
    for roots in (True, False):
        bars, linear, _ = draw_bounds([SearchResult(search({10: 4_000}, roots=roots), 1024)], LEVEL)
        assert bars.get_xlabel().startswith("root of squares of one customer") is roots
        assert (linear.get_ylabel() == "root of squares of all") is roots
