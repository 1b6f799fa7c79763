"""Slice sets of conditions that are hostile, and exclude nothing: a row counts in one slice all the same."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest

from dpsql.core.ir.components import Component, ValueSum
from dpsql.core.ir.slice_sets import SliceSet
from dpsql.core.printing.forms import sliced
from dpsql.core.printing.shapes import direct, weighted
from dpsql.planner.rewrites.releases import cut_slices
from tests.deep.core.noise.test_parallel_composition import FORMS, M_AND_G, PROMISED, C, enumerated

CONDITIONS = (
    "x >= 0", "x <= 9", "g = 'a'", "g IN ('a', 'b')", "g IS NULL", "x IS NULL", "(x > 0) IS NOT TRUE",
    "x + 1e19 - 1e19 = x",
    "x * 2147483647 * 2 > x", "TRY_CAST(g AS INTEGER) IS NULL", "TRY_CAST(g AS DOUBLE) <> 1", "sqrt(x) IS NULL",
    "ln(x) < 1",
    "1 / x > 0", "x % 2 = 0", "x % 2 = 1", "upper(g) = 'A'", "length(g) = 1", "NOT (x < 0 AND g = 'a')",
    "CAST(x AS DOUBLE) / 0 > 1",
)  # fmt: skip
LIMITS: dict[str, dict[str, Any]] = {"promised": PROMISED, "C": C, "M and G": M_AND_G}


def pivot(rng: random.Random, limits: Mapping[str, Any]) -> tuple[dict[str, Any], str, list[int]]:
    """Counts of hostile slices, by no key or one, beside a count of all."""
    chosen = rng.sample(CONDITIONS, rng.randint(2, 4))
    calls = [f"COUNT({rng.choice(('*', 'x'))}) FILTER (WHERE {c}) AS n{i}" for i, c in enumerate(chosen)]
    calls += [f"AVG(x) FILTER (WHERE {rng.choice(chosen)}) AS m"] * (rng.random() < 0.5)
    calls += ["COUNT(*) AS n"] * (rng.random() < 0.3)
    key, by = rng.choice((("", ""), ("g, ", " GROUP BY g")))
    return dict(limits), f"SELECT {key}{', '.join(calls)} FROM t{by}", []


def attacked(limits: str, seeds: range, monkeypatch: pytest.MonkeyPatch, guess: float = 1.0) -> tuple[list[str], int]:
    """(violations, the largest parallel group) where the planner takes conditions for exclusive by chance."""
    found, most = [], 0
    for seed in seeds:
        rng = random.Random(seed)
        monkeypatch.setattr(cut_slices, "are_disjoint", lambda a, b, rng=rng: rng.random() < guess)
        monkeypatch.setattr(cut_slices, "ANY", None)
        monkeypatch.setitem(FORMS, "hostile", pivot(rng, LIMITS[limits]))
        problems, (sizes, _) = enumerated("hostile", 2)
        found += [f"seed {seed}: {problem}" for problem in problems]
        most = max(most, *sizes)
    return found, most


@pytest.mark.parametrize("limits", LIMITS)
def test_hostile_slices_of_neighbours_stay_within_the_price(limits: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found, most = attacked(limits, range(12), monkeypatch, 0.9)
    assert not found, found[:3]
    assert most >= 3


def _filters_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct, "divided", lambda node, plain: [((), tuple(plain))])
    monkeypatch.setattr(weighted, "sliced_sets", lambda node, components: ())


def _one_number_for_two(monkeypatch: pytest.MonkeyPatch) -> None:
    def places(sets: tuple[SliceSet, ...]) -> dict[int, tuple[int, int]]:
        return {i: (at, number // 2) for at, each in enumerate(sets) for i, number in each.members.items()}

    monkeypatch.setattr(direct, "places", places)


def _two_numberings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each slice by a number of its own, in which it comes first."""

    def apart(node: Any, plain: Any) -> Any:
        return [((SliceSet((own,)),), own) for each in node.slices for own in each.slices]

    monkeypatch.setattr(direct, "divided", apart)
    monkeypatch.setattr(weighted, "sliced_sets", lambda node, components: ())


@pytest.mark.parametrize(
    ("twin", "limits"),
    [
        *((twin, limits) for twin in (_filters_back, _two_numberings) for limits in LIMITS),
        (_one_number_for_two, "promised"),  # under limits no component adds more than the rows of its slice
    ],
)
def test_twins_without_the_form_are_found(twin: Any, limits: str, monkeypatch: pytest.MonkeyPatch) -> None:
    twin(monkeypatch)
    found, _ = attacked(limits, range(6), monkeypatch)
    assert any("together" in problem for problem in found)


def test_rows_are_no_fewer_than_those_of_all_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under limits a row that counted in two slices would weigh two rows; without that, counts go beyond the price."""
    monkeypatch.setitem(
        FORMS,
        "hostile",
        (C, "SELECT COUNT(*) FILTER (WHERE x >= 0) AS n, COUNT(*) FILTER (WHERE x <= 9) AS m FROM t", []),
    )
    monkeypatch.setattr(cut_slices, "are_disjoint", lambda a, b: True)
    monkeypatch.setattr(sliced, "number", lambda each, components, names: "0")
    monkeypatch.setattr(weighted, "in_slice", lambda at, slice_, names: f"{names.sql[-at - 1]} = 0")
    found, (sizes, _) = enumerated("hostile")
    assert not found and max(sizes) == 2
    monkeypatch.setattr(sliced, "no_fewer", lambda d, rows: "n")
    found, _ = enumerated("hostile")
    assert any("together" in problem for problem in found)


def test_no_sum_is_above_what_the_rows_of_its_slice_can_add(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under limits, where the sums of two slices took each row, as if their number were computed in another place."""
    monkeypatch.setitem(
        FORMS, "hostile", (C, "SELECT AVG(x) FILTER (WHERE x >= 0) AS n, AVG(x) FILTER (WHERE x < 0) AS m FROM t", [])
    )
    plain = weighted.total

    def everywhere(c: Component, *given: Any, **more: Any) -> str:
        return plain(c, *given, **{**more, "slice_": "TRUE"} if isinstance(c, ValueSum) else more)

    monkeypatch.setattr(weighted, "total", everywhere)
    found, (sizes, _) = enumerated("hostile")
    assert not found and max(sizes) == 2
    monkeypatch.setattr(sliced, "within_rows", lambda d, i, c, rows: f"m{i}")
    found, _ = enumerated("hostile")
    assert any("together" in problem for problem in found)


M: dict[str, Any] = {"max_rows_per_group": 2, "max_groups_per_unit": 1}
IDS = {
    "C": (C, "SELECT {} FROM t"),
    "C, groups": ({"max_rows_per_unit": 1}, "SELECT g, {} FROM t GROUP BY g"),
    "C, private groups": ({"max_rows_per_unit": 1}, "SELECT h, {} FROM t GROUP BY h"),
    "M and G": (M, "SELECT h, {} FROM t GROUP BY h"),
    "M and G, public": (M, "SELECT g, {} FROM t GROUP BY g"),
}


@pytest.mark.parametrize("form", IDS)
def test_an_id_counts_in_one_slice_of_a_group(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is guessed of its rows; beside slices that count rows, too."""
    limits, sql = IDS[form]
    calls = ("COUNT(DISTINCT pid) FILTER (WHERE x >= 0) AS a", "COUNT(DISTINCT pid) FILTER (WHERE x <= 9) AS b",
             "COUNT(*) FILTER (WHERE x > 0) AS n", "COUNT(DISTINCT pid) FILTER (WHERE x IS NULL) AS c",
             "COUNT(x) FILTER (WHERE x < 2) AS m")  # fmt: skip
    monkeypatch.setattr(cut_slices, "functions_of_the_id", lambda rows: frozenset(range(10**6)))
    monkeypatch.setattr(cut_slices, "are_disjoint", lambda a, b: True)
    monkeypatch.setitem(FORMS, "hostile", (limits, sql.format(", ".join(calls)), []))
    found, (sizes, seen) = enumerated("hostile", 2)
    assert not found, found[:3]
    assert sizes[-2:] == [2, 3] and any(moved > 0.999 for moved, _ in seen)
    monkeypatch.setattr(sliced, "is_present", lambda i, sets, components: f"CASE WHEN m{i} > 0 THEN 1 ELSE 0 END")
    found, _ = enumerated("hostile", 2)  # the twin
    assert any("together" in problem for problem in found)


@pytest.mark.exhaustive
@pytest.mark.parametrize("limits", LIMITS)
def test_hostile_slices_of_neighbours_stay_within_the_price_thoroughly(
    limits: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, _ = attacked(limits, range(1000, 1400), monkeypatch, 0.9)
    assert not found, found[:3]
