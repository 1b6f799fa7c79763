"""What a compilation remembers of nodes and expressions is what it would find out anew: the plans are the same."""

from __future__ import annotations

import random
from typing import Any

import pytest

from dpsql.core.analysis.context import Context, Derivation
from dpsql.core.analysis.derive import derive
from dpsql.core.analysis.facts import Facts
from dpsql.core.analysis.rules.scan import _scan
from dpsql.core.ir.expressions import Expr
from dpsql.core.values.value import Value
from dpsql.diagnostics.errors import Rejected
from dpsql.frontend.bind.expressions.expressions import ExprBinder, _TypesOnly
from dpsql.functions.expression_values import evaluate
from dpsql.planner.rewrites.rewrite_context import ContributionLimits
from dpsql.service.planning.public_facts import FactStore
from tests.support.neighbour_oracle import plan_of, random_limits
from tests.support.random_databases import Store, World, random_world
from tests.support.random_queries import random_query


class Forgetful(dict[int, Any]):
    """Holds what was put in last, and says that it holds nothing."""

    def __contains__(self, key: object) -> bool:
        return False

    def get(self, key: object, default: Any = None) -> Any:
        return default


def _begin(ctx: Context, *, drafting: bool = False) -> Derivation:
    return Derivation(ctx.policy, ctx.public, ctx.max_keys, drafting, Forgetful())


def _forgetful(m: pytest.MonkeyPatch) -> None:
    """Every fact and every value is found out each time."""
    m.setattr(Derivation, "begin", _begin)
    m.setattr("dpsql.core.analysis.derive.scan", lambda node, ctx: _scan(node, ctx.table(node.table), ctx))
    m.setattr(Derivation, "fact", lambda self, node: derive(node, self).fact)
    m.setattr(Facts, "value", lambda self, expr: evaluate(expr, {uid: self.env[uid] for uid in self.columns}))
    m.setattr(ExprBinder, "value", lambda self, expr: evaluate(expr, _TypesOnly(expr)))


def _described(store: Store, facts: FactStore, world: World, sql: str, limits_: ContributionLimits) -> object:
    try:
        plan = plan_of(store, facts, world, sql, limits_)
    except Rejected as refusal:
        return tuple((d.code, d.message, d.span) for d in refusal.diagnostics)
    releases = [
        (
            r.measured.threshold,
            tuple((m.component, m.sensitivity, m.mechanism) for m in r.measured.measurements),
            tuple(s.salted(1) for s in r.statements),
        )
        for r in plan.releases
    ]
    return plan.hash, plan.loss, releases, [w.message for w in plan.warnings]


def _differences(seeds: range) -> tuple[int, int]:
    """(queries, those whose plan or refusal is another one without memory); each private table is read twice."""
    store, count, different = Store(), 0, 0
    for seed in seeds:
        rng = random.Random(seed)
        world = random_world(rng)
        store.load(world)
        facts = FactStore(store)
        for _ in range(4):
            sql, limits_ = random_query(rng, world), random_limits(rng)
            table = rng.choice(world.private).name
            twice = f"WITH c AS (SELECT * FROM {table} WHERE age > 0) SELECT COUNT(*) AS n, SUM(a.age) AS s "
            twice += "FROM c AS a JOIN c AS b ON a.pid = b.pid" if rng.random() < 0.5 else (
                "FROM (SELECT * FROM c UNION ALL SELECT * FROM c) AS a"
            )  # fmt: skip
            for text in (sql, twice):
                remembered = _described(store, facts, world, text, limits_)
                with pytest.MonkeyPatch.context() as m:
                    _forgetful(m)
                    anew = _described(store, facts, world, text, limits_)
                count += 1
                different += remembered != anew
    store.close()
    return count, different


def test_a_plan_is_the_same_without_memory() -> None:
    assert _differences(range(9_000, 9_012)) == (96, 0)


def test_a_value_of_another_context_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: what is known of a value is taken for what is known of another one of its type."""
    kept: dict[object, Value] = {}

    def value(self: Facts, expr: Expr) -> Value:
        return kept.setdefault((type(expr), expr.type), evaluate(expr, self.env))

    monkeypatch.setattr(Facts, "value", value)
    assert _differences(range(9_000, 9_012))[1] > 0
