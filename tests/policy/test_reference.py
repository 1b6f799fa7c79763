"""The reference page knows every key of the format, and its example is a policy."""

from __future__ import annotations

import re
from pathlib import Path

from dpsql.planner.computed import understood
from dpsql.policy.file.schema import policy_schema
from dpsql.policy.load import parse_policy


def test_every_key_is_on_the_page(root: Path) -> None:
    page = (root / "docs" / "reference" / "policy.md").read_text()
    schema = policy_schema()
    keys = {key for model in [schema, *schema["$defs"].values()] for key in model["properties"]}
    missing = {key for key in keys if not re.search(rf"[`{{ .]{key}[`:,}} ]", page)}
    assert not missing


def test_the_example_loads(root: Path) -> None:
    page = (root / "docs" / "reference" / "policy.md").read_text()
    examples = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    clinic, shop = (understood(parse_policy(text, "policy.md")).tables for text in examples)
    assert set(clinic) == {"icd10", "patients", "visits", "prescriptions"}
    assert all(c.computed is None or c.computed.expr is not None for c in shop["orders"].columns.values())
