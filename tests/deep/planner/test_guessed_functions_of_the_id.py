"""That a key is a function of the id is a guess, as are the rows of an id: no guess moves an answer beyond the price.

All tiny databases, in which the keys that are guessed to be functions of the id are none. Where one group of an id is
priced and nothing enforces it, an id is found that moves too far.
"""

from __future__ import annotations

from typing import Any

import pytest

from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.nodes import GroupKeys
from dpsql.core.ir.types import BIGINT
from dpsql.core.ir.walk import Tagged
from dpsql.core.printing.dialect import Dialect
from dpsql.core.printing.forms.weights import WeightedTerm
from dpsql.core.printing.shapes import weighted
from dpsql.planner.rewrites.bounds import bound_contributions
from tests.deep.core.analysis.test_public_groups import Form, Slots, furthest, neighbouring, rows, seen

G, X = ("'a'", "'b'"), ("-9", "1", "9")
ALL = "COUNT(*), COUNT(DISTINCT pid), SUM(x), AVG(x), COUNT(DISTINCT x)"
C, M = {"max_rows_per_unit": 2}, {"max_rows_per_group": 1, "max_groups_per_unit": 2}
PROMISED = {"max_rows_per_unit": {"rows": 3, "enforce": "assume"}}


def _form(sql: str, limits: dict[str, Any], columns: str = "gx", kinds: Any = None) -> Form:
    return Form(sql, limits, columns, kinds or rows(G, X), 3, (), ())


FORMS: dict[str, Form] = {
    "C": _form(f"SELECT g, {ALL} FROM visits GROUP BY g", C),
    "M and G": _form(f"SELECT g, {ALL} FROM visits GROUP BY g", M),
    "promised": _form(f"SELECT g, {ALL} FROM visits GROUP BY g", PROMISED),
    "private": _form(f"SELECT h, {ALL} FROM visits GROUP BY h", C, "hx"),
    "private, promised": _form(f"SELECT h, {ALL} FROM visits GROUP BY h", PROMISED, "hx"),
    "partly": _form(f"SELECT g, k, {ALL} FROM visits GROUP BY g, k", C, "gkx", rows(G, G, ("1", "9"))),
    "partly, M and G": _form(f"SELECT g, k, {ALL} FROM visits GROUP BY g, k", M, "gkx", rows(G, G, ("1", "9"))),
    "partly, promised": _form(f"SELECT g, k, {ALL} FROM visits GROUP BY g, k", PROMISED, "gkx", rows(G, G, ("1", "9"))),
}


@pytest.fixture(autouse=True)
def guessing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first key is taken for a function of the id."""

    def guessed(rows: Tagged[Facts]) -> frozenset[int]:
        assert isinstance(rows.node, GroupKeys)
        return rows.fact.by_id | {item.column.uid for item in rows.node.items[:1]}

    monkeypatch.setattr(bound_contributions, "functions_of_the_id", guessed)


def _broken(form: Form | Slots, neighbours: str) -> list[str]:
    plan, found = seen(form, neighbours)
    return furthest(plan, [neighbouring(vectors, neighbours) for vectors in found])[1]


@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
@pytest.mark.parametrize("form", FORMS)
def test_a_guess_moves_nothing_beyond_the_price(form: str, neighbours: str) -> None:
    assert not _broken(FORMS[form], neighbours)


def test_one_group_is_what_is_priced() -> None:
    plan, _ = seen(FORMS["C"], "add_remove")
    assert plan.releases[0].measured.contribution.groups == 1


@pytest.mark.parametrize("form", ["C", "promised", "M and G"])
def test_public_groups_that_nothing_limits_are_found(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def unlimited(d: Dialect, i: int, sql: str, most: int) -> WeightedTerm:
        return WeightedTerm(d.divide(f"({sql})", str(most), BIGINT))

    monkeypatch.setattr(weighted, "over_groups", unlimited)
    assert _broken(FORMS[form], "add_remove")


@pytest.mark.parametrize("form", ["private", "partly", "partly, promised"])
def test_groups_that_are_all_kept_are_found(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weighted, "kept_groups", lambda d, b, group, source: f"SELECT * FROM {source}")
    assert _broken(FORMS[form], "add_remove")


@pytest.mark.parametrize("form", [f for f in FORMS if "promised" not in f])
@pytest.mark.parametrize("most", [1, 2])
def test_guessed_rows_move_nothing_beyond_the_price(form: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bound_contributions, "most_rows_of_an_id", lambda *given, **of: most)
    assert not _broken(FORMS[form], "add_remove")
    monkeypatch.setattr(bound_contributions, "functions_of_the_id", lambda rows: rows.fact.by_id)
    assert not _broken(FORMS[form], "add_remove")


def test_guessed_rows_that_nothing_limits_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bound_contributions, "most_rows_of_an_id", lambda *given, **of: 1)
    monkeypatch.setattr(bound_contributions, "functions_of_the_id", lambda rows: rows.fact.by_id)
    assert not _broken(FORMS["C"], "add_remove")
    monkeypatch.setattr(weighted, "over_all_rows", lambda d, partial, F, B, most: WeightedTerm(f"{F} * {partial}"))
    assert _broken(FORMS["C"], "add_remove")
