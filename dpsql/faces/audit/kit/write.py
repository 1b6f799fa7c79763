"""The kit's folder: the corpus as plain files, the harnesses, the faults, and what to do with them."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

from dpsql.core.ir.types import INTEGER
from dpsql.core.measures.all_measures import rule
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import reject
from dpsql.faces.audit.exact import NeighbourPair, change, share
from dpsql.faces.audit.kit.corpus import POLICY, QUERIES, policy
from dpsql.faces.audit.kit.faults import FAULTS
from dpsql.faces.audit.neighbouring_databases import DatabaseMaker, Tables
from dpsql.faces.audit.pair_search import PairSearch
from dpsql.faces.audit.plan_reading import reading
from dpsql.faces.audit.run_audit import keeps_promises
from dpsql.faces.audit.world import World
from dpsql.planner.compile import compile_query
from dpsql.planner.explain.components import component_name
from dpsql.planner.plan import Plan
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.service.planning.public_facts import FactStore

HARNESSES = ("neighbours", "replay", "expressions", "streams")
MOST_PAIRS = 120


def write(folder: Path) -> Path:
    """Write the kit into a new folder. Raises Rejected DP903."""
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise reject("DP903", f"{str(folder)!r} cannot be made: {error.strerror}", help=["name a new folder"]) from None
    listed = [{key: getattr(f, key) for key in ("name", "path", "old", "new", "breaks", "harness")} for f in FAULTS]
    (folder / "faults.json").write_text(json.dumps(listed, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    here = Path(__file__).parent
    shutil.copyfile(here / "README.md", folder / "README.md")
    shutil.copyfile(here / "find_faults.py", folder / "find.py")
    (folder / "harnesses").mkdir()
    for name in HARNESSES:
        shutil.copyfile(here / f"{name}.py", folder / "harnesses" / f"{name}.py")
    for name in QUERIES:
        write_case(folder / "conformance" / name, name)
    return folder


def write_case(folder: Path, name: str) -> None:
    """One case: the pair that moves the whole query most, of those that keep what the policy promises."""
    declared = policy()
    with closing(World(declared, None)) as world:
        source, settings = Source(QUERIES[name], name), QuerySettings(epsilon=Fraction(1), delta=Fraction(1, 10**6))
        plan = FactStore(world, dict).compile(
            lambda public: compile_query(source, declared, public, settings, (), world.table_sql, world.dialect)
        )
        reads = reading(plan, declared)
        (unit,) = plan.cost
        search = PairSearch(plan, DatabaseMaker(declared, reads, world), unit, MOST_PAIRS)
        search.run()
        ordered = sorted((found for found in search.best.values()), key=lambda found: -found[0])
        pair = next(p for _, p in ordered if keeps_promises(declared, reads, world, p))
        folder.mkdir(parents=True)
        for side, shown in (("one", pair.databases.a), ("other", pair.databases.b)):
            (folder / f"{side}.sql").write_text("\n".join(_as_sql(world, shown)) + "\n", encoding="utf-8")
    (folder / "policy.yaml").write_text(POLICY, encoding="utf-8")
    (folder / "query.sql").write_text(QUERIES[name] + "\n", encoding="utf-8")
    largest = {"unit": unit, "neighbours": "add_remove", "numbers": [*_numbers(plan, pair, unit)]}
    (folder / "largest.json").write_text(json.dumps(largest, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _as_sql(world: World, shown: Tables) -> Iterator[str]:
    for name, table in world.policy.tables.items():
        world.table_sql(name)
        columns = ", ".join(f'"{c.name}" {(c.sql_type or INTEGER).name}' for c in table.columns.values())
        yield f'CREATE TABLE "{name}" ({columns});'
        names = ", ".join(f'"{c}"' for c in table.columns)
        rows = world.public_table(name) if table.public else shown.get(name, ())
        yield from (f'INSERT INTO "{name}" ({names}) VALUES ({", ".join(row)});' for row in rows)


def _numbers(plan: Plan, pair: NeighbourPair, unit: str) -> Iterator[dict[str, Any]]:
    for at, planned in enumerate(plan.releases):
        components = planned.measured.node.components
        for i, m in enumerate(planned.measured.measurements):
            if m.known is not None or rule(components[i]).chosen:
                continue
            claim, moved = m.by_unit.get(unit, m.sensitivity), change(pair.a[at], pair.b[at], components, i)
            yield {
                "number": component_name(components[i], planned.measured),
                "grid": str(components[i].worth / components[i].weight),
                "moved": _norms(moved.l0, moved.l1, moved.l2_squared, moved.linf),
                "at_most": _norms(claim.l0, claim.l1, claim.l2_squared, claim.linf),
                "reached": round(share(m, unit, moved), 4),
            }


def _norms(l0: Fraction | int, l1: Fraction | int, l2_squared: Fraction | int, linf: Fraction | int) -> dict[str, Any]:
    norms = {"l0": l0, "l1": l1, "l2": math.sqrt(l2_squared), "linf": linf}
    return {key: int(value) if value == int(value) else float(value) for key, value in norms.items()}
