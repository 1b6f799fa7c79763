"""The databases of the audit: neighbours that keep all promises, values that the engine takes, the same every time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest

from dpsql.core.ir.types import parse_type
from dpsql.core.policy.tables import Column
from dpsql.engines.duckdb.synthetic import SyntheticEngine
from dpsql.engines.literals import fresh
from dpsql.faces.audit.neighbouring_databases import CandidatePair
from dpsql.faces.audit.pair_search import PairSearch
from dpsql.faces.audit.plan_reading import reading
from dpsql.faces.audit.run_audit import keeps_promises
from dpsql.faces.audit.worst_values import pool
from tests.faces.audit.test_databases import searched

NAMES = (
    "direct, a promise",
    "path, joined",
    "rows joined to rows",
    "rows",
    "replaced ids, grouped",
    "public join, m = 4",
)
TYPES = (
    "tinyint", "integer", "bigint", "hugeint", "ubigint", "decimal(9,2)", "decimal(38,10)", "decimal(5,0)", "double",
    "float", "boolean", "varchar", "date", "timestamp", "timestamptz", "time", "uuid", "blob", "integer[]", "varchar[]",
)  # fmt: skip


def candidates(search: PairSearch) -> Iterator[CandidatePair]:
    """The starts, and what one choice otherwise makes of the first ones."""
    starts = list(search.starts())
    yield from starts
    for start in starts[:2]:
        for coordinate in search.coordinates(start):
            yield from search.alternatives(start, coordinate)


@pytest.mark.parametrize("name", NAMES)
def test_every_pair_is_of_neighbours_that_keep_all_promises(name: str) -> None:
    plan, declared, world, search = searched(name)
    reads, seen = reading(plan, declared), 0
    for at, candidate in enumerate(candidates(search)):
        made = search.maker.make(replace(candidate, crowd=3 if at % 5 == 0 else 0))
        for table in made.a:
            gone = Counter(made.a[table]) - Counter(made.b[table])
            come = Counter(made.b[table]) - Counter(made.a[table])
            assert gone <= Counter(made.mine.get(table, ())) and come <= Counter(made.instead.get(table, ()))
            if declared.tables[table].by_rows:
                assert gone.total() <= 3 and come.total() <= 3
            if declared.tables[table].unit != search.unit:
                assert not gone and not come
        if at % 7 == 0 and (pair := search.look(candidate)) is not None:
            assert keeps_promises(declared, reads, world, pair)
            seen += 1
    assert seen > 3
    world.close()


def test_the_search_is_the_same_every_time() -> None:
    found = []
    for _ in range(2):
        *_, world, search = searched("rows")
        search.run()
        found.append((search.looked, {t: (score, pair.databases) for t, (score, pair) in search.best.items()}))
        world.close()
    assert found[0] == found[1]


@pytest.mark.parametrize("name", TYPES)
def test_every_type_has_values_that_the_engine_takes(name: str) -> None:
    type_ = parse_type(name)
    assert type_ is not None
    plain = Column("c", name, type_, max_length=2)
    values = [*pool(plain, (), (3, "a%", None)), *(fresh(n, type_) for n in (0, 1, 77, 5000))]
    engine = SyntheticEngine()
    engine.create("t", [("c", type_.name)])
    engine.fill("t", [(v,) for v in values])
    (kept,) = engine.fetch(f"SELECT CAST(c AS VARCHAR) FROM {engine.table_sql('t')}").columns
    assert len(kept) == len(values) and None in kept
    engine.close()
