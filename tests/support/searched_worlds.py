"""Policies that leave limits and bounds to searches, and what searches can find."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from dpsql.planner.searches.limits_to_search import Rule, SearchedLimit
from tests.support.random_databases import Table, World, world_of


def found_limit(rng: random.Random, searched: SearchedLimit) -> int | tuple[int, int]:
    """One of the limits that a search can find."""
    limit = searched.limit
    if limit.rule.of_values:
        low, high = rng.choice(((-(2**62), 2**62), (-4, 8), (0, 1), (1, 4), (-8, -2)))
        least, most = limit.within
        low = low if least is None else max(low, least)
        high = high if most is None else min(high, most)
        return (low, high) if low < high else (low, low + 1)
    k = rng.choice((0, 1, 2, 5, 12, 40)) if limit.rule is Rule.SUM else rng.choice((0, 1, 2, 4))
    found = 1 << min(k, searched.largest)
    return found if limit.at_most is None else min(found, limit.at_most)


def opened(rng: random.Random, world: World) -> World:
    """The same data under a policy that leaves most limits and bounds to searches."""
    tables = [table if table.public else _opened(rng, table) for table in world.tables]
    return world_of(tables, world.neighbours, f"{world.description}, open", world.policy.privacy.accountant)


def _opened(rng: random.Random, table: Table) -> Table:
    columns = []
    for column in table.columns:
        own: dict[str, Any] = dict(column.policy)
        bounds = own.get("bounds")
        if bounds is not None and column.type in ("INTEGER", "BIGINT", "DOUBLE") and rng.random() < 0.6:
            own["bounds"] = rng.choice(("search", {"search": True, "within": bounds}, None))
            if own["bounds"] is None:
                del own["bounds"]
        columns.append(replace(column, policy=own))
    entry: dict[str, Any] = dict(table.policy)
    if "column" in entry.get("unit", {}) and not isinstance(entry.get("max_rows_per_unit"), dict):
        for limit in ("max_rows_per_unit", "max_groups_per_unit", "max_rows_per_group"):
            if rng.random() < 0.8:
                entry.pop(limit, None)
    return replace(table, columns=tuple(columns), policy=entry)


def unasked(rng: random.Random, world: World) -> World:
    """The same data under a policy that says `search: auto`, with limits that are caps of what is found."""
    tables = [table if table.public else _capped(rng, table) for table in world.tables]
    made = world_of(tables, world.neighbours, f"{world.description}, unasked", world.policy.privacy.accountant)
    return replace(made, policy=replace(made.policy, search="auto"))


def _capped(rng: random.Random, table: Table) -> Table:
    entry: dict[str, Any] = dict(table.policy)
    if "column" in entry.get("unit", {}) and not isinstance(entry.get("max_rows_per_unit"), dict):
        for limit in ("max_rows_per_unit", "max_groups_per_unit", "max_rows_per_group"):
            entry.pop(limit, None)
        entry |= rng.choice(
            (
                {"max_rows_per_group": rng.randint(2, 5), "max_groups_per_unit": rng.randint(6, 20)},
                {"max_rows_per_group": 3, "max_groups_per_unit": 6, "max_rows_per_unit": rng.randint(15, 40)},
                {"max_rows_per_unit": rng.randint(16, 40)},
                {},
            )
        )
    return replace(table, policy=entry)
