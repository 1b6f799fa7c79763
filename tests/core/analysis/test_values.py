"""Rows written in the query."""

from __future__ import annotations

from dpsql.core.ir.expressions import LiteralValue
from dpsql.core.ir.nodes import Values
from dpsql.core.ir.types import DOUBLE, INTEGER, SqlType
from tests.support.plan_nodes import column, facts_of


def written(*rows: tuple[LiteralValue, ...], type_: SqlType = INTEGER) -> Values:
    return Values(tuple(column("c", type_) for _ in rows[0]), rows)


def test_values_are_public_and_exact() -> None:
    found = written((1, 5), (3, None))
    facts = facts_of(found)
    first, second = (facts.columns[c.uid].value for c in found.columns)
    assert facts.public and facts.size == 2
    assert str(first.interval) == "[1, 3]" and not first.nullable
    assert str(second.interval) == "[5, 5]" and second.nullable
    assert first.domain is not None and second.domain is not None
    assert first.domain.values == (1, 3) and second.domain.null


def test_keys() -> None:
    assert facts_of(written((1,), (2,))).keys and not facts_of(written((1,), (1,))).keys
    assert facts_of(written((7, 7))).keys == frozenset({frozenset()})
    assert not facts_of(written((None,), (None,))).keys


def test_nan_equals_nan() -> None:
    assert not facts_of(written((float("nan"),), (float("nan"),), type_=DOUBLE)).keys
    assert not facts_of(written((0.0,), (-0.0,), type_=DOUBLE)).keys
