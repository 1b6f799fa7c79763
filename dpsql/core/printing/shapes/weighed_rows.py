"""Weights of rows under limits, for what is chosen: of each row r, ⌊F·C / max(rows of the id, C)⌋, or
⌊F·M·G / (max(n, M)·max(K, G))⌋, where n is the number of rows of the id in the group, and K that of its groups.

*Claim.* The rows of a group weigh together at most what they do as a COUNT, wherever their values lie. *Why.* n and K
are of all rows, whatever a filter or a NULL leaves of them, and of the very rows that are weighed: the local block is
read once. In windows they stand beside each row. An engine that keeps the rows of a WITH counts those that it keeps,
joins the weights of the few ids above a limit to them, and gives F to the others. *When it would be false.* Rows that
are computed for the weights, and again to be weighed: a key may have another value there, and its rows a weight that
does not count them. *Tested by* tests/core/printing/test_read_once.py,
tests/deep/core/analysis/test_whole_statements.py, tests/engines_elsewhere/postgres/test_waist.py,
tests/engines_elsewhere/spark/test_waist.py.

    WITH r AS MATERIALIZED (SELECT … AS k0, … AS y, t1.id AS u FROM …),                 -- DuckDB
    p AS (SELECT u, k0, COUNT(*) AS n FROM r GROUP BY u, k0),
    w AS (SELECT u, k0, … AS ww FROM p WHERE n > M)
    SELECT r.k0, r.y AS c, SUM(COALESCE(w.ww, F)) AS m FROM r LEFT JOIN w ON … WHERE r.y IS NOT NULL GROUP BY 1, 2

    WITH r AS (SELECT … AS k0, … AS y, t1.id AS u FROM …),                              -- PostgreSQL, Spark
    w AS (SELECT *, COUNT(*) OVER (PARTITION BY u, k0) AS n FROM r)
    SELECT r.k0, r.y AS c, SUM(…) AS m FROM (SELECT *, … FROM w) AS r WHERE r.y IS NOT NULL GROUP BY 1, 2
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import prod

from dpsql.core.ir.components import Component
from dpsql.core.ir.nodes import BoundContributions
from dpsql.core.ir.types import BIGINT
from dpsql.core.printing.dialect import Dialect, Typed
from dpsql.core.printing.forms.kept_groups import kept_groups, rows_of_kept_groups
from dpsql.core.printing.forms.weights import divisors, scaled


def weighed(c: Component, d: Dialect, b: BoundContributions, group: Sequence[Typed], rows: str) -> tuple[str, str, str]:
    """A WITH; rows r with their keys, value and weight; the weight. group: the id, then the keys. rows: the SELECT."""
    keys = [sql for sql, _ in group[1:]]
    most = b.rows if b.per_group is None else b.per_group
    assert most is not None
    floors = {"nn" if b.rows is not None and keys else "n": most}
    if b.rows is None and keys and not b.few_groups and not b.truncate_groups:
        assert b.groups is not None
        floors["kk"] = b.groups
    weight = scaled(d, "1", c.weight * prod(floors.values()), 1, floors)
    if d.weighs_in_windows:
        steps, source = _beside(d, b, group, rows, floors)
        return with_steps(steps), f"(SELECT *, {', '.join(divisors(floors))} FROM {source}) AS r", weight
    steps, source = _counted(d, b, group, rows, floors)
    full = 0 if b.truncate_groups and keys else c.weight
    if full:
        source += f" WHERE {' OR '.join(f'{counter} > {floor}' for counter, floor in floors.items())}"
    shared = f"(SELECT *, {', '.join(divisors(floors))} FROM {source}) AS s"
    steps.append(f"w AS (SELECT {', '.join(['u', *keys])}, {weight} AS ww FROM {shared})")
    same = " AND ".join(["r.u = w.u", *(f"r.{key} IS NOT DISTINCT FROM w.{key}" for key in keys)])
    if not full:
        return with_steps(steps), f"r\nJOIN w ON {same}", "w.ww"
    return with_steps(steps), f"r\nLEFT JOIN w ON {same}", f"COALESCE(w.ww, {full})"


def _beside(
    d: Dialect, b: BoundContributions, group: Sequence[Typed], rows: str, counters: Collection[str]
) -> tuple[list[str], str]:
    """Steps, and the last one's name: rows with the counters beside each."""
    keys, steps, source = [sql for sql, _ in group[1:]], [f"r AS ({rows})"], "r"
    if b.truncate_groups and keys:
        steps.append(f"f AS ({rows_of_kept_groups(d, b, group, source, 'y')})")
        source = "f"
    if "kk" in counters:
        places = f"DENSE_RANK() OVER (PARTITION BY u ORDER BY {', '.join(keys)})"
        steps.append(f"g AS (SELECT *, {places} AS place FROM {source})")
        source = "g"
    counted = {
        "n": f"COUNT(*) OVER (PARTITION BY {', '.join(['u', *keys])})",
        "nn": "COUNT(*) OVER (PARTITION BY u)",
        "kk": d.cast("MAX(place) OVER (PARTITION BY u)", BIGINT),
    }
    steps.append(f"w AS (SELECT *, {', '.join(f'{counted[name]} AS {name}' for name in counters)} FROM {source})")
    return steps, "w"


def _counted(
    d: Dialect, b: BoundContributions, group: Sequence[Typed], rows: str, counters: Collection[str]
) -> tuple[list[str], str]:
    """Steps, and a source with the counters of each group of an id."""
    listed, source = ", ".join(sql for sql, _ in group), "p"
    steps = [f"r AS MATERIALIZED ({rows})", f"p AS (SELECT {listed}, COUNT(*) AS n FROM r GROUP BY {listed})"]
    if b.truncate_groups and len(group) > 1:
        steps.append(f"f AS ({kept_groups(d, b, group, source)})")
        source = "f"
    for name, sql in (("nn", d.cast(d.total("n", BIGINT), BIGINT)), ("kk", "COUNT(*)")):
        if name in counters:
            steps.append(f"g AS (SELECT u, {sql} AS {name} FROM {source} GROUP BY u)")
            source += " JOIN g USING (u)"
    return steps, source


def with_steps(steps: Sequence[str]) -> str:
    """WITH, and these."""
    listed = ",\n".join(steps)
    return f"WITH {listed}\n"
