"""The JSON Schema of a policy file, for completion and checking in editors."""

from __future__ import annotations

from typing import Any

from dpsql.policy.file.file_format import PolicyFile

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def policy_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of the policy format; every key carries its description.

    It describes the form; what needs two places at once (units, promises, bounds by type) is checked on loading.
    """
    schema = _tidy(PolicyFile.model_json_schema(mode="validation"))
    return {"$schema": DIALECT, **schema, "title": "dpsql policy"}


def _tidy(node: Any) -> Any:
    """Leave out what only repeats: generated titles and `default: null`."""
    if isinstance(node, list):
        return [_tidy(item) for item in node]
    if not isinstance(node, dict):
        return node
    if "properties" in node:
        node = {**node, "properties": {key: _tidy(value) for key, value in node["properties"].items()}}
        rest = {key: value for key, value in node.items() if key not in ("properties", "title")}
        return {key: value if key == "properties" else _tidy(value) for key, value in rest.items()} | {
            "properties": node["properties"]
        }
    return {
        k: _tidy(v)
        for k, v in node.items()
        if not (k == "title" and isinstance(v, str)) and not (k == "default" and v is None)
    }
