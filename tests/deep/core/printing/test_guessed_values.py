"""V, the number of different values, is a guess: whatever is guessed, no unit moves an answer beyond the price.

All tiny databases, with guesses below what the values really are. Without one of the two bounds a pair is found that
moves too far.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dpsql.core.ir.components import Component
from dpsql.core.printing.dialect import Dialect, Typed
from dpsql.core.printing.forms.kept_first import first
from dpsql.core.printing.shapes import direct, weighted
from dpsql.planner.rewrites.bounds import choose_grids
from tests.deep.core.analysis.test_public_groups import Form, Slots, furthest, neighbouring, rows, seen

G, X = ("'a'", "'b'"), ("-9", "1", "9")
COUNTED = "SELECT g, COUNT(DISTINCT x), SUM(DISTINCT x), AVG(DISTINCT x) FROM visits GROUP BY g"


def _form(sql: str, limits: dict[str, Any], most: int = 4, columns: str = "gx", kinds: Any = None) -> Form:
    return Form(sql, limits, columns, kinds or rows(G, X), most, (), (), once=True)


FORMS: dict[str, Form | Slots] = {
    "C": _form(COUNTED, {"max_rows_per_unit": 4}),
    "C, one group": _form(COUNTED.replace(" g,", "").replace(" GROUP BY g", ""), {"max_rows_per_unit": 4}),
    "M and G": _form(COUNTED, {"max_rows_per_group": 3, "max_groups_per_unit": 2}),
    "M and G, above": _form(COUNTED, {"max_rows_per_group": 4, "max_groups_per_unit": 1}),
    "truncated groups": _form(
        COUNTED.replace(" g", " h"), {"max_rows_per_group": 3, "max_groups_per_unit": 1}, columns="hx"
    ),
    "promised": _form(COUNTED, {"max_rows_per_unit": {"rows": 4, "enforce": "assume"}}),
    "rows": Slots(COUNTED, 3, "gx", rows(("'a'",), X), 4, (), ()),
    "rows of two groups": Slots(COUNTED, 2, "gx", rows(G, ("-9", "1", "9")), 3, (), ()),
    "filters": _form(
        "SELECT COUNT(DISTINCT x) FILTER (WHERE g = 'a'), SUM(DISTINCT CASE WHEN g = 'a' THEN x END) FROM visits",
        {"max_rows_per_unit": 4},
    ),
}  # fmt: skip


def _guessing(monkeypatch: pytest.MonkeyPatch, values: int) -> None:
    monkeypatch.setattr(choose_grids, "most_values", lambda expr, rows, condition: values)


def _broken(form: Form | Slots, neighbours: str) -> tuple[list[str], set[int | None]]:
    """Claims that a pair breaks, and the V of the plan."""
    plan, found = seen(form, neighbours)
    if isinstance(form, Form):
        pairs: list[Any] = [neighbouring(vectors, neighbours) for vectors in found]
    else:
        pairs = [((vectors[i], vectors[j]) for i, j in form.pairs(neighbours)) for vectors in found]
    return furthest(plan, pairs)[1], {c.values for r in plan.releases for c in r.measured.node.components}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("values", [1, 2])
def test_a_guess_moves_nothing_beyond_the_price(
    form: str, neighbours: str, values: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    _guessing(monkeypatch, values)
    wrong, guessed = _broken(FORMS[form], neighbours)
    assert not wrong
    assert values == 2 or guessed & {1}


def _of_id_alone(d: Dialect, most: int, c: Component, group: list[Typed], value: Typed) -> str:
    return first(d, most, "u", [*group, value])


def _of_groups_alone(d: Dialect, most: int, c: Component, group: list[Typed], value: Typed) -> str:
    return first(d, c.values or most, ", ".join(sql for sql, _ in group), [*group, value])


TWINS: dict[str, tuple[Any, str, Callable[..., str], str]] = {
    "V values of an id in all groups": (weighted, "kept_values", _of_id_alone, "M and G"),
    "V values of a group in any number of them": (weighted, "kept_values", _of_groups_alone, "M and G, above"),
    "a number that is not cut": (direct, "at_most_values", lambda d, counted, c: counted, "promised"),
    "sums of rows that are not cut": (direct, "at_most_values", lambda d, counted, c: counted, "rows"),
}


@pytest.mark.parametrize("twin", TWINS)
def test_a_bound_that_is_missing_is_found(twin: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, name, without, form = TWINS[twin]
    _guessing(monkeypatch, 1)
    monkeypatch.setattr(where, name, without)
    assert _broken(FORMS[form], "add_remove")[0]
