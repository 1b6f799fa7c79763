"""The hidden column of an id in one period: what it holds, what needs it, and which policies may say so."""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import replace
from itertools import product

import pytest

from dpsql.core.ir.nodes import Scan
from dpsql.core.policy.growing_units import why_not_by_period
from dpsql.core.policy.period_ids import in_words, whose
from dpsql.core.printing.computed import computed_columns, with_columns
from dpsql.diagnostics.errors import CannotOpen
from dpsql.planner.computed import understood
from dpsql.policy.load import parse_policy
from dpsql.policy.policy import Policy
from dpsql.spelling.duckdb_functions import DUCKDB
from tests.support.rider_town import BY_PERIOD, RIDERS, RiderTown, rider_policy

IDS: dict[str, tuple[object, ...]] = {
    "bigint": (1, 11, -1, 0, None, 20458, 2**62),
    "varchar": ("1", "11", "/1", "1/", "", " 1", "1 ", "a/b", "A/b", None, "é", "20458/1"),
    "uuid": ("00000000-0000-0000-0000-000000000001", "10000000-0000-0000-0000-000000000000", None),
}
DAYS = [dt.date(2026, 1, 1) + dt.timedelta(days=n) for n in (0, 1, 4, 9, 10, 31, 40, 365)]
DAYS += [dt.date(1970, 1, 2), dt.date(1970, 1, 12)]  # days 1 and 11, beside riders 1 and 11


@pytest.mark.parametrize(("type", "every"), [*product(IDS, ("day", "week", "month"))])
def test_rows_have_one_value_exactly_if_they_have_one_id_and_one_period(type: str, every: str) -> None:
    text = RIDERS.replace("2026-01-05", "2025-12-01")
    of = text.format(per=", per: period", every=every, limit=1, type=type, budgets=BY_PERIOD)
    policy = understood(parse_policy(of, "town.yaml"))
    grows = policy.tables["trips"].grows
    assert grows is not None
    town = RiderTown(policy)
    draw = random.Random(1)
    days = [*DAYS, None, *(dt.date(draw.randint(1, 9999), 1, draw.randint(1, 28)) for _ in range(5))]
    town.put(0, [(rider, day, 1) for rider in IDS[type] for day in days])
    source = with_columns("(SELECT * FROM trips)", computed_columns(policy, DUCKDB)["trips"])
    hidden = f'"rider of each {every}"'
    found = town.connection.execute(f"SELECT CAST(rider AS VARCHAR), day, {hidden} FROM {source} t").fetchall()
    by_value: dict[object, set[object]] = {}
    for rider, day, value in found:
        assert (value is None) == (rider is None or day is None)
        if value is not None:
            by_value.setdefault(value, set()).add((rider, grows.begins(day)))
    assert all(len(held) == 1 for held in by_value.values())  # one value, one id and period
    assert len(by_value) == len(set().union(*by_value.values()))  # and the other way round
    town.close()


def test_an_id_and_a_day_that_are_computed_themselves() -> None:
    policy = understood(parse_policy(
        "version: 1\nname: p\nbudgets: {each_period: {epsilon: 1}}\ntables:\n  t:\n"
        "    unit: {column: rider, per: period}\n    grows: {by: day, every: day, from: 2026-01-01}\n"
        "    columns: {n: {type: bigint}, at: {type: timestamp}, rider: {type: bigint, from: n % 7}, "
        "day: {type: date, from: cast(at AS date)}}\n", "p.yaml",
    ))  # fmt: skip
    hidden = policy.tables["t"].period_id
    assert hidden is not None and hidden.computed is not None and hidden.computed.expr is not None
    sql = computed_columns(policy, DUCKDB)["t"]
    assert sql.count("own.") > 4 and "rider of each day" in sql


def test_it_is_no_column_of_a_query_and_the_unit_of_its_table() -> None:
    policy = rider_policy()
    table = policy.tables["trips"]
    assert [c.name for c in table.all_columns][-1] == "rider of each day" not in table.columns
    assert table.id_column is table.columns["rider"]
    assert (whose(table), in_words("rider of each day"), in_words("rider")) == (
        "rider's day",
        "rider and its day",
        "rider",
    )
    assert set(policy.by_period) == {"rider_day"} and [t.name for t in policy.by_period["rider_day"]] == [
        "trips",
        "walks",
    ]


def test_the_id_follows_from_it_and_so_does_a_day_that_is_a_period() -> None:
    for every, expected in (("day", {"rider", "day"}), ("week", {"rider"})):
        town = RiderTown(rider_policy(every=every), dt.date(2026, 1, 31))
        plan = town.plan("SELECT COUNT(*) FROM trips")
        tagged = next(t for t in plan.tree.walk() if isinstance(t.node, Scan))
        assert isinstance(tagged.node, Scan)
        names = {c.uid: c.name for c in tagged.node.columns}
        assert {names[uid] for uid in tagged.fact.by_id} == {*expected, f"rider of each {every}"}
        town.close()


TABLE = """
  {name}:
    unit: {{of: u, column: rider{per}}}
    {grows}
    columns: {{rider: {{type: {type}}}, day: {{type: date}}, m: {{type: bigint}}}}
"""
GROWS = "grows: {by: day, every: day, from: 2026-01-01}"


def of(
    name: str = "trips", per: str = ", per: period", grows: str = GROWS, type: str = "bigint", more: str = ""
) -> str:
    return TABLE.format(name=name, per=per, grows=grows, type=type) + more


def policy(tables: str) -> Policy:
    return parse_policy(f"version: 1\nname: p\nbudgets: {{total: {{epsilon: 1}}}}\ntables:{tables}", "p.yaml")


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        (of(grows=""), "needs a table that grows"),
        (of() + of("walks", per="", grows=""), "which is an id in one period in `trips`"),
        (of() + of("walks", grows="grows: {by: day, every: week, from: 2026-01-05}"), "of the same unit, is day"),
        (of(type="double"), "is written in one way"),
        (of(type="decimal(9,2)"), "is written in one way"),
        (of(type="timestamp"), "is written in one way"),
        (of(per=", rows: 1, per: period").replace("column: rider, ", ""), "needs the id in a column"),
        (of() + of("walks", type="varchar"), "the same unit's id"),
        (of(grows=GROWS + "\n    max_frequency: [{columns: [m], rows: 2}]"), "move rows of other periods"),
        (of().replace("m: {", "rider of each day: {"), "makes a column"),
        (
            of(more="""
  rides:
    unit: {path: [{column: m, references: trips(m)}]}
    columns: {m: {type: bigint}}
""").replace("columns: {rider", "unique: [[m]]\n    columns: {rider"),
            "whose unit is an id in one period",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_an_id_in_one_period_is_refused_by_name(tables: str, said: str) -> None:
    with pytest.raises(CannotOpen, match=said) as refused:
        understood(policy(tables))
    assert all(d.help for d in refused.value.diagnostics)


def test_ids_that_are_replaced_have_one_account() -> None:
    tables = of(per=", per: period, neighbours: replace_one")
    with pytest.raises(CannotOpen, match="an id is replaced by another one, which may be of another period"):
        parse_policy(f"version: 1\nname: p\nbudgets: {{each_period: {{epsilon: 1}}}}\ntables:{tables}", "p.yaml")
    assert policy(tables).by_period == {}


def test_one_table_without_periods_is_enough_for_one_account() -> None:
    found = rider_policy()
    (unit,) = found.units.values()
    assert why_not_by_period(unit, found.tables) is None
    other = {**found.tables, "walks": replace(found.tables["walks"], per=None)}
    assert why_not_by_period(unit, other) == "its rows are those of an id, which is in many periods"
