"""Truncation is a function of an id's own rows"""

from __future__ import annotations

from collections.abc import Callable

from dpsql.api.connection import Connection
from dpsql.core.ir.nodes import BoundContributions
from dpsql.core.release.drawing import EngineAsk
from dpsql.core.release.noisy import _fetch
from tests.support.checklist_clinic import POLICY, Clinic


def _exact(con: Connection, sql: str, salt: int) -> dict[tuple[object, ...], list[int]]:
    plan = con.sql(sql).plan(epsilon=1, delta=1e-3)
    assert any(isinstance(r.measured.node.input, BoundContributions) for r in plan.releases)
    return _fetch(plan.releases[0], EngineAsk(con.service.engine, salt)).rows()


TRUNCATED = POLICY.replace(
    "max_rows_per_unit: 3\n    columns:\n      pid: {type: bigint}",
    "max_groups_per_unit: 2\n    max_rows_per_group: 2\n"
    "    columns:\n      kind: {type: varchar}\n      pid: {type: bigint}",
)


def test_item_30_truncation_is_a_function_of_the_ids_own_rows(make: Callable[..., Clinic]) -> None:
    """Insertion order and other ids' rows change nothing; another salt chooses other groups."""
    own = [(1, f"k{i % 7}", i) for i in range(40)]
    others = [(2 + i % 5, f"k{i % 9}", i) for i in range(90)]
    kept = []
    for rows in (own, own[::-1], own + others, others[::-1] + own):
        values = ", ".join(f"({p}, {a}, '{k}')" for p, k, a in rows)
        clinic = make(
            "ALTER TABLE visits ADD COLUMN kind VARCHAR",
            "DELETE FROM visits",
            f"INSERT INTO visits VALUES {values}",
            policy=TRUNCATED,
        )
        with clinic.connect() as con:
            sql = "SELECT kind, COUNT(*) FROM visits WHERE pid = 1 GROUP BY kind"
            kept.append([_exact(con, sql, salt) for salt in range(6)])
    assert kept[0] == kept[1] == kept[2] == kept[3]
    assert len({tuple(sorted(str(k) for k in chosen)) for chosen in kept[0]}) > 1
    assert all(len(chosen) == 2 for chosen in kept[0])
