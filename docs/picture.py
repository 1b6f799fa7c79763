"""EXPLAIN of the flights example: as a text block, as JSON, and as a picture for the README."""

from __future__ import annotations

import json
from fractions import Fraction
from functools import cache
from html import escape
from pathlib import Path

from dpsql.compiler import Plan, Settings
from dpsql.compiler.explain import as_json, as_text
from dpsql.diagnostics.diagnostic import Source
from dpsql.policy.load import load_policy
from dpsql.session.check import static_plan

FLIGHTS = Path(__file__).resolve().parent.parent / "examples" / "flights"
QUERY = """\
SELECT origin, COUNT(*) AS n, AVG(dep_delay) AS delay
FROM flights JOIN airlines USING (carrier)
WHERE month = 7
GROUP BY origin
ORDER BY n DESC"""
COMMAND = "dpsql explain flights.yaml -f july.sql --epsilon 1"
WIDTH, HEIGHT = 7.3, 17
"""Of a character cell in the picture, in pixels."""


@cache
def plan() -> Plan:
    """The plan of the example, from its policy alone: a test holds it equal to what a run with data plans."""
    policy = load_policy(FLIGHTS / "flights.yaml")
    return static_plan(Source(QUERY), policy, settings=Settings(epsilon=Fraction(1)))


def explain_block() -> str:
    """EXPLAIN as a fenced block."""
    return f"```text\n{as_text(plan())}\n```"


def json_block() -> str:
    """The JSON form, cut to one component and one node, as a fenced block."""
    whole = as_json(plan())
    for part in ("components", "outputs"):
        whole["releases"][0][part] = whole["releases"][0][part][:1]
    whole["nodes"] = whole["nodes"][3:4]
    whole["plan"] = whole["plan"][:8] + "…"
    return f"```json\n{json.dumps(whole, indent=2, ensure_ascii=False)}\n```"


def explain_svg() -> str:
    """A picture of the query and its EXPLAIN in a terminal."""
    shown = [(f"$ cat july.sql && {COMMAND}", "#8b949e"), *((line, "#79c0ff") for line in QUERY.splitlines()), ("", "")]
    shown += [(line, _colour(line)) for line in as_text(plan()).splitlines()]
    columns = max(len(line) for line, _ in shown)
    wide, high = round(columns * WIDTH + 32), len(shown) * HEIGHT + 32
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high}" '
        f'viewBox="0 0 {wide} {high}" role="img" '
        'aria-label="A query and its EXPLAIN: operators with stability, components with sensitivity, noise and price">',
        f'<rect width="{wide}" height="{high}" rx="8" fill="#0d1117"/>',
        '<g font-family="ui-monospace, Menlo, Consolas, monospace" font-size="12" xml:space="preserve">',
        "<style>text { white-space: pre }</style>",  # browsers of today do not know xml:space
    ]
    for number, (line, colour) in enumerate(shown):
        if line:
            length = f'textLength="{len(line) * WIDTH:.1f}" lengthAdjust="spacingAndGlyphs"'
            y = 16 + HEIGHT * (number + 0.75)
            lines.append(f'<text x="16" y="{y:.2f}" {length} fill="{colour}">{escape(line)}</text>')
    return "\n".join([*lines, "</g>", "</svg>", ""])


def _colour(line: str) -> str:
    if line.startswith(("cost:", "release ")):
        return "#7ee787"
    return "#8b949e" if line.startswith("note:") else "#e6edf3"
