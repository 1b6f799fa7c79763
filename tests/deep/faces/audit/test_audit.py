"""One query of every plan shape is audited and not refuted; its databases reach what the plan states."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpsql.diagnostics.diagnostic import Source
from dpsql.service.checks.check import static_plan
from tests.support.audited_queries import CASES, Case, audited, policy

LIKE_ANOTHER = {
    "direct, grouped", "direct, private keys", "two-level, a sum alone", "two-level, nullable id", "weighted, C",
    "distinct, grouped", "join on the unit", "semi join", "public join, m = 4", "totals per unit", "path, joined",
    "rows joined to rows", "rows, public kept", "rows, groups within", "replaced ids, grouped", "zcdp, one number",
}  # fmt: skip
"""Cases whose statements and prices are those of others, one by one: for `make exhaustive`."""


@pytest.mark.sampled(3)
@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.exhaustive) if n in LIKE_ANOTHER else n for n in CASES]
)
def test_a_correct_plan_is_not_refuted_and_nearly_reached(name: str) -> None:
    case = CASES[name]
    found = audited(case)
    assert not found.refuted, found
    assert found.unmoved == ()
    assert all(t.reached >= case.reach for t in found.tested if t.reached is not None)
    assert {t.unit for t in found.tested} == set(found.plan.cost)
    wholes = [t.noise.bound or 0.0 for t in found.tested if t.what == "the whole query" and t.noise is not None]
    assert max(wholes) > 0.2, "the attack must come close, or it could refute nothing"
    if name.startswith(("zcdp", "gaussian")):
        assert {t.quantity for t in found.tested} - {"delta"} == {"rho"}
    private = any(r.measured.threshold is not None for r in found.plan.releases)
    assert private is any(t.quantity == "delta" for t in found.tested)


def shapes_of(case: Case) -> set[str]:
    """The names of the statements of a case. Public tables are made up by the audit; here they are not needed."""
    plan = static_plan(Source(case.sql), policy(case.policy))
    return {s.shape for r in plan.releases for s in r.statements}


def named_shapes(root: Path) -> Iterator[str]:
    """Every part of a shape's name that the emitters can write: the third argument of Statement, and `shape = …`."""
    for path in sorted((root / "dpsql" / "core" / "printing" / "shapes").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            parts: list[ast.AST] = []
            match node:
                case ast.Call(func=ast.Name(id="Statement"), args=[_, _, shape, *_]):
                    parts = [shape]
                case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
                    parts = [
                        v for n, v in zip(names, values, strict=True) if isinstance(n, ast.Name) and n.id == "shape"
                    ]
                case ast.Assign(targets=[ast.Name(id="shape")], value=value):
                    parts = [value]
                case _:
                    pass
            for part in parts:
                yield from (
                    c.value.removeprefix(", ")
                    for c in ast.walk(part)
                    if isinstance(c, ast.Constant) and isinstance(c.value, str)
                )


def test_every_shape_is_audited(root: Path) -> None:
    seen = {shape for case in CASES.values() for shape in shapes_of(case)}
    named = set(named_shapes(root))
    assert {"direct", "weights per id", "distinct, truncated per id"} <= named
    assert [part for part in named if not any(part in shape for shape in seen)] == []
