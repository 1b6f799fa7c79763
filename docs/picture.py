"""EXPLAIN of the flights example: as a text block and as JSON."""

from __future__ import annotations

import json
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

from dpsql.diagnostics.diagnostic import Source
from dpsql.planner.explain.explain_text import as_text
from dpsql.planner.explain.stable_json import as_json
from dpsql.planner.plan import Plan
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.policy.load import load_policy
from dpsql.service.checks.check import static_plan

FLIGHTS = Path(__file__).resolve().parent.parent / "examples" / "flights"
WIDTH = 100
QUERY = """\
SELECT origin, COUNT(*) AS n, AVG(dep_delay) AS delay
FROM flights JOIN airlines USING (carrier)
WHERE month = 7
GROUP BY origin
ORDER BY n DESC"""


@cache
def plan() -> Plan:
    """The plan of the example, from its policy alone: a test holds it equal to what a run with data plans."""
    policy = load_policy(FLIGHTS / "flights.yaml")
    return static_plan(Source(QUERY), policy, settings=QuerySettings(epsilon=Fraction(1)))


def explain_block() -> str:
    """EXPLAIN as a fenced block."""
    return f"```text\n{as_text(plan())}\n```"


def json_block() -> str:
    """The JSON form, cut to one component and one node, as a fenced block."""
    whole = as_json(plan())
    for part in ("components", "outputs"):
        whole["releases"][0][part] = whole["releases"][0][part][:1]
    whole["tree"], whole["nodes"] = whole["tree"][3:4], whole["nodes"][3:4]
    whole["plan"] = whole["plan"][:8] + "…"
    return f"```json\n{_laid_out(whole, 0)}\n```"


def _laid_out(value: Any, depth: int) -> str:
    """JSON in which whatever fits on a line stands on one."""
    line = json.dumps(value, ensure_ascii=False)
    if len(line) + 2 * depth <= WIDTH or not isinstance(value, dict | list):
        return line
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    items = (
        [(f"{json.dumps(k)}: ", v) for k, v in value.items()] if isinstance(value, dict) else [("", v) for v in value]
    )
    inner = "  " * (depth + 1)
    parts = ",\n".join(f"{inner}{name}{_laid_out(item, depth + 1)}" for name, item in items)
    return f"{opening}\n{parts}\n{'  ' * depth}{closing}"
