"""Every kind of component has its rules, in a file that says what it claims."""

from __future__ import annotations

import inspect

import pytest

from dpsql.core.ir.components import Component
from dpsql.core.measures.all_measures import RULES

HEADS = "\nClaim: ", "\nWhy: ", "\nWhen it would be false: ", "\nTested by: "


@pytest.mark.parametrize("kind", RULES)
def test_each_kind_is_one_file_that_opens_with_its_claim(kind: type[Component]) -> None:
    own = RULES[kind]
    module = inspect.getmodule(type(own))
    assert module is not None and module.__name__ == f"dpsql.core.measures.{kind.kind}"
    assert module.__doc__ is not None and all(head in module.__doc__ for head in HEADS)
    assert own.name and own.counts
