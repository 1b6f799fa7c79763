"""The JSON Schema is valid, accepts what loads and refuses what has a wrong form."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from dpsql.diagnostics.diagnostic import Source
from dpsql.policy.file.schema import policy_schema
from dpsql.policy.file.yaml_text import read_yaml
from dpsql.policy.load import load_policy
from tests.policy.policies import GOOD, SAMPLES, good, spoiled


def as_json(text: str) -> Any:
    value = read_yaml(Source(text), Path()).value
    return json.loads(json.dumps(value, default=lambda d: float(d) if isinstance(d, Decimal) else str(d)))


@pytest.fixture(scope="module")
def validator() -> Any:
    schema = policy_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(json.loads(json.dumps(schema)))


@pytest.mark.parametrize("name", ["clinic", "shop", "flights"])
def test_accepts_samples(validator: Any, name: str) -> None:
    load_policy(SAMPLES / f"{name}.yaml")
    assert [e.message for e in validator.iter_errors(as_json((SAMPLES / f"{name}.yaml").read_text()))] == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("version: 1", "version: 2"), ("name: good", "nam: good"), ("name: good", "name: 1"), ("rows: 2", "rows: 0"),
        ("rows: 2", "rowz: 2"), ("[0, 110]", "[0]"), ("[[code]]", "[code]"), ("epsilon: 10,", "epsilon: -1,"),
        ("public: true", "public: yes"), ("delta: 1e-6", "delta: 1"), ("max_rows_per_unit: 20", "max_rows_per_unit: x"),
        ("max_rows_per_unit: 20", "max_rows_per_unit: {search: false}"), ("[0, 110]", "serach"),
    ],
)  # fmt: skip
def test_refuses_wrong_forms(validator: Any, old: str, new: str) -> None:
    assert GOOD.count(old) == 1
    assert validator.is_valid(as_json(GOOD))
    assert not validator.is_valid(as_json(GOOD.replace(old, new)))


def test_every_key_is_described() -> None:
    schema = policy_schema()
    for model in [schema, *schema["$defs"].values()]:
        assert model.get("description")
        for key, facts in model["properties"].items():
            assert facts.get("description"), key


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("max_rows_per_unit: 20", "max_rows_per_unit: search"),
        ("max_rows_per_unit: 20", "max_rows_per_unit: {search: true, at_most: 1000}"), ("[0, 110]", "search"),
        ("[0, 110]", "{search: true, within: [0, null]}"), ("name: good", "name: good\nsearch: refuse"),
        ("area: {type: double}", "area: {type: double, resolution: 0.01}"),
    ],
)  # fmt: skip
def test_knows_searches(validator: Any, old: str, new: str) -> None:
    assert validator.is_valid(as_json(spoiled(old, new)))
    good(old, new)
