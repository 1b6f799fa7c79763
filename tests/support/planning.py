"""Small policies and plans for unit tests: tables as YAML, no data."""

from __future__ import annotations

import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

from dpsql.core.analysis.context import Context
from dpsql.core.analysis.derive import derive
from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.nodes import Node, Release, Scan, output_columns
from dpsql.core.ir.public_facts import PublicFacts
from dpsql.core.ir.walk import Tagged
from dpsql.diagnostics.diagnostic import Source
from dpsql.frontend.bind.statement import bind
from dpsql.frontend.parse import parse
from dpsql.planner.plan import Plan
from dpsql.planner.rewrites.rewrite_context import ContributionLimits
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.policy.load import parse_policy
from dpsql.policy.policy import Policy
from dpsql.service.checks.check import static_plan

HEAD = "version: 1\nname: test\ndatabase: test.duckdb\nbudgets: {total: {epsilon: 10, delta: 1e-6}}\n"
UNITS = "units: {person: {}}\n"


def policy(tables: str, head: str = UNITS) -> Policy:
    """A policy with these tables (YAML at top level)."""
    indented = "".join(f"  {line}\n" for line in tables.strip().splitlines())
    return parse_policy(f"{HEAD}{head}tables:\n{indented}", "test.yaml")


def planned(
    sql: str, of: Policy, parameters: Any = (), *, epsilon: str = "1", limits: ContributionLimits | None = None
) -> Plan:
    """The static plan. Raises Rejected."""
    settings = QuerySettings(Fraction(epsilon), Fraction(1, 10**9), limits or ContributionLimits())
    return static_plan(Source(sql), of, parameters, settings=settings)


def derived(sql: str, of: Policy, public: PublicFacts | None = None) -> Tagged[Facts]:
    """The facts of a query as it is bound, before any rewrite: for rules below a release. Raises Rejected."""
    root = bind(parse(Source(sql)), of).root
    return derive(root, Context(of, public or PublicFacts()))


def below_release(plan: Plan) -> Facts:
    """Facts of the rows that the only release reads."""
    (release,) = [t for t in plan.tree.walk() if isinstance(t.node, Release)]
    return release.inputs[0].fact


def named(columns: frozenset[int], node: Node) -> set[str]:
    """Names of columns by their numbers."""
    found = {c.uid: c.name for n in _all(node) for c in output_columns(n)}
    return {found[uid] for uid in columns}


def sets(found: Any, node: Node) -> set[frozenset[str]]:
    """Column sets as sets of names."""
    return {frozenset(named(columns, node)) for columns in found}


def _all(node: Node) -> list[Node]:
    from dpsql.core.ir.walk import walk

    return list(walk(node))


def printed_by_processes(code: str) -> set[str]:
    """What new processes print that run `code`, each with another seed of Python's salted hashes."""
    root = Path(__file__).resolve().parents[2]
    return {
        subprocess.run(
            [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True, timeout=300,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2", "12345")
    }  # fmt: skip


def scans(plan: Plan) -> list[str]:
    """Tables that a plan reads."""
    return [t.node.table for t in plan.tree.walk() if isinstance(t.node, Scan)]
