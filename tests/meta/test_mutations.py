"""The mutations that `make mutants` tries still fit the code, and their page lists them all, each as caught."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.mutants.mutations import MUTATIONS, Mutation
from tests.mutants.run import TABLE, applies, known, table

LEAST = 25


def test_there_are_enough_each_with_a_name_of_its_own() -> None:
    assert len(MUTATIONS) >= LEAST
    assert [name for name, times in Counter(m.name for m in MUTATIONS).items() if times > 1] == []


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_mutation_applies_to_the_code_as_it_is(mutation: Mutation, root: Path) -> None:
    assert applies(mutation, root), f"its text is not found exactly once in {mutation.path}"
    assert mutation.old != mutation.new
    assert mutation.tests and all((root / test.partition("::")[0]).exists() for test in mutation.tests)


def test_the_page_lists_every_mutation_with_the_test_that_caught_it() -> None:
    caught = known()
    assert [m.name for m in MUTATIONS if m.name not in caught] == [], "run `make mutants`"
    assert TABLE.read_text(encoding="utf-8") == table(caught), "run `make mutants`"


def test_the_tests_on_the_page_are_there(root: Path) -> None:
    """In the file that is named, or in a contract that it inherits."""
    contracts = "".join(path.read_text("utf-8") for path in sorted((root / "tests").rglob("*_contract.py")))
    missing = [
        test
        for test in known().values()
        if f"def {test.rpartition('::')[2]}(" not in (root / test.partition("::")[0]).read_text("utf-8") + contracts
    ]
    assert missing == []


def test_a_quick_test_catches_it_or_the_list_says_why_not() -> None:
    deep = {name for name, test in known().items() if test.startswith("tests/deep/")}
    assert deep == {m.name for m in MUTATIONS if m.deep}
