"""Queries that compute something of their columns, over three tables, and their statements in each engine's SQL."""

from __future__ import annotations

from dpsql.core.ir.by_identity import ByIdentity
from dpsql.core.ir.nodes import Release
from dpsql.core.printing.dialect import Dialect
from dpsql.core.printing.shapes.choose import statements as chosen
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
]
WRITTEN_ONCE = [
    "SELECT COUNT(*) FILTER (WHERE x + 1 > 3) FROM log",
    "SELECT COUNT(DISTINCT x + 1) FROM log",
    "SELECT COUNT(x % 7) FROM log",
    "SELECT MONTH(d) AS m, COUNT(*) FROM log GROUP BY m",
    "SELECT COUNT(*) FILTER (WHERE x % 3 = 0) FROM ids",
]


def of_dialect(sql: str, dialect: Dialect) -> list[str]:
    """The statements of a query in an engine's SQL; the plan knows none."""
    releases = [t for t in planned(sql, POLICY).tree.walk() if isinstance(t.node, Release)]
    return [s.salted(7) for r in releases for s in chosen(r, dialect, dialect.identifier, ByIdentity())]
