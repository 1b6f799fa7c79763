"""The reference page knows every key of the format, and its example is a policy."""

from __future__ import annotations

import re
from pathlib import Path

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
    assert len(examples) == 1
    assert set(parse_policy(examples[0], "policy.md").tables) == {"icd10", "patients", "visits", "prescriptions"}
