"""Each rule of the analysis and each rewrite shows an example in its head, and the example is true."""

from __future__ import annotations

import doctest
import pkgutil

import pytest

import dpsql.core.analysis.rules
import dpsql.planner.rewrites
from dpsql.planner.rewrites.rules import RULES
from tests.support.worked_examples import HELPERS, examples, failures

NO_REWRITES = {"padding", "rewrite_context", "rules"}
MODULES = [
    found.name
    for package in (dpsql.core.analysis.rules, dpsql.planner.rewrites)
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if not found.ispkg and found.name.rpartition(".")[2] not in NO_REWRITES
]


@pytest.mark.parametrize("module", MODULES)
def test_the_example_is_true(module: str) -> None:
    (example,) = examples(module)
    assert not failures(example)


def test_every_rewrite_is_among_them() -> None:
    assert {rule.__module__ for rule, _ in RULES} < set(MODULES) and len(MODULES) > 30


@pytest.mark.parametrize(
    "wrong",
    [
        ">>> facts('SELECT * FROM calls')\nscan calls   stability calls=1 row\n",
        ">>> facts('SELECT * FROM visits ORDER BY cost')\norder by cost   public\n",
        ">>> before_after(order_joins, 'SELECT COUNT(*) FROM visits')\nscan visits  →  scan patients\n",
    ],
)
def test_an_example_that_is_false_is_noticed(wrong: str) -> None:
    names = {**HELPERS, **{rule.__name__: rule for rule, _ in RULES}}
    assert "Expected" in failures(doctest.DocTestParser().get_doctest(wrong, names, "wrong", None, 0))
