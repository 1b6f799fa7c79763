"""Hostile conditions and chains of sums as DuckDB computes them with the optimizers that dpsql leaves on.

The rows that a FILTER and a WHERE keep are those without any optimizer; conditions that are called disjoint keep no row
together; a chain of integer sums has the value of exact arithmetic. Twins: all of DuckDB's optimizers at work.
"""

from __future__ import annotations

import pytest

from dpsql.functions import registry
from dpsql.functions.numbers import arithmetic
from tests.support.hostile_checks import ALL, Table, chains, conditions

SEEDS = [0, *(pytest.param(s, marks=pytest.mark.exhaustive) for s in range(1, 11))]


@pytest.fixture(scope="module")
def table() -> Table:
    return Table()


@pytest.mark.parametrize("seed", SEEDS)
def test_the_same_rows_as_without_optimizers_and_none_for_both(table: Table, seed: int) -> None:
    found = conditions(table, seed, 2_000 if seed else 400)
    assert not found.problems, "\n".join(found.problems[:5])
    assert found.compared > found.tried / 50, "hardly any pair is called disjoint"


@pytest.mark.parametrize("seed", SEEDS)
def test_chains_have_exact_values(table: Table, seed: int) -> None:
    found = chains(table, seed, 2_000 if seed else 400)
    assert not found.problems, "\n".join(found.problems[:5])


# --- twins ------------------------------------------------------------------------------------------------------------


def test_conditions_that_an_optimizer_rewrites_are_found(table: Table) -> None:
    said = "are kept otherwise by all and by none"
    assert conditions(table, 1_000, 20_000, ALL, until=said).told(said)


def test_disjoint_expressions_are_found(table: Table) -> None:
    """They are true of what an optimizer computes in two ways."""
    assert conditions(table, 1_000, 20_000, ALL, until="satisfy both").told("satisfy both")


def test_chains_of_types_for_one_order_are_found(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arithmetic, "_regrouped", lambda found, args, reach: found)
    registry._APPLIED.clear()
    try:
        assert chains(table, 1_000, 20_000, ALL, until="Overflow").told("Overflow")
        assert not chains(table, 1_000, 400).problems  # with ours the written order is the engine's
    finally:
        registry._APPLIED.clear()
