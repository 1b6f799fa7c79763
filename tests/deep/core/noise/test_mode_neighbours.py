"""Modes of neighbouring databases: what the emitted SQL makes of them, against the loss that their plan states.

As `test_quantile_neighbours` does it, for the same forms of bounding. Two values are listed: with equally many rows of
both, one row more moves ln P of one up and of the other down by as much, which is the worst in ρ; where nearly all rows
have one value, the other one's P grows by the whole of ε.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import pytest

from dpsql.core.ir.components import ListChoice
from dpsql.core.measures.measure_rule import Norms
from dpsql.core.measures.mode import ModeRule
from dpsql.core.printing.shapes import weighed_rows
from dpsql.core.release.histograms import Histograms, Runs
from tests.deep.core.analysis.test_replace_one import Listed
from tests.deep.core.noise.test_quantile_neighbours import (
    Form,
    in_epsilon,
    in_rho,
    observed,
    worst_loss,
    worst_renyi,
)
from tests.support.random_databases import Column, Row, World, world_of

U, V, OTHER, NULL = "'u'", "'v'", "'w'", "NULL"
TWO, THREE = ("'a'", "'b'"), ("'a'", "'b'", "NULL")
ALONE, BY_GROUP = "SELECT MODE(x) FROM t", "SELECT g, MODE(x) FROM t GROUP BY g"
BY_PRIVATE = "SELECT h, MODE(x) FROM t GROUP BY h"
EPSILON = Fraction(3)
"""So large that few rows make a value rare."""


@dataclass(frozen=True, slots=True)
class Choice(Form):
    """A form of bounding of a MODE."""

    @property
    def others(self) -> list[list[Row]]:
        """None, as many of both values, or so many with one that the other one is hardly ever chosen."""
        many = [(g, V) for g in self.groups for _ in range(6 * self.full)]
        return [[], [(g, x) for g in self.groups for x in (U, V)], many]

    def world(self) -> World:
        columns = (
            Column("pid", "BIGINT", ()),
            Column("g", "VARCHAR", (), {"domain": {"values": ["a", "b"], "null": True}}),
            Column("h", "VARCHAR", ()),
            Column("x", "VARCHAR", (), {"domain": {"values": ["u", "v"], "null": True}}),
        )
        rows, db = [], 0
        for others in self.others:
            for one in self.sets:
                rows += [((str(i + 10), g, g, x), db) for i, (g, x) in enumerate(others)]
                rows += [(("1", g, g, x), db) for g, x in one]
                db += 1
        unit: dict[str, Any] = {"column": "pid"} if self.ids else {"rows": 1}
        unit |= {"neighbours": "replace_one"} if self.replaced else {}
        policy = {"unit": unit, **self.policy}
        if not self.ids and self.replaced:
            policy["unit"]["rows"] = self.rows
        return world_of([Listed("t", columns, policy, tuple(rows))], db - 1, repr(self))

    def pairs(self) -> Iterator[tuple[int, int]]:
        size = len(self.sets)
        for start in range(0, size * len(self.others), size):
            if self.replaced:
                yield from combinations(range(start, start + size), 2)
            else:
                yield from ((start, i) for i in range(start + 1, start + size))


M_AND_G = {"max_rows_per_group": 2, "max_groups_per_unit": 2}
ONE = {"max_rows_per_unit": 1}
ROW: dict[str, Any] = {"ids": False, "rows": 1, "full": 1, "values": (U, V, OTHER, NULL)}
BOTH = {"values": (U, V)}

FORMS = {
    "rows": Choice({}, ALONE, **ROW),
    "rows by groups": Choice({}, BY_GROUP, **ROW),
    "rows by private keys": Choice({}, BY_PRIVATE, **ROW),
    "C": Choice({"max_rows_per_unit": 2}, ALONE, groups=TWO[:1], values=(U, V, OTHER, NULL)),
    "C by groups": Choice({"max_rows_per_unit": 2}, BY_GROUP, groups=TWO, values=(U, V, OTHER)),
    "C by private keys": Choice({"max_rows_per_unit": 2}, BY_PRIVATE, groups=TWO, **BOTH),
    "C, filter": Choice(
        {"max_rows_per_unit": 2}, "SELECT g, MODE(x) FILTER (WHERE x <> 'v' OR pid > 1) FROM t GROUP BY g",
        groups=TWO, **BOTH,
    ),
    "M, G": Choice(M_AND_G, BY_GROUP, rows=4, groups=TWO, **BOTH),
    "M, G and three groups": Choice({**M_AND_G, "max_rows_per_group": 1}, BY_GROUP, full=1, groups=THREE, **BOTH),
    "M, few groups": Choice(
        {"max_rows_per_group": 1, "max_groups_per_unit": 3}, BY_GROUP, full=1, groups=THREE, **BOTH
    ),
    "M, truncated groups": Choice({**M_AND_G, "max_groups_per_unit": 1}, BY_PRIVATE, groups=TWO, **BOTH),
    "promised": Choice({"max_rows_per_unit": {"rows": 2, "enforce": "assume"}}, BY_GROUP, rows=2, groups=TWO, **BOTH),
    "replaced row": Choice({}, ALONE, replaced=True, **ROW),
    "two replaced rows": Choice({}, ALONE, replaced=True, **(ROW | {"rows": 2, "full": 2, "groups": TWO[:1]})),
    "replaced row by groups": Choice({}, BY_GROUP, replaced=True, **(ROW | {"groups": TWO})),
    "replaced id, C": Choice(ONE, ALONE, replaced=True, rows=2, full=1, groups=TWO[:1], **BOTH),
    "replaced id, C by groups": Choice(ONE, BY_GROUP, replaced=True, rows=2, full=1, groups=TWO, **BOTH),
    "replaced id, M, G": Choice(
        {**M_AND_G, "max_rows_per_group": 1}, BY_GROUP, replaced=True, rows=2, full=1, groups=TWO, **BOTH
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_no_pair_loses_more_than_is_stated(name: str) -> None:
    """And some pair loses nearly all of it, in ε and in ρ."""
    e, rho = worst_of(FORMS[name])
    assert e <= 1 and rho <= 1 + 1e-9, (e, rho)
    assert e >= 0.97 and rho >= 0.97, (e, rho)


def worst_of(form: Form, norms: Callable[[Any], Any] = lambda s: s) -> tuple[float, float]:
    """The largest losses of all pairs, as parts of what is stated for these norms."""
    (m,), databases = observed(form)
    m = replace(m, sensitivity=norms(m.sensitivity))
    (eta, epsilon), (ranged, rho) = in_epsilon(m, EPSILON), in_rho(m)
    return float(worst_loss(form, databases, 0, eta) / epsilon), worst_renyi(form, databases, 0, ranged) / rho


# --- broken twins ----------------------------------------------------------------------------------------------------


def test_replaced_units_priced_as_added_ones_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ModeRule, "replaced", lambda self, c, fixed: Norms(1, 1, 1))
    assert worst_of(FORMS["replaced row"])[0] > 1.9
    monkeypatch.setattr(ListChoice, "ends", property(lambda c: (0, 1)))
    for name in ("replaced id, C", "replaced id, C by groups"):
        assert worst_of(FORMS[name])[1] > 1.9, name


def test_a_replaced_row_that_is_counted_once_for_each_group_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a COUNT, where what goes and what comes meet and cancel."""
    monkeypatch.setattr(ModeRule, "replaced", lambda self, c, fixed: Norms(2, 2, 1))
    assert worst_of(FORMS["replaced row"])[1] > 1.9
    assert worst_of(FORMS["replaced row by groups"])[1] > 1.9


@pytest.mark.parametrize("name", ["rows", "C by groups", "M, G"])
def test_half_the_price_is_found(name: str) -> None:
    e, rho = worst_of(FORMS[name], lambda s: replace(s, l1=Fraction(s.l1, 2), l2_squared=s.l2_squared / 4))
    assert e > 1.9 and rho > 3.6


def test_steeper_scores_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Histograms.runs_of_mode

    def steeper(self: Histograms, group: int) -> Runs:
        first, count, score = plain(self, group)
        return first, count, [2 * s for s in score]

    monkeypatch.setattr(Histograms, "runs_of_mode", steeper)
    assert worst_of(FORMS["rows"])[0] > 1.9


def test_weights_of_fewer_rows_than_are_counted_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = weighed_rows._counted
    fewer = "COUNT(*) FILTER (WHERE y = 'v') AS n"

    def of_fewer(*given: Any) -> tuple[list[str], str]:
        steps, source = plain(*given)
        return [step.replace("COUNT(*) AS n", fewer) for step in steps], source

    monkeypatch.setattr(weighed_rows, "_counted", of_fewer)
    assert worst_of(FORMS["C"])[0] > 1.4


@pytest.mark.parametrize("name", ["C", "C by groups", "M, G", "M, G and three groups", "M, truncated groups"])
def test_rows_without_weights_are_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weighed_rows, "scaled", lambda d, partial, factor, magnitude, floors: str(2**20))
    assert worst_of(replace(FORMS[name], rows=6, full=6, groups=TWO, values=(U,)))[0] > 1.4
