"""Policies built in code: from the same form as the file's, with the same mistakes told in the same words."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

import dpsql
from tests.api.conftest import POLICY

TEXT = """\
version: 1
name: shop
tables:
  orders:
    unit: {column: customer}
    max_rows_per_unit: 20
    columns:
      customer: {type: bigint}
      amount: {type: double, bounds: [0, 100]}
budgets: {total: {epsilon: 3, delta: 1e-6}}
"""


def plain(text: str) -> dict[str, Any]:
    found: dict[str, Any] = YAML(typ="safe").load(text)
    return found


def test_one_policy_built_in_three_ways(tmp_path: Path) -> None:
    (tmp_path / "shop.yaml").write_text(TEXT, encoding="utf-8")
    built = dpsql.Policy.from_dict(plain(TEXT), directory=tmp_path)
    assert built == dpsql.Policy.from_yaml(TEXT, directory=tmp_path) == dpsql.Policy.from_file(tmp_path / "shop.yaml")
    assert built.directory == tmp_path and built.ledger_path == tmp_path / "shop.ledger.sqlite"
    assert dpsql.check("SELECT SUM(amount) AS s FROM orders", built) == []


WRONG: dict[str, tuple[str, str]] = {
    "bounds": ("bounds: [0, 100]", "bounds: [100, 0]"),
    "key": ("max_rows_per_unit", "max_row_per_unit"),
    "type": ("type: double", "type: dubble"),
    "unit": ("{column: customer}", "{column: custommer}"),
    "budget": ("epsilon: 3", "epsilon: -3"),
    "version": ("version: 1", "version: 2"),
}


@pytest.mark.parametrize(("old", "new"), WRONG.values(), ids=WRONG)
def test_mistakes_are_told_as_for_a_file(old: str, new: str) -> None:
    text = TEXT.replace(old, new)
    assert text != TEXT
    with pytest.raises(dpsql.CannotOpen) as from_text:
        dpsql.Policy.from_yaml(text)
    with pytest.raises(dpsql.CannotOpen) as from_dict:
        dpsql.Policy.from_dict(plain(text))
    told = [(d.code, d.message, d.help) for d in from_dict.value.diagnostics]
    assert sorted(told) == sorted((d.code, d.message, d.help) for d in from_text.value.diagnostics)
    assert all(code == "DP003" for code, _, _ in told)


@pytest.mark.parametrize("wrong", [None, 5, "version: 1", [], {}, {5: 6}, {"tables": float("nan")}, {"version": [1]}])
def test_what_is_no_policy(wrong: Any) -> None:
    with pytest.raises(dpsql.CannotOpen) as refusal:
        dpsql.Policy.from_dict(wrong)
    assert {d.code for d in refusal.value.diagnostics} == {"DP003"}


def test_the_mapping_is_neither_changed_nor_kept() -> None:
    given = copy.deepcopy(POLICY)
    policy = dpsql.Policy.from_dict(given)
    assert given == POLICY
    given["tables"]["members"]["columns"].clear()
    assert policy.tables["members"].columns and policy == dpsql.Policy.from_dict(POLICY)
