"""CLIP(x, AUTO) within what the policy says, over many policies"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import dpsql
from dpsql.core.ledger.memory import MemoryLedger
from tests.service.test_auto import EPSILON, FRAMES, POLICY, ROWS, WITHIN


@pytest.mark.parametrize("most", [None, 10, {"search": True, "at_most": 10}], ids=["none", "declared", "searched"])
@pytest.mark.parametrize(
    ("sql", "limits"),
    [
        ("AVG(amount)", [(-8, 32)]),
        ("VAR_POP(amount)", [(-8, 32)]),
        ("AVG(CLIP(amount, AUTO))", [(-8, 32)]),
        ("AVG(amount + n)", [(-8, 32)]),
        ("SUM(amount)", [128]),
        ("SUM(CLIP(amount, AUTO))", [128]),
        ("AVG(weight)", [(-1048576, 1048576)]),
        ("AVG(CLIP(amount, 0, 7))", []),
        ("AVG(known)", []),
    ],
)
def test_bounds_are_searched_within_what_the_policy_says(most: Any, sql: str, limits: list[Any]) -> None:
    """Inside the range, not only clipped to it; what the query bounds itself is not searched."""
    columns = {
        **POLICY["tables"]["orders"]["columns"],
        "amount": {"type": "integer", "bounds": WITHIN},
        "weight": {"type": "double", "bounds": {"search": True, "within": [-1, 1]}},
        "n": {"type": "integer", "bounds": [0, 1]},
    }
    table = {"columns": columns} | ({} if most is None else {"max_rows_per_unit": most})
    frames = {**FRAMES, "orders": FRAMES["orders"].append_column("n", pa.array([0] * ROWS, pa.int32()))}
    policy = {**POLICY, "tables": {**POLICY["tables"], "orders": {**POLICY["tables"]["orders"], **table}}}
    with dpsql.connect(dpsql.Policy.from_dict(policy), frames=frames, ledger=MemoryLedger("shop")) as con:
        found = con.execute(f"SELECT {sql} AS a FROM orders", epsilon=EPSILON, limits="search").plan.found
        rows = [f for f in found if f.octaves.what.startswith("COUNT")]
        assert [f.limit for f in found if f not in rows] == limits
        if most is not None and sql.startswith("SUM"):
            assert found[0].octaves.at_most == 10 * 10_000, "rows and the range together are the most"
