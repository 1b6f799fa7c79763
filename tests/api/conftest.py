"""A connection over frames; its ledger is in memory."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow
import pytest

import dpsql
from dpsql.core.ledger.memory import MemoryLedger

POLICY: dict[str, Any] = {
    "version": 1,
    "name": "club",
    "units": {"member": {}},
    "tables": {
        "members": {
            "unit": {"column": "id"},
            "primary_key": ["id"],
            "columns": {
                "id": {"type": "bigint", "nullable": False},
                "city": {"type": "varchar", "domain": ["Bonn", "Lyon", "Oslo"], "nullable": False},
                "age": {"type": "integer", "bounds": [0, 100], "nullable": False},
                "fee": {"type": "decimal(8,2)", "bounds": [0, 500]},
                "joined": {"type": "date", "bounds": [dt.date(2024, 1, 1), dt.date(2024, 12, 31)], "nullable": False},
                "note": {"type": "varchar"},
            },
        },
        "cities": {
            "public": True,
            "primary_key": ["city"],
            "columns": {
                "city": {"type": "varchar", "nullable": False},
                "country": {"type": "varchar"},
                "founded": {"type": "date"},
                "counted": {"type": "timestamp"},
                "harbour": {"type": "boolean"},
                "share": {"type": "decimal(5,2)"},
                "height": {"type": "double"},
                "streets": {"type": "integer"},
            },
        },
    },
    "budgets": {"total": {"epsilon": 100_000, "delta": 1e-3}},
}


def members(count: int = 3000) -> pyarrow.Table:
    return pyarrow.table(
        {
            "id": pyarrow.array(range(count), pyarrow.int64()),
            "city": [("Bonn", "Lyon", "Oslo")[i % 2] for i in range(count)],
            "age": pyarrow.array([i % 80 for i in range(count)], pyarrow.int32()),
            "fee": pyarrow.array([i % 400 for i in range(count)], pyarrow.decimal128(8, 2)),
            "joined": [dt.date(2024, 1 + i % 12, 1) for i in range(count)],
            "note": [f"n{i % 3}" for i in range(count)],
        }
    )


def cities() -> pyarrow.Table:
    return pyarrow.table(
        {
            "city": ["Bonn", "Lyon", "Oslo"],
            "country": ["Germany", "France", None],
            "founded": [dt.date(1, 1, 1), dt.date(9999, 12, 31), None],
            "counted": [dt.datetime(2024, 2, 29, 23, 59, 59, 999999), dt.datetime(1900, 1, 1), None],
            "harbour": [True, False, None],
            "share": pyarrow.array([0, 99, None], pyarrow.decimal128(5, 2)),
            "height": [1.5, -0.25, None],
            "streets": pyarrow.array([1, 2, None], pyarrow.int32()),
        }
    )


Opener = Callable[..., dpsql.Connection]


@pytest.fixture(scope="session")
def opened() -> Opener:
    """Opens a connection of its own, with keywords of `dpsql.connect`."""

    def open_(**keywords: Any) -> dpsql.Connection:
        frames = {"members": members(), "cities": cities()}
        policy = dpsql.Policy.from_dict(keywords.pop("policy", POLICY))
        return dpsql.connect(policy, frames=frames, ledger=MemoryLedger("club"), **keywords)

    return open_


@pytest.fixture(scope="module")
def con(opened: Opener) -> Iterator[dpsql.Connection]:
    """A connection whose queries cost ε = 1."""
    with opened(epsilon=1) as connection:
        yield connection
