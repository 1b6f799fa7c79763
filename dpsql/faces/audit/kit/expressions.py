"""Odd values in every place of an expression: no row may make a statement fail, or count for more than is stated.

Run: `python expressions.py`; 1 if one does.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from dpsql.core.privacy_loss import exact
from dpsql.core.release.noisy import exact_totals
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import EngineError, Rejected
from dpsql.faces.audit.exact import change
from dpsql.faces.audit.world import World
from dpsql.planner.compile import compile_query
from dpsql.planner.plan import Plan
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.policy.load import parse_policy
from dpsql.policy.policy import Policy
from dpsql.service.planning.public_facts import FactStore

POLICY = """\
version: 1
name: odd
tables:
  odd:
    unit: {column: id}
    max_rows_per_unit: {rows: 1, nobody_has_more: true}
    columns:
      id: {type: bigint}
      i: {type: bigint, bounds: [0, 10]}
      d: {type: double, bounds: [0, 10]}
      t: {type: varchar}
      day: {type: date}
      w: {type: "decimal(38,0)", bounds: [0, 9]}
budgets: {total: {epsilon: 100000}}
"""
INTEGERS = ("NULL", "0", "1", "-1", "10", "11", "9223372036854775807", "-9223372036854775808")
DOUBLES = ("NULL", "0.0", "'-0.0'", "1e308", "-1e308", "5e-324", "1e19", "'nan'", "'inf'", "'-inf'")
TEXTS = ("NULL", "''", "'x'", "'1'", "'9223372036854775808'", "'2024-02-30'", "'" + "a" * 300 + "'")
DAYS = ("NULL", "'2024-02-29'", "'0001-01-01'", "'9999-12-31'", "'5877642-06-25 (BC)'", "'5881580-07-10'", "'infinity'")
WIDE = ("NULL", "9" * 38, "-" + "9" * 38)
EXPRESSIONS = (
    "i", "d",
    "CLIP(CLIP(w, 0, 9), 0.5, 1.5)", "EXTRACT(year FROM DATE_TRUNC('month', day))", "w + w", "w * w", "ROUND(d, 2)",
    "EXTRACT(year FROM MAKE_DATE(i, 1, 1))", "EXTRACT(year FROM day + i)", "i * i * i * i * i", "CLIP(i, 0, 9) + 1",
    "i + i", "i * i", "i - 1", "-i", "ABS(i)", "i / (i - 1)", "i % (i - 10)", "i // i",
    "CASE WHEN i > 5 THEN i ELSE -i END", "COALESCE(i, 10)", "NULLIF(i, 10)", "GREATEST(i, 3)", "SIGN(i)",
    "d * d", "d + 1e19 - 1e19", "1 / d", "d / (d - 10)", "LN(d)", "SQRT(d)", "EXP(d)", "POWER(d, 3)",
    "ROUND(d)", "FLOOR(d)", "CAST(d AS BIGINT)", "TRY_CAST(d AS INTEGER)", "COALESCE(d, i)", "SIGN(d)",
    "CAST(t AS BIGINT)", "TRY_CAST(t AS BIGINT)", "LENGTH(t)", "LENGTH(UPPER(t))", "LENGTH(SUBSTR(t, i))",
    "CAST(t AS DATE) - DATE '2020-01-01'", "EXTRACT(year FROM day)", "day - DATE '2020-01-01'",
    "EXTRACT(day FROM day + INTERVAL '1' month)",
)  # fmt: skip
FORMS = ("SELECT SUM(CLIP({}, 0, 10)) AS s FROM odd", "SELECT COUNT(*) AS n FROM odd WHERE {} > 3")


def told(plan: Plan, world: World, where: str) -> Iterator[str]:
    """What one odd row can do to a plan."""
    world.show({"odd": ()})
    empty = [exact_totals(planned, world, 1) for planned in plan.releases]
    for row in _rows():
        world.show({"odd": (("1", *row),)})
        try:
            found = [exact_totals(planned, world, 1) for planned in plan.releases]
        except EngineError:
            yield f"{where}: the row ({', '.join(row)}) makes the statement fail"
            continue
        for planned, a, b in zip(plan.releases, found, empty, strict=True):
            for at, m in enumerate(planned.measured.measurements):
                moved = change(a, b, planned.measured.node.components, at)
                if moved.l1 > m.sensitivity.l1 or moved.linf > m.sensitivity.linf:
                    yield f"{where}: the row ({', '.join(row)}) counts for {moved.l1}, stated is {m.sensitivity.l1}"


def _rows() -> Iterator[tuple[str, ...]]:
    usual = ("1", "1.0", "'x'", "'2024-01-01'", "1")
    for at, values in enumerate((INTEGERS, DOUBLES, TEXTS, DAYS, WIDE)):
        for value in values:
            yield (*usual[:at], value, *usual[at + 1 :])


def found_in(policy: Policy, sql: str) -> Iterator[str]:
    """What odd rows do to a query; nothing of one that is refused."""
    world = World(policy, None)
    try:
        settings = QuerySettings(epsilon=exact(1))
        source = Source(sql, "expressions")
        plan = FactStore(world, dict).compile(
            lambda public: compile_query(source, policy, public, settings, (), world.table_sql, world.dialect)
        )
        yield from told(plan, world, sql)
    except Rejected:
        return
    finally:
        world.close()


def main() -> int:
    """Prints what was found."""
    policy = parse_policy(POLICY, "odd.yaml")
    for expression in EXPRESSIONS:
        for form in FORMS:
            for line in found_in(policy, form.format(expression)):
                print(f"found: {line}", flush=True)
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
