"""With a public number of rows each row counts, by what the statement does and not by what is known of values.

The columns hold NULLs though the policy calls them NOT NULL, and numbers that are not finite: the integers of a
statement move no further than the price where one row is replaced, whatever was guessed.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from itertools import product

import duckdb
import pytest

from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.expressions import Expr
from dpsql.core.printing import grid_integers
from dpsql.core.printing.forms import clip
from dpsql.core.values.value import Value
from tests.support.planning import planned, policy

ROWS = policy(
    """
sized:
  unit: {rows: 1}
  size: {exact: 2}
  columns:
    i: {type: integer, bounds: [3, 9], nullable: false}
    d: {type: 'decimal(9,2)', bounds: [3, 9], nullable: false}
    x: {type: double, bounds: [3, 9], nullable: false}
    y: {type: double, bounds: [3, 9]}
""",
    head="privacy: {neighbours: replace_one}\n",
)
QUERIES = [
    "SELECT SUM(i) FROM sized",
    "SELECT SUM(d) FROM sized",
    "SELECT SUM(x) FROM sized",
    "SELECT SUM(y), COUNT(y) FROM sized",
    "SELECT AVG(x) FROM sized",
    "SELECT SUM(i * 2 + 1) FROM sized",
    "SELECT VAR_POP(x) FROM sized",
    "SELECT COVAR_POP(i, x) FROM sized",
    "SELECT COUNT(i + 1), SUM(x) FILTER (WHERE i > 4), SUM(i) FROM sized",
]
VALUES = ("NULL", "-1000000", "3", "4.5", "9", "1000000")


def beyond(sql: str) -> list[str]:
    """The integers of a query that move further than their price, over all pairs of rows and all replaced rows."""
    found = []
    for release in planned(sql, ROWS).releases:
        measured = release.measured.measurements
        for statement in release.statements:
            with duckdb.connect() as con:
                con.execute("CREATE TABLE sized (i INTEGER, d DECIMAL(9,2), x DOUBLE, y DOUBLE)")
                seen = {}
                for pair in product(VALUES, repeat=2):
                    rows = ", ".join(f"({v}, {v}, {v}, {'1e999' if v == '1000000' else v})" for v in pair)
                    con.execute(f"DELETE FROM sized; INSERT INTO sized VALUES {rows}")
                    (seen[pair],) = con.execute(statement.salted(7)).fetchall()
                names = [column[0] for column in con.description or ()]
            for at, name in enumerate(names):
                moved = max(abs(seen[a, b][at] - seen[a, c][at]) for a, b, c in product(VALUES, repeat=3))
                price = measured[int(name[1:])].sensitivity.linf
                found += [f"{sql}: {name} moves by {moved}, price {price}"] if moved > price else []
    return found


@pytest.mark.parametrize("sql", QUERIES)
def test_no_replaced_row_moves_more_than_the_price(sql: str) -> None:
    assert not beyond(sql)


@pytest.mark.parametrize("seed", range(12))
def test_wrong_guesses_move_no_price(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the analysis says of NULL and of finite numbers is replaced by chance."""
    chance = random.Random(seed)
    right: Callable[[Facts, Expr], Value] = Facts.value

    def guessed(self: Facts, expr: Expr) -> Value:
        found = right(self, expr)
        return found if found.is_constant else replace(found, nullable=chance.random() < 0.5)

    monkeypatch.setattr(Facts, "value", guessed)
    assert not [each for sql in QUERIES for each in beyond(sql)]


def test_a_row_that_adds_nothing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin: the price still says that each row counts."""
    for module in (clip, grid_integers):
        monkeypatch.setattr(module, "filled", lambda c, units, low: units)
    assert len([sql for sql in QUERIES if beyond(sql)]) >= 4


def test_the_price_is_that_of_the_flag() -> None:
    """U - L where each row counts, though NULL stands in the data; the larger end where it may add nothing."""
    prices = [planned(f"SELECT SUM({c}) FROM sized", ROWS).releases[0].measured.measurements[0] for c in ("i", "y")]
    assert [p.component.every_row for p in prices] == [True, False]
    assert [p.sensitivity.linf * p.component.worth for p in prices] == [6, 9]
