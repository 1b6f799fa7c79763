"""Picks of the largest groups on neighbouring databases: what the emitted SQL makes of them, against the stated loss.

As `test_mode_neighbours` does it. A unit has up to three rows of any values; where others have as many of both listed
values, one unit more with one of them moves ln P of one up and of the other down by as much. The worst sequence of two
picks among three values is looked for beside the single pick.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import pytest

from dpsql.core.noise import sensitivity
from dpsql.core.printing.shapes import cells
from dpsql.core.release.histograms import Histograms
from tests.deep.core.analysis.test_replace_one import Listed
from tests.deep.core.noise.test_mode_neighbours import Choice
from tests.deep.core.noise.test_quantile_neighbours import in_epsilon, in_rho, observed
from tests.support.chosen_losses import Runs, loss_of_group, renyi_of_group
from tests.support.random_databases import Column, Row, World, world_of

EPSILON = Fraction(3)
U, V, W = "'u'", "'v'", "'w'"
SQL = "SELECT x FROM t GROUP BY x ORDER BY COUNT(DISTINCT pid) DESC LIMIT "


@dataclass(frozen=True, slots=True)
class Largest(Choice):
    """A form of picks: no limit bounds anything."""

    listed: tuple[str, ...] = ("u", "v")

    @property
    def others(self) -> list[list[Row]]:
        """Units of their own: none, one with each value, two with one of them, or many."""
        first, second, *_ = values = [f"'{x}'" for x in self.listed]
        held = [[], values, [second] * 14, [first] * 14 + [second] * 28]
        return [[("'a'", x) for x in some] for some in held]

    def world(self) -> World:
        columns = (
            Column("pid", "BIGINT", ()),
            Column("x", "VARCHAR", (), {"domain": {"values": list(self.listed), "null": False}}),
        )
        rows, db = [], 0
        for others in self.others:
            for one in self.sets:
                rows += [((str(i + 10), x), db) for i, (_, x) in enumerate(others)]
                rows += [(("1", x), db) for _, x in one]
                db += 1
        unit: dict[str, Any] = {"column": "pid"} | ({"neighbours": "replace_one"} if self.replaced else {})
        return world_of([Listed("t", columns, {"unit": unit}, tuple(rows))], db - 1, repr(self))


ALL: dict[str, Any] = {"groups": ("'a'",), "rows": 3}
FORMS = {
    "one pick": Largest({}, SQL + "1", values=(U, V, "'o'", "NULL"), **ALL),
    "two picks of three": Largest({}, SQL + "2", values=(U, V, W), listed=("u", "v", "w"), **ALL),
    "replaced, one pick": Largest({}, SQL + "1", values=(U, V), replaced=True, **ALL),
    "replaced, two picks of three": Largest(
        {}, SQL + "2", values=(U, V, W), listed=("u", "v", "w"), replaced=True, **ALL
    ),
}


def left(runs: Runs, *gone: int) -> Runs:
    """The values that are left, one by one."""
    scores = [s for start, n, s in runs for at in range(start, start + n) if at not in gone]
    return tuple((at, 1, s) for at, s in enumerate(scores))


def worst_of(form: Largest, norms: Callable[[Any], Any] = lambda s: s) -> tuple[float, float]:
    """The largest losses of a pick, and of two the larger of both, as parts of what is stated for these norms."""
    (m, *_), databases = observed(form)
    m = replace(m, sensitivity=norms(m.sensitivity))
    (eta, epsilon), (ranged, rho) = in_epsilon(m, EPSILON), in_rho(m)
    worst, renyi = 0.0, 0.0
    for x, y in form.pairs():
        (a,), (b,) = databases[x].values(), databases[y].values()
        for one, other in ((a[0], b[0]), (b[0], a[0])):
            found = [(left(one), left(other))]
            if len(a) > 1:
                found += [(left(one, first), left(other, first)) for first in range(len(form.listed))]
            worst = max(worst, *(float(loss_of_group(p, q, eta)) for p, q in found))
            renyi = max(renyi, *(renyi_of_group(p, q, ranged, order) / order for p, q in found for order in (1.001, 2)))
    return worst / float(epsilon), renyi / rho


@pytest.mark.parametrize("name", FORMS)
def test_no_pick_loses_more_than_is_stated(name: str) -> None:
    """Whatever was picked before; and some pick loses nearly all of it, in ε and in ρ."""
    e, rho = worst_of(FORMS[name])
    assert e <= 1 and rho <= 1 + 1e-9, (e, rho)
    assert e >= 0.97 and rho >= 0.97, (e, rho)


def test_each_pick_is_a_measurement_of_its_own() -> None:
    measurements, _ = observed(FORMS["two picks of three"])
    losses = [m.loss for m in measurements]
    assert len(losses) == 2 and all(loss == losses[0] for loss in losses)


# --- broken twins ----------------------------------------------------------------------------------------------------


def test_rows_counted_in_place_of_units_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = cells.histogram

    def rows(*args: Any, **options: Any) -> Any:
        made = plain(*args, **options)
        return replace(made, sql=made.sql.replace("COUNT(DISTINCT r.u)", "COUNT(*)"))

    from dpsql.core.printing.shapes import weighted

    monkeypatch.setattr(weighted, "histogram", rows)
    assert worst_of(FORMS["one pick"])[0] > 2.5


def test_replaced_units_priced_as_added_ones_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def added(component: Any, contribution: Any, grouped: bool) -> Any:
        return sensitivity.Sensitivity(1, 1, Fraction(1), 1)

    monkeypatch.setattr(sensitivity, "_bounded", added)
    assert worst_of(FORMS["replaced, one pick"])[0] > 1.9


def test_squares_of_what_goes_and_comes_that_are_added_up_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a COUNT(DISTINCT id), where they meet and cancel."""

    def summed(component: Any, contribution: Any, grouped: bool) -> Any:
        return sensitivity.Sensitivity(2, 2, Fraction(2), 2)

    monkeypatch.setattr(sensitivity, "_bounded", summed)
    assert worst_of(FORMS["replaced, one pick"])[1] > 1.9


def test_one_price_for_two_picks_is_found() -> None:
    e, rho = worst_of(
        FORMS["two picks of three"], lambda s: replace(s, l1=Fraction(s.l1, 2), l2_squared=s.l2_squared / 2)
    )
    assert e > 1.9 and rho > 1.9


def test_steeper_scores_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Histograms.runs_of_mode

    def steeper(self: Histograms, group: int) -> Any:
        first, count, score = plain(self, group)
        return first, count, type(score).of([2 * s for s in score])

    monkeypatch.setattr(Histograms, "runs_of_mode", steeper)
    assert worst_of(FORMS["one pick"])[0] > 1.9
