"""Queries that compute something of their columns, over three tables, and their statements in each engine's SQL."""

from __future__ import annotations

from collections.abc import Iterator

from dpsql.core.ir.nodes import Release
from dpsql.core.printing.dialect import Dialect
from dpsql.core.printing.shapes.choose import statements as chosen
from dpsql.planner.rewrites.rewrite_context import ContributionLimits
from tests.support.planning import planned, policy

POLICY = policy("""
log:
  unit: {rows: 1}
  columns:
    x: {type: integer, bounds: [0, 10]}
    y: {type: double, bounds: [-3, 3]}
    p: {type: "decimal(9,2)", bounds: [0, 50]}
    t: {type: varchar, domain: [a, b, "it's"]}
    d: {type: date, bounds: [2024-01-01, 2024-12-31]}
ids:
  unit: {column: id}
  max_rows_per_unit: 3
  columns:
    id: {type: bigint}
    x: {type: integer, bounds: [0, 10]}
    y: {type: double, bounds: [-3, 3]}
    t: {type: varchar, domain: [a, b, "it's"]}
owners:
  unit: {column: id}
  primary_key: [id]
  columns:
    id: {type: bigint}
    land: {type: varchar, domain: [at, ch]}
""")
REPEATING = [
    "SELECT SUM(x + 1) FROM log",
    "SELECT SUM(x * 2), SUM(x * 3) FROM log",
    "SELECT SUM(y * 2), AVG(y * 2), COUNT(y * 2) FROM log",
    "SELECT SUM(p * 2 + x) FROM log",
    "SELECT t, SUM(y * x) FROM log GROUP BY t",
    "SELECT MONTH(d) AS m, AVG(x * 2) FROM log GROUP BY m",
    "SELECT COUNT(*) FILTER (WHERE x % 3 = 0), COUNT(*) FILTER (WHERE x % 3 = 1), SUM(x) FROM log",
    "SELECT SUM(x) FILTER (WHERE y + x > 2), AVG(p) FILTER (WHERE y + x > 2) FROM log",
    "SELECT VAR_POP(x), VAR_POP(y * 2) FROM log",
    "SELECT COVAR_POP(x * 2, y + 1) FROM log",
    "SELECT MEDIAN(y * 2) FROM log",
    "SELECT t, SUM(x * 2) FROM ids GROUP BY t",
    "SELECT AVG(y + x) FROM ids",
    "SELECT MEDIAN(x + 1) FROM ids",
    "SELECT SUM(DISTINCT x + 1) FROM ids",
    "SELECT o.land, SUM(i.x * 2) FROM ids i JOIN owners o ON i.id = o.id GROUP BY o.land",
    "SELECT AVG(s) FROM (SELECT id, CLIP(SUM(y * x), 0, 20) AS s FROM ids GROUP BY id) AS q",
    *(
        READ_TWICE := [
            "SELECT SUM(SQRT(y * 7 + x)) FROM log",
            "SELECT SUM(SQRT(SQRT(y * 7 + 9) + x)), SUM(x * 2) FROM log",
            "SELECT t, AVG(SQRT(y * 7 + 9)) FROM ids GROUP BY t",
            "SELECT AVG(s) FROM (SELECT id, CLIP(SUM(SQRT(y * 7 + x)), 0, 20) AS s FROM ids GROUP BY id) AS q",
            """SELECT SUM(SQRT(y * 7 + x)), COUNT(*) FILTER (WHERE t = '(t1."y" * 7)') FROM log""",
            "SELECT COUNT(*) FILTER (WHERE x * 7 % 3 = 0), SUM(p) FILTER (WHERE x * 7 % 3 = 1) FROM log",
            "SELECT COUNT(*) FILTER (WHERE x * 7 IN (0, 7, 14, 21, 28, 35, 42, 49)), "
            "COUNT(*) FILTER (WHERE NOT x * 7 IN (0, 7, 14, 21, 28, 35, 42, 49) AND x * 7 > 1) FROM log",
        ]
    ),
]
"""The last of them read a part of a text several times: `* 7`."""
WRITTEN_ONCE = [
    "SELECT COUNT(*) FILTER (WHERE x + 1 > 3) FROM log",
    "SELECT COUNT(DISTINCT x + 1) FROM log",
    "SELECT COUNT(x % 7) FROM log",
    "SELECT MONTH(d) AS m, COUNT(*) FROM log GROUP BY m",
    "SELECT COUNT(*) FILTER (WHERE x % 3 = 0) FROM ids",
    "SELECT AVG(s) FROM (SELECT id, x % 3 AS k, CLIP(SUM(x), 0, 20) AS s FROM ids GROUP BY id, k) AS q",
]


def of_dialect(sql: str, dialect: Dialect, limits: ContributionLimits | None = None) -> list[str]:
    """The statements of a query in an engine's SQL; the plan knows none."""
    releases = [t for t in planned(sql, POLICY, limits=limits).tree.walk() if isinstance(t.node, Release)]
    return [s.salted(7) for r in releases for s in chosen(r, dialect, dialect.identifier, {})]


READ_ONCE = [
    "SELECT MEDIAN(x + 1) FROM ids",
    "SELECT UPPER(t) AS k, MEDIAN(x * 2) FILTER (WHERE x % 3 > 0) FROM ids GROUP BY k",
    "SELECT x % 3 AS k, MODE(t) FROM ids GROUP BY k",
    "SELECT x % 3 AS k, AVG(y + x), COUNT(*) FROM ids GROUP BY k",
    "SELECT CAST(y AS INTEGER) AS k, COUNT(DISTINCT x + 1) FILTER (WHERE x > 0), SUM(DISTINCT x * 2) "
    "FROM ids GROUP BY k",
]
"""Weights, limits and values of groups whose keys are computed."""
LIMITS = [
    ContributionLimits(),
    ContributionLimits(per_group=2, groups=2),
    ContributionLimits(rows=2),
]


def read_once(dialect: Dialect) -> Iterator[str]:
    """The statements of these, under each of these limits."""
    for sql in READ_ONCE:
        for limits in LIMITS:
            yield from of_dialect(sql, dialect, limits)
