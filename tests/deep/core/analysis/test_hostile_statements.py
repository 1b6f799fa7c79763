"""Whole statements with hostile expressions over databases that differ in one unit.

Each ends in the same way in all of them, integers differ by no more than the price allows, facts hold for the rows
below, and no optimizer of ours changes an integer. Twins: an old belief back, and a cast that can fail.
"""

from __future__ import annotations

from collections import Counter

import pytest

from dpsql.core.analysis import derive
from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.conditions import conjuncts
from dpsql.core.ir.expressions import Call, Column
from dpsql.core.ir.nodes import Filter
from dpsql.core.printing.dialects import duckdb
from dpsql.core.value_classes import replace
from tests.support.hostile_statements import statements


@pytest.mark.parametrize("seed", [0, *(pytest.param(s, marks=pytest.mark.exhaustive) for s in range(1, 21))])
def test_statements_stay_within_their_price_and_never_fail(seed: int) -> None:
    refused: Counter[str] = Counter()
    found = statements(range(100 * seed, 100 * seed + (20 if seed else 5)), refused=refused)
    assert not found.problems, "\n\n".join(found.problems[:3])
    assert found.tried > refused.total(), refused


# --- twins ------------------------------------------------------------------------------------------------------------


def test_a_limit_that_a_belief_replaces_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were `g <= 1` to leave one row per id, as of an interval that begins there, no limit would be enforced."""
    plain = derive.filter_

    def believing(node: Filter, below: Facts) -> Facts:
        found = plain(node, below)
        compared = {
            term.args[0].uid
            for term in conjuncts(node.predicate)
            if isinstance(term, Call) and term.function in ("le", "lt") and isinstance(term.args[0], Column)
        }
        rest = {key - {uid} for key in below.keys for uid in key & compared}
        return replace(found, keys=found.keys | rest)

    monkeypatch.setattr(derive, "filter_", believing)
    said = "l1 moved by"
    assert statements(range(1_000, 1_200), until=said).told(said)


def test_a_spelling_that_can_fail_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duckdb, "tried", lambda sql, type_: f"CAST({sql} AS {type_.name})")
    said = "fails in database"
    assert statements(range(1_000, 1_200), until=said).told(said)
