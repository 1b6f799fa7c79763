"""The policies and queries that are audited: one for every plan shape, every kind of unit and both kinds of noise."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from dpsql.core.privacy_loss import exact
from dpsql.diagnostics.diagnostic import Source
from dpsql.faces.audit.audited_query import audit_query
from dpsql.faces.audit.run_audit import RUNS, Audit
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.policy.load import load_policy, parse_policy
from dpsql.policy.policy import Policy

POLICIES = Path(__file__).resolve().parents[1] / "fixtures" / "policies"

FEW_RUNS = 2000

ROWS = """
version: 1
name: rows
database: rows.duckdb
tables:
  log:
    unit: {rows: 2}
    columns:
      code: {type: integer}
      kind: {type: varchar, domain: [a, b], nullable: false}
      word: {type: varchar}
      x: {type: double, bounds: [-10, 30]}
      n: {type: integer, bounds: [0, 20], nullable: false}
  codes:
    public: true
    max_frequency: [{columns: [code], rows: 3}]
    columns: {code: {type: integer}, title: {type: varchar}}
budgets: {total: {epsilon: 10, delta: 1e-2}}
"""


@cache
def policy(name: str) -> Policy:
    """`rows`, a file of tests/fixtures/policies, or `zcdp`: that of limits.yaml under zCDP."""
    if name == "rows":
        return parse_policy(ROWS, "rows.yaml")
    if name == "zcdp":
        text = (POLICIES / "limits.yaml").read_text(encoding="utf-8")
        text = text.replace("total: {epsilon: 10, delta: 1e-6}", "total: {rho: 10, delta: 1e-2}")
        return parse_policy(f"{text}\nprivacy: {{accountant: zcdp}}\n", "zcdp.yaml")
    return load_policy(POLICIES / f"{name}.yaml")


@dataclass(frozen=True, slots=True)
class Case:
    """A query to audit. reach: the least part of a component's sensitivity that the search must find.

    runs: fewer where cells are chosen, one by one.
    """

    policy: str
    sql: str
    reach: float = 1.0
    delta: str | None = None
    epsilon: str = "1"
    runs: int = RUNS


CASES: dict[str, Case] = {
    "direct, one row per id": Case("limits", "SELECT COUNT(*), SUM(age) FROM people"),
    "direct, grouped": Case("limits", "SELECT region, AVG(age) FROM people GROUP BY region"),
    "direct, a promise": Case("limits", "SELECT VAR_POP(y) FROM promised"),
    "direct, private keys": Case("limits", "SELECT town, COUNT(*) FROM people GROUP BY town"),
    "two-level": Case("limits", "SELECT COUNT(*) FROM total"),
    "two-level, a sum alone": Case("limits", "SELECT SUM(x) FROM total"),
    "two-level, nullable id": Case("limits", "SELECT SUM(amount) FROM loans"),
    "weighted, M and G": Case("limits", "SELECT kind, COUNT(*), SUM(x), AVG(y) FROM grouped GROUP BY kind"),
    "weighted, C": Case("limits", "SELECT kind, COUNT(*), SUM(x) FROM total GROUP BY kind"),
    "truncated groups": Case("limits", "SELECT word, COUNT(*), SUM(y) FROM grouped GROUP BY word"),
    "truncated groups, weights": Case("limits", "SELECT word, AVG(x) FROM total GROUP BY word"),
    "distinct": Case("limits", "SELECT COUNT(DISTINCT word) FROM total WHERE y > 2"),
    "distinct, grouped": Case("limits", "SELECT kind, COUNT(DISTINCT word), COUNT(DISTINCT id) FROM every GROUP BY 1"),
    "distinct, private keys": Case("limits", "SELECT word, COUNT(DISTINCT kind) FROM total GROUP BY word", 0.7),
    "aggregated early": Case("limits", "SELECT region, SUM(x) FROM grouped JOIN people USING (id) GROUP BY 1"),
    "join on the unit": Case("limits", "SELECT COUNT(*) FROM total a JOIN people b USING (id) WHERE b.age > 60"),
    "semi join": Case("limits", "SELECT COUNT(*) FROM people WHERE id IN (SELECT id FROM grouped WHERE kind = 'a')"),
    "public join": Case("limits", "SELECT country, COUNT(*) FROM people JOIN countries USING (id) GROUP BY country"),
    "public join, m = 4": Case("limits", "SELECT topic, COUNT(*) FROM total JOIN words USING (word) GROUP BY topic"),
    "totals per unit": Case("limits", "SELECT AVG(n) FROM (SELECT id, COUNT(*) AS n FROM promised GROUP BY id)"),
    "rollup": Case("limits", "SELECT kind, COUNT(*) FROM log GROUP BY ROLLUP (kind)"),
    "slices of few values": Case(
        "limits", "SELECT COUNT(*) FILTER (WHERE word IN ('a', 'b')) FROM (SELECT DISTINCT id, word FROM total)"
    ),
    "full join": Case(
        "limits", "SELECT COUNT(*) FROM people p FULL JOIN (SELECT id, MAX(x) FROM total GROUP BY id) t ON p.id = t.id"
    ),
    "path": Case("store", "SELECT product, SUM(quantity) FROM items GROUP BY product"),
    "path, joined": Case(
        "store",
        "SELECT segment, SUM(quantity) FROM items JOIN orders USING (order_id) "
        "JOIN customers USING (customer_id) GROUP BY segment",
    ),
    "list": Case("store", "SELECT tag, COUNT(*) FROM (SELECT UNNEST(tags) AS tag FROM orders) GROUP BY tag", 0.2),
    "a release within a release": Case(
        "store", "SELECT COUNT(*) FROM orders WHERE amount > (SELECT AVG(amount) FROM orders)"
    ),
    "rows joined to rows": Case("store", "SELECT SUM(cost) FROM sensors JOIN repairs USING (device)", 0.5),
    "rows": Case("rows", "SELECT kind, COUNT(*), SUM(x), AVG(n) FROM log GROUP BY kind"),
    "rows, a pivot": Case(
        "rows",
        "SELECT COUNT(*) FILTER (WHERE n < 5), SUM(x) FILTER (WHERE n < 5), COUNT(*) FILTER (WHERE n > 9) FROM log",
    ),
    "rows, private keys": Case("rows", "SELECT word, COUNT(*) FROM log GROUP BY word"),
    "rows, public kept": Case("rows", "SELECT kind, COUNT(*) FROM codes LEFT JOIN log USING (code) GROUP BY 1"),
    "rows, groups within": Case("rows", "SELECT COUNT(*) FROM (SELECT code, COUNT(*) c FROM log GROUP BY code)", 0.5),
    "rows, a variance": Case("shop", "SELECT STDDEV(weight) FROM orders WHERE placed > DATE '2024-06-01' AND express"),
    "replaced rows": Case("replaced", "SELECT kind, SUM(x), COUNT(*) FROM rows GROUP BY kind"),
    "replaced rows of a public size": Case("replaced", "SELECT COUNT(*), SUM(x), AVG(y) FROM loans"),
    "replaced ids": Case("replaced", "SELECT COUNT(*), SUM(x) FROM visits"),
    "replaced ids, grouped": Case("replaced", "SELECT kind, COUNT(*) FROM visits GROUP BY kind", 0.6),
    "zcdp": Case("zcdp", "SELECT kind, COUNT(*), SUM(x), AVG(y) FROM grouped GROUP BY kind"),
    "zcdp, one number": Case("zcdp", "SELECT SUM(age) FROM people"),
    "zcdp, private keys": Case("zcdp", "SELECT word, COUNT(*) FROM grouped GROUP BY word"),
    "keys shown first": Case("talk", "SELECT word, COUNT(*) FROM said GROUP BY word", 0.7),
    "gaussian": Case("limits", "SELECT region, COUNT(*), SUM(age) FROM people GROUP BY region", delta="0.05"),
    "quantile": Case("limits", "SELECT QUANTILE_DISC(age, 0.9) FROM people", epsilon="4", runs=FEW_RUNS),
    "quantile, weighted": Case("limits", "SELECT MEDIAN(x) FROM total", runs=FEW_RUNS),
    "quantiles by slices": Case(
        "rows",
        "SELECT MEDIAN(n) FILTER (WHERE kind = 'a') AS a, MEDIAN(n) FILTER (WHERE kind = 'b') AS b FROM log",
        runs=FEW_RUNS,
    ),
    "quantile of replaced rows": Case("replaced", "SELECT MEDIAN(x) FROM rows", epsilon="4", runs=FEW_RUNS),
    "mode": Case("limits", "SELECT MODE(region) FROM people", epsilon="2", runs=FEW_RUNS),
    "mode, weighted": Case("limits", "SELECT MODE(kind) FROM grouped", runs=FEW_RUNS),
    "largest groups": Case(
        "limits",
        "SELECT kind FROM no_limit GROUP BY kind ORDER BY COUNT(DISTINCT id) DESC LIMIT 1",
        epsilon="2",
        runs=FEW_RUNS,
    ),
    "zcdp, quantile beside a count": Case("zcdp", "SELECT COUNT(*), MEDIAN(age) FROM people", runs=FEW_RUNS),
}


def audited(case: Case, runs: int | None = None) -> Audit:
    """The audit of a case. runs: other than its own."""
    settings = QuerySettings(exact(case.epsilon), None if case.delta is None else exact(case.delta))
    return audit_query(policy(case.policy), Source(case.sql), settings, runs=runs or case.runs)
