"""Public rows that rows of an id keep, counted: the number that SQL means, and no id moves it by more than is claimed.

Every set of at most three rows of one id beside others', among them rows with NULL and with keys that are nowhere.
"""

from __future__ import annotations

from itertools import combinations_with_replacement, product

import pytest

from dpsql.planner.rewrites.joins import count_partners
from dpsql.service.planning.public_facts import FactStore
from tests.support.neighbour_oracle import change, exact, plan_of, violations
from tests.support.random_databases import Column, Row, Store, Table, World, world_of

KINDS = tuple(product(("1", "2", "3", "9", "NULL"), ("0", "5")))
OTHERS: tuple[Row, ...] = (("2", "1", "5"), ("3", "1", "0"), ("3", "2", "0"), ("NULL", "3", "5"))
CODES: tuple[Row, ...] = (("1", "'a'", "1"), ("2", "'a'", "7"), ("3", "'b'", "1"), ("4", "'b'", "0"))
QUERIES = (
    "SELECT COUNT(*) AS n FROM codes c WHERE EXISTS (SELECT 1 FROM t WHERE t.code = c.code)",
    "SELECT COUNT(*) AS n FROM codes c WHERE EXISTS (SELECT 1 FROM t WHERE t.code = c.code AND t.x > c.w)",
    "SELECT g, COUNT(*) AS n FROM codes WHERE code IN (SELECT code FROM t WHERE x > 1) GROUP BY g",
    "SELECT COUNT(*) FILTER (WHERE w > 0) AS n, COUNT(DISTINCT g) AS m FROM codes SEMI JOIN t USING (code)",
)


def _world(most: int, limit: int, neighbours: str) -> World:
    held = [(), *(s for n in range(1, most + 1) for s in combinations_with_replacement(KINDS, n))][:180:3]
    every = (1 << len(held)) - 1
    rows = [(row, every) for row in OTHERS]
    rows += [(("1", code, x), 1 << i) for i, own in enumerate(held) for code, x in own]
    private = (Column("pid", "BIGINT", ()), Column("code", "BIGINT", ()), Column("x", "INTEGER", ()))
    public = (
        Column("code", "BIGINT", ()),
        Column("g", "VARCHAR", (), {"domain": ["a", "b"], "nullable": False}),
        Column("w", "INTEGER", ()),
    )
    unit = {"unit": {"column": "pid", "neighbours": neighbours}, "max_rows_per_unit": limit}
    tables = [
        Table("t", private, unit, tuple(rows)),
        Table("codes", public, {"public": True, "primary_key": ["code"]}, tuple((row, -1) for row in CODES)),
    ]
    return world_of(tables, len(held) - 1, f"{most}, {limit}, {neighbours}")


@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
@pytest.mark.parametrize("sql", QUERIES)
def test_no_id_moves_it_further(sql: str, neighbours: str) -> None:
    world, store, moved = _world(3, 2, neighbours), Store(), 0
    store.load(world)
    (planned,) = plan_of(store, FactStore(store), world, sql).releases
    vectors = []
    for db in range(world.neighbours + 1):
        store.show(db)
        vectors.append(exact(planned, store))
    store.close()
    for i, one in enumerate(vectors):
        for other in vectors[: i if neighbours == "replace_one" else 1]:
            assert not list(violations(planned, one, other)), (one, other)
            moved = max(moved, change(one, other, 0).l1)
    assert 0 < moved <= planned.measured.measurements[0].sensitivity.l1


def _compared(sql: str) -> int:
    """Numbers that are what DuckDB says to the same text, where no limit takes anything away."""
    world, store, compared = _world(2, 9, "add_remove"), Store(), 0
    store.load(world)
    (planned,) = plan_of(store, FactStore(store), world, sql).releases
    keyed = sql.startswith("SELECT g")
    for db in range(world.neighbours + 1):
        store.show(db)
        held = store.table_sql("t").replace("$db", str(db))
        mine = f"WITH t AS (SELECT * FROM {held} WHERE pid IS NOT NULL) {sql}"
        truth = store.connection.execute(mine).fetchall()
        wanted = {row[:1]: list(row[1:]) for row in truth} if keyed else {(): list(truth[0])}
        found = {key: values for key, values in exact(planned, store).items() if any(values) or not keyed}
        assert found == {key: values for key, values in wanted.items() if any(values) or not keyed}, (mine, found)
        compared += len(wanted)
    store.close()
    return compared


@pytest.mark.parametrize("sql", QUERIES)
def test_it_is_what_sql_means(sql: str) -> None:
    assert _compared(sql) > 20


def test_a_column_that_is_no_key_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def another(join: object, left: object) -> object:
        return next(c for c in count_partners.output_columns(join.left) if c.name == "g")  # type: ignore[attr-defined]

    monkeypatch.setattr(count_partners, "_key", another)
    with pytest.raises(AssertionError):
        _compared(QUERIES[0])
