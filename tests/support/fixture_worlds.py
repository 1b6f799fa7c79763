"""The policies of the fixtures with rows of few units, made up from them, and every unit gone once.

Rows are those of `dpsql.service.made_up`; some of their numbers are made hostile. A unit's rows are those of its number
in all tables of its unit; where units are replaced, a neighbour has another unit's rows in their place, and of tables
whose unit is rows, some rows.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any

import pytest

from dpsql.core.ir.types import INTEGER
from dpsql.core.policy.policy import IN_MEMORY, Policy
from dpsql.core.policy.units import RowUnit
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import CannotOpen, Rejected
from dpsql.planner.compile import compile_query
from dpsql.planner.computed import understood
from dpsql.policy.resolve.from_catalogue import complete
from dpsql.service.made_up import made_up_rows
from dpsql.service.made_up.repeatable_choices import Choosing
from dpsql.service.made_up.service import _nowhere, declared
from dpsql.service.planning.public_facts import FactStore
from tests.fixtures.cases import Case, files, plan_of
from tests.support.random_databases import NUMBERS, Column, Store, Table, World
from tests.support.whole_statements import Attacked, compared, reads_no_other, settings_in

UNITS, ROWS = 4, 8
"""Of each privacy unit, and of a table whose unit is rows."""


def fixture_world(of: Policy, seed: int) -> World:
    """The policy's tables. Raises CannotOpen: of a type that the policy does not say."""
    completed = replace(complete(of, declared(of)), name=of.name, ledger=IN_MEMORY, ledger_head=None)
    policy = understood(replace(completed, database=None, prepared_at=None, tables=_nowhere(completed)))
    rng = random.Random(f"{of.name} {seed}")
    maker = made_up_rows._Maker(policy)
    with pytest.MonkeyPatch.context() as m:
        m.setattr(made_up_rows, "UNITS", UNITS)
        m.setattr(made_up_rows, "ROWS", ROWS)
        m.setattr(made_up_rows, "PUBLIC", 6)
        m.setattr(made_up_rows, "Choosing", lambda text: Choosing(f"{seed} {text}"))
        for name in made_up_rows._ordered(policy):
            maker.make(policy.tables[name])
    units = sorted({t.protection.name for t in policy.tables.values() if t.protection is not None})
    # Of each unit: those of which one is gone; a further one, which comes where units are replaced.
    at = {(name, unit): 1 + i * (UNITS - 1) + unit - 1 for i, name in enumerate(units) for unit in range(1, UNITS)}
    neighbours = len(at)
    every = (1 << (neighbours + 1)) - 1
    tables = []
    for name, table in policy.tables.items():
        columns = [c for c in table.columns.values() if c.computed is None]
        hostile = [c.name for c in columns if c.name not in _promised(policy, name)]
        stored = []
        for number, (unit, values) in enumerate(maker.rows[name]):
            for column in hostile:
                type_ = (table.columns[column].sql_type or INTEGER).name
                if type_ in NUMBERS and rng.random() < 0.2:
                    values[column] = f"CAST({rng.choice(NUMBERS[type_])} AS {type_})"
            mask, own = every, table.protection
            if own is not None:
                replaced = own.neighbours == "replace_one"
                whose = unit
                if isinstance(own, RowUnit):
                    whose = 1 + number // own.rows if number < UNITS * own.rows else 0
                mine = sum(1 << at[own.name, u] for u in range(1, UNITS))
                if whose == UNITS:
                    mask = mine if replaced else every
                elif whose:
                    mask = every & ~(1 << at[own.name, whose])
            stored.append((tuple(values[c.name] for c in columns), mask))
        shown = tuple(Column(c.name, (c.sql_type or INTEGER).name, ()) for c in columns)
        tables.append(Table(name, shown, {"public": table.public}, tuple(stored)))
    return World(policy, tuple(tables), neighbours, f"{of.name} of fixtures, seed {seed}")


def _promised(policy: Policy, name: str) -> Collection[str]:
    """Columns of which the policy promises more than a type, or that lead to a unit."""
    table = policy.tables[name]
    found = {c for key in table.keys for c in key.columns} | {c for f in table.max_frequency for c in f.columns}
    found |= {c for key in table.foreign_keys for c in key.columns}
    found |= {r for t in policy.tables.values() for key in t.foreign_keys if key.table == name for r in key.references}
    own: Any = table.protection
    found |= {getattr(own, "column", None)} - {None}
    for hop in getattr(own, "path", ()):
        found |= set(hop.columns)
    return found


def fixture_cases(seed: int) -> Iterator[Case]:
    """Those that are planned, in an order of the seed's."""
    cases = [case for file in files() for case in file.cases]
    for case in random.Random(seed).sample(cases, len(cases)):
        try:
            plan_of(case)
        except Rejected:
            continue
        yield case


def attacked_fixtures(
    cases: Collection[Case], seed: int, policies: dict[str, Policy], forgiven: tuple[type[Exception], ...] = ()
) -> Attacked:
    """Each statement of the fixtures over the databases of its own policy, under limits of its own or random ones."""
    found, store = Attacked(forgiven=forgiven), Store()
    for name in sorted({case.settings["policy"] for case in cases}):
        try:
            world = fixture_world(policies[name], seed)
        except CannotOpen:
            found.refused["DP005"] += 1
            continue
        store.load(world)
        facts = FactStore(store)
        rng = random.Random(f"{name} {seed}")
        for case in cases:
            if case.settings["policy"] != name:
                continue
            settings = replace(settings_in(rng, world), dialect=case.settings.get("dialect", "duckdb"))
            try:
                plan = facts.compile(
                    lambda public, case=case, settings=settings, world=world: compile_query(  # type: ignore[misc]
                        Source(case.sql), world.policy, public, settings, case.parameters, store.table_sql
                    )
                )
            except Rejected as refusal:
                found.refused[refusal.diagnostics[0].code] += 1
                continue
            except forgiven as crash:
                found.refused[f"{type(crash).__name__} {crash}"[:60]] += 1
                continue
            found.statements += 1
            whose = f"{world.description}, {case.id}"
            for release in filter(reads_no_other, plan.releases):
                found.problems += [f"{whose}\n{p}" for p in compared(release, store, world.neighbours, found, whose)][
                    :1
                ]
    store.close()
    return found
