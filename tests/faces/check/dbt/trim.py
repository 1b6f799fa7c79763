"""Cuts a manifest of dbt down to what the check looks at and a few fields beside it: `trim.py MANIFEST OUTPUT`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

METADATA = ("dbt_schema_version", "dbt_version", "project_name", "adapter_type")
NODE = (
    "alias", "compiled", "compiled_code", "compiled_path", "config", "database", "depends_on", "extra_ctes", "language",
    "name", "original_file_path", "package_name", "path", "raw_code", "relation_name", "resource_type", "schema",
    "unique_id",
)  # fmt: skip
CONFIG = ("enabled", "materialized", "meta")
SOURCE = ("identifier", "name", "relation_name", "resource_type", "source_name", "unique_id")


def trimmed(whole: dict) -> dict:  # type: ignore[type-arg]
    nodes = {key: {name: node[name] for name in NODE if name in node} for key, node in whole["nodes"].items()}
    for node in nodes.values():
        node["config"] = {name: node["config"][name] for name in CONFIG if name in node["config"]}
    sources = {key: {name: found[name] for name in SOURCE} for key, found in whole["sources"].items()}
    metadata = {name: whole["metadata"][name] for name in METADATA if name in whole["metadata"]}
    return {"metadata": metadata, "nodes": nodes, "sources": sources, "disabled": sorted(whole["disabled"])}


if __name__ == "__main__":
    made = trimmed(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    Path(sys.argv[2]).write_text(json.dumps(made, indent=1, sort_keys=True) + "\n", encoding="utf-8")
