"""Totals per id of every type, and on every grid."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Literal

import pytest

from dpsql.core.ir.contributions import SATURATED, UnitTotal
from tests.core.printing.test_unit_totals import ALL, BY_G, DECIMALS, HELD, Ids, agrees, never_too_large, vectors

SIZES: tuple[tuple[str, Literal["l1", "l2"]], ...] = (
    *((type_, "l1") for type_ in (*HELD, *DECIMALS)), ("BIGINT", "l2"), ("HUGEINT", "l2"),
)  # fmt: skip


@pytest.mark.parametrize(("type_", "norm"), SIZES)
@pytest.mark.parametrize("sql", [BY_G, ALL])
def test_no_value_is_too_large_to_be_counted(sql: str, type_: str, norm: Literal["l1", "l2"]) -> None:
    never_too_large(sql, type_, norm)


@pytest.mark.parametrize("sql", [BY_G, ALL])
def test_doubles_lie_on_a_grid_whatever_they_are(sql: str) -> None:
    values = ["0", "1.5", "-2.25", "1e-320", "nan", "inf", "-inf", "1e308", "-1e308", "4398046511104", "1e13", "-1e13"]
    ids = Ids("DOUBLE", (*(((g, v, True),) for g, v in product("ab", values)), tuple(("a", v, None) for v in values)))
    for most in (1, 3 * 2**20, SATURATED):
        release = agrees(ids, *vectors(ids, sql, UnitTotal(most), bare=True))
        assert {m.component.grid for m in release.measured.measurements[2:]} == {Fraction(1, 2**20)}


def test_a_grid_does_not_depend_on_the_limit_and_the_weight_on_nothing_else() -> None:
    ids = Ids("DOUBLE", ((("a", "1", True),),))
    for bare, grid in ((True, Fraction(1, 2**20)), (False, Fraction(3, 2**30))):
        weights = []
        for power in (0, 10, 11, 29, 30, 31, 62):
            c = vectors(ids, BY_G, UnitTotal(2**power), bare=bare)[0].measured.measurements[2].component
            assert c.grid == grid or (not bare and grid / 2 < c.grid < grid * 2)
            weights.append(c.weight)
        assert weights == [2**20, 2**20, 2**19, 2, 1, 1, 1]
