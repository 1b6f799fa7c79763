"""Plans over a small policy whose public tables are Python lists, to look at the key lists that are chosen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from dpsql.core.ir.components import KeySource
from dpsql.core.ir.nodes import key_sources
from dpsql.core.ir.public_facts import FrequencyOf, KeysOf, PublicFacts, Request, RowsOf
from dpsql.diagnostics.diagnostic import Source
from dpsql.planner.compile import compile_query
from dpsql.planner.plan import Plan
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.policy.policy import Policy

NATIONS = (("ALGERIA", 0), ("CHINA", 2), ("FRANCE", 3), ("GERMANY", 3), ("INDIA", 2), ("JAPAN", 2), ("PERU", 1))
NATION_ROWS = tuple((number, name, region) for number, (name, region) in enumerate(NATIONS))
REGION_ROWS = ((0, "AFRICA"), (1, "AMERICA"), (2, "ASIA"), (3, "EUROPE"), (4, "MIDDLE EAST"))
SUPPLIER_ROWS = tuple((1_000 + i, i % 7, f"1{i % 4}-{i}") for i in range(40))
TABLES: dict[str, tuple[tuple[str, ...], tuple[tuple[Any, ...], ...]]] = {
    "nation": (("n_nationkey", "n_name", "n_regionkey"), NATION_ROWS),
    "region": (("r_regionkey", "r_name"), REGION_ROWS),
    "supplier": (("s_suppkey", "s_nationkey", "s_phone"), SUPPLIER_ROWS),
    "codes": (("code", "label", "rank"), (("a", "first", 1), ("b", "second", 2), ("c", None, 2), (None, "none", 9))),
}
LIMITS = {"max_rows_per_unit": 20, "max_groups_per_unit": 4, "max_rows_per_group": 5}
PRIVATE: dict[str, dict[str, Any]] = {
    "visits": {
        "unit": {"rows": 1},
        "columns": {
            "pid": {"type": "bigint"},
            "region": {"type": "varchar", "domain": ["n", "s", "e"], "nullable": False},
            "maybe": {"type": "varchar", "domain": {"values": ["x", "y"], "null": True}},
            "code": {"type": "varchar"},
            "listed": {"type": "varchar", "domain": {"table": "codes", "column": "code"}},
            "phone": {"type": "varchar"},
            "age": {"type": "integer", "bounds": [0, 9], "nullable": False},
            "wide": {"type": "bigint", "bounds": [0, 10**12], "nullable": False},
            "half": {"type": "bigint", "bounds": [1, None]},
            "num": {"type": "bigint"},
            "day": {"type": "date", "bounds": ["2024-01-01", "2024-12-31"], "nullable": False},
            "date": {"type": "date"},
            "at": {"type": "timestamp", "bounds": ["2024-01-01", "2024-12-31"], "nullable": False},
            "moment": {"type": "timestamp"},
            "flag": {"type": "boolean", "nullable": False},
            "fee": {"type": "decimal(9,2)"},
            "x": {"type": "double", "bounds": [0, 1]},
            "suppkey": {"type": "bigint", "nullable": False},
            "nation": {"type": "bigint", "nullable": False},
            "second": {"type": "bigint", "nullable": False},
        },
    },
    "people": {
        "unit": {"of": "person", "column": "pid"},
        **LIMITS,
        "columns": {
            "pid": {"type": "bigint", "nullable": False},
            "city": {"type": "varchar"},
            "nation": {"type": "bigint"},
            "age": {"type": "integer", "bounds": [0, 9]},
        },
    },
}
PUBLIC_COLUMNS: dict[str, dict[str, Any]] = {
    "nation": {"n_nationkey": {"type": "bigint"}, "n_name": {"type": "varchar"}, "n_regionkey": {"type": "bigint"}},
    "region": {"r_regionkey": {"type": "bigint"}, "r_name": {"type": "varchar"}},
    "supplier": {"s_suppkey": {"type": "bigint"}, "s_nationkey": {"type": "bigint"}, "s_phone": {"type": "varchar"}},
    "codes": {"code": {"type": "varchar"}, "label": {"type": "varchar"}, "rank": {"type": "integer"}},
}


def policy(max_keys: int = 1_000, accountant: str = "approx_dp", **defaults: Any) -> Policy:
    """Two private tables (rows, and rows of a person), and the public ones."""
    public = {name: {"public": True, "columns": columns} for name, columns in PUBLIC_COLUMNS.items()}
    return Policy.model_validate(
        {
            "version": 1,
            "name": "keys",
            "privacy": {"accountant": accountant},
            "units": {"person": {}},
            "tables": {**PRIVATE, **public},
            "defaults": {"max_keys": max_keys, **defaults},
            "budgets": {
                "total": {"rho" if accountant == "zcdp" else "epsilon": 10}
                | ({} if accountant == "pure_dp" else {"delta": 1e-6})
            },
        }
    )


def plan(sql: str, rules: Policy | None = None, tables: Mapping[str, Any] = TABLES) -> Plan:
    """The plan after reading what it asks of the public tables. Raises Rejected."""
    rules = rules or policy()
    numbers: dict[FrequencyOf | RowsOf, int] = {}
    keys: dict[KeysOf, Any] = {}
    while True:
        facts = PublicFacts(numbers, keys)
        delta = None if rules.privacy.accountant == "pure_dp" else Fraction(1, 10**6)
        settings = QuerySettings(Fraction(1), delta, anyway=True)
        try:
            found = compile_query(Source(sql), rules, facts, settings)
        except Exception:
            if not facts.missing:
                raise
        else:
            if not facts.missing:
                return found
        for request in facts.missing:
            answer = _answer(request, tables)
            if isinstance(request, KeysOf):
                keys[request] = answer
            else:
                numbers[request] = answer


def _answer(request: Request, tables: Mapping[str, Any]) -> Any:
    names, rows = tables[request.table]
    if isinstance(request, RowsOf):
        return len(rows)
    held = [tuple(row[names.index(c)] for c in request.columns) for row in rows]
    if isinstance(request, FrequencyOf):
        return max(Counter(row for row in held if None not in row).values(), default=0)
    found = sorted(set(held), key=lambda row: [(v is None, v if v is not None else 0) for v in row])
    return None if len(found) > request.limit else tuple(found)


def sources(sql: str, rules: Policy | None = None, tables: Mapping[str, Any] = TABLES) -> tuple[KeySource, ...] | None:
    """The key lists of the query's one release; None where its keys are private."""
    (release,) = plan(sql, rules, tables).releases
    return key_sources(release.measured.node)


def keys(sql: str, rules: Policy | None = None, tables: Mapping[str, Any] = TABLES) -> list[Any] | None:
    """The keys that are released, in order (a single column as plain values); None where they are private."""
    found = sources(sql, rules, tables)
    if found is None:
        return None
    width = sum(len(s.positions) for s in found)
    listed: list[tuple[Any, ...]] = [(None,) * width]
    for source in found:
        listed = [_with(row, source.positions, key) for row in listed for key in source.keys]
    return [row[0] for row in listed] if width == 1 else listed


def _with(row: Sequence[Any], positions: Sequence[int], key: Sequence[Any]) -> tuple[Any, ...]:
    new = list(row)
    for at, value in zip(positions, key, strict=True):
        new[at] = value
    return tuple(new)
