"""Small tables, and all that is measured of promises and of public tables, on engines that are compared with DuckDB."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

from dpsql.core.engine import Engine
from dpsql.core.ir.types import BIGINT, DOUBLE, VARCHAR, decimal
from dpsql.engines import promises, public_facts

ROWS = """
CREATE TABLE children (p bigint, q bigint, v double precision, t text, d numeric(9,2));
INSERT INTO children VALUES (1, 1, 0.5, 'a', 1.50), (1, 1, 'nan', 'A', 2), (1, 2, 'inf', 'a ', NULL),
  (2, 2, -0.0, 'é', 1), (NULL, 2, 0.0, '', 0), (3, NULL, NULL, NULL, -3),
  (9, 9, -7.25, 'z', 99.99), (2, 2, 1e300, 'it''s', 1.5);
CREATE TABLE parents (x bigint, y bigint, up bigint);
INSERT INTO parents VALUES (1, 1, 7), (2, 2, 8), (2, 2, 8), (1, 2, NULL);
CREATE TABLE grands (g bigint, id text); INSERT INTO grands VALUES (7, 'u'), (8, 'v'), (8, 'u'), (5, NULL);
CREATE TABLE lists (l integer[]); INSERT INTO lists VALUES (ARRAY[1, 2, 3]), (ARRAY[NULL, 1]), (NULL), ('{}');
CREATE TABLE nothing (a integer);
"""
TABLES = ("children", "parents", "grands", "lists", "nothing")
FIRST: promises.Step = (("p", "q"), "parents", ("x", "y"))
SECOND: promises.Step = (("up",), "grands", ("g",))
PATH = (FIRST, SECOND)

QUESTIONS: dict[str, Callable[[Engine], Any]] = {
    **{f"nulls of {c}": partial(promises.nulls, table="children", column=c) for c in "pqvtd"},
    **{f"present {c}": partial(promises.present, table="children", column=c) for c in "pqvtd"},
    **{f"longer than {n}": partial(promises.longer_lists, table="lists", column="l", most=n) for n in range(4)},
    "dangling": partial(promises.dangling, table="children", step=FIRST),
    "dangling above": partial(promises.dangling, table="parents", step=SECOND),
    "without id": partial(promises.without_id, table="children", path=PATH, id_column="id"),
    "without own id": partial(promises.without_id, table="children", path=(), id_column="t"),
    "rows per id": partial(promises.rows_per_id, table="children", path=PATH, id_column="id"),
    "rows of an own id": partial(promises.rows_per_id, table="children", path=(), id_column="p"),
    "no rows of an id": partial(promises.rows_per_id, table="nothing", path=(), id_column="a"),
    **{f"ids above {n}": partial(promises.ids, table="children", path=PATH, id_column="id", above=n) for n in range(4)},
    **{f"rows {n}": partial(promises.owned_rows, table="children", path=(), id_column="p", above=n) for n in range(3)},
    "outside of doubles": partial(
        promises.outside_bounds, table="children", column="v", ends=((0.0, DOUBLE), (1.0, DOUBLE)), double=True
    ),
    "outside of decimals": partial(
        promises.outside_bounds, table="children", column="d", double=False,
        ends=((Decimal("1.50"), decimal(9, 2)), None),
    ),
    **{
        f"outside of a list, {null}": partial(
            promises.outside_list, table="children", column="t", literals=(("a", VARCHAR), ("it's", VARCHAR)), null=null
        )
        for null in (False, True)
    },
    "outside of numbers": partial(
        promises.outside_list, table="children", column="p", literals=((1, BIGINT), (9, BIGINT)), null=True
    ),
    "outside of another column": partial(
        promises.outside_column, table="children", column="p", other=("parents", "x"), null=False
    ),
    **{f"rows of {t}": partial(public_facts.row_count, table=t) for t in TABLES},
    **{f"most {c}": partial(public_facts.frequency, table="children", columns=c) for c in ("p", "pq", "v", "t", "")},
    **{f"keys {c}": partial(public_facts.key_list, table="children", columns=c, cap=50) for c in ("p", "t", "d", "pq")},
    "too many keys": partial(public_facts.key_list, table="children", columns="t", cap=3),
}  # fmt: skip


def for_duckdb(script: str = ROWS) -> str:
    """The same tables, as DuckDB makes them."""
    return script.replace("ARRAY[", "[").replace("'{}'", "[]")
