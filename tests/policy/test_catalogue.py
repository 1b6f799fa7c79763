"""Drafting from a catalogue and completing with one."""

from __future__ import annotations

import pytest

from dpsql.core.ir import types
from dpsql.core.policy.catalogue import Catalogue, CatalogueColumn, CatalogueKey, CatalogueTable
from dpsql.core.policy.tables import ForeignKey, Key, ValuesDomain
from dpsql.core.policy.units import IdUnit
from dpsql.diagnostics.errors import CannotOpen
from dpsql.policy.load import parse_policy
from dpsql.policy.resolve.from_catalogue import complete
from dpsql.policy.tools.draft import draft_policy
from dpsql.policy.tools.show import describe, show_policy
from tests.policy.policies import SAMPLES, good

PEOPLE = CatalogueTable(
    "people",
    (CatalogueColumn("id", "BIGINT", False), CatalogueColumn("age", "INTEGER"), CatalogueColumn("town", "VARCHAR")),
    primary_key=("id",),
)
VISITS = CatalogueTable(
    "visits",
    (
        CatalogueColumn("visit_id", "BIGINT", False),
        CatalogueColumn("person_id", "BIGINT"),
        CatalogueColumn("day", "DATE"),
        CatalogueColumn("cost", "DECIMAL(10,2)"),
        CatalogueColumn("kind", "ENUM('secret_label')"),
        CatalogueColumn("tags", "VARCHAR[]"),
    ),
    unique=(("visit_id",), ("kind",)),
    foreign_keys=(CatalogueKey(("person_id",), "people", ("id",)),),
)


def test_draft_loads_and_fails_closed() -> None:
    text = draft_policy(Catalogue((PEOPLE, VISITS)), name="my clinic", database="clinic.duckdb")
    policy = parse_policy(text, "draft.yaml", SAMPLES)
    assert policy.name == "my_clinic" and policy.database == "clinic.duckdb"
    assert policy.draft and [t.protection for t in policy.tables.values()] == [
        IdUnit("people", "id", "add_remove"),
        IdUnit("people", "person_id", "add_remove"),
    ]
    visits = policy.tables["visits"]
    assert visits.unique == (Key(("visit_id",)),) and policy.tables["people"].primary_key == Key(("id",))
    assert visits.foreign_keys == (ForeignKey(("person_id",), "people", ("id",)),)
    assert list(visits.columns) == ["visit_id", "person_id", "day", "cost", "tags"]
    assert visits.columns["cost"].sql_type == types.decimal(10, 2)
    assert not visits.columns["visit_id"].is_nullable and visits.columns["day"].is_nullable
    assert all(c.bounds is None and c.domain is None for c in visits.columns.values())
    assert "secret_label" not in text and "or  {rows: 1},  {column: visit_id},  public: true" in text


GROWING = (
    ("rider", "day", "{by: day, every: day, from: 2026-01-01}", "{of: rider_day, column: rider, per: period}"),
    ("", "day", "{by: day, every: day, from: 2026-01-01}", ""),
    ("", "at", "{by: day, every: day, from: 2026-01-01}", ""),
)


@pytest.mark.parametrize(("unit", "by", "grows", "per"), GROWING)
def test_a_table_with_days_may_grow_and_what_is_proposed_is_a_policy(unit: str, by: str, grows: str, per: str) -> None:
    days = (CatalogueColumn(by, "DATE" if by == "day" else "TIMESTAMP", True), CatalogueColumn("n", "BIGINT", True))
    ids = (CatalogueColumn("rider", "BIGINT", False),) if unit else ()
    text = draft_policy(Catalogue((CatalogueTable("trips", (*ids, *days)),)), name="town", database="town.duckdb")
    as_it_is = parse_policy(text, "draft.yaml", SAMPLES)
    assert as_it_is.tables["trips"].grows is None  # somebody has to say so
    told = [line.removeprefix("    #   ") for line in text.splitlines() if line.startswith("    #   ")]
    assert f"grows: {grows.replace('2026-01-01', 'YYYY-MM-DD')}" in told
    made = next((line for line in told if line.startswith("columns: ")), "")
    text = "\n".join(
        f"    unit: {per}" if per and line.startswith("    unit: ") else line
        for line in text.splitlines()
        if not line.startswith("units: ") and not line.startswith("    max_rows_per_unit: ")
    )
    column = made.removeprefix("columns: {").removesuffix(", …}")
    text = text.replace("    columns:", f"    grows: {grows}\n    columns:" + (f"\n      {column}" if column else ""))
    text = text.replace("  total: {epsilon: 1, delta: 1e-7}", "  each_period: {epsilon: 1}").replace(
        ", delta: 1e-8", ""
    )
    if per:
        assert f"unit: {per}" in told
        text = text.replace("tables:", "units: {rider_day: {}}\ntables:")
    policy = parse_policy(text, "draft.yaml", SAMPLES)
    growth = policy.tables["trips"].grows
    assert growth is not None and growth.by == "day" and list(policy.by_period) == [policy.tables["trips"].unit]


def test_who_is_born_on_a_day_does_not_grow() -> None:
    people = CatalogueTable(
        "people", (CatalogueColumn("id", "BIGINT", False), CatalogueColumn("born", "DATE", True)), primary_key=("id",)
    )
    assert "grows" not in draft_policy(Catalogue((people,)))


def test_ids_are_proposed_by_the_names_of_tables_and_of_the_type_of_their_keys() -> None:
    def table(name: str, key: str, *columns: tuple[str, str]) -> CatalogueTable:
        made = tuple(CatalogueColumn(column, type_) for column, type_ in columns)
        return CatalogueTable(name, (CatalogueColumn("id", key, False), *made), primary_key=("id",))

    users = table("users", "UUID")
    log = table("log", "BIGINT", ("user", "VARCHAR"), ("users", "UUID"), ("place", "VARCHAR"), ("User_ID", "VARCHAR"))
    text = draft_policy(Catalogue((log, users)))
    ids = [line.strip() for line in text.splitlines() if line.startswith(("    unit:", "    #   or"))]
    assert ids == [
        "unit: {column: user, as: uuid}   # DECIDE: who is protected? each user: all rows of one together",
        "#   or  {column: User_ID, as: uuid},  {column: users},  {rows: 1},  {column: id},  public: true",
        "unit: {column: id}   # DECIDE: who is protected? each id: in each row another one",
        "#   or  {rows: 1},  public: true",
    ]
    assert parse_policy(text).tables["log"].columns["user"].sql_type == types.UUID


STRUCT = """STRUCT("a b" INTEGER, c STRUCT(d VARCHAR, e ENUM('x, y', '(z')), "q""x" DECIMAL(4,1), l INTEGER[],
 at TIMESTAMP WITH TIME ZONE, j JSON, m MAP(INTEGER, INTEGER), city VARCHAR)"""


def test_fields_and_times_of_a_zone_are_drafted() -> None:
    columns = (
        CatalogueColumn("s", STRUCT),
        CatalogueColumn("s_city", "VARCHAR"),
        CatalogueColumn("seen", "TIMESTAMP WITH TIME ZONE"),
        CatalogueColumn("key", "TIMESTAMP WITH TIME ZONE"),
        CatalogueColumn("several", "STRUCT(a INTEGER)[]"),
        CatalogueColumn("broken", "STRUCT(a INTEGER"),
    )
    text = draft_policy(Catalogue((CatalogueTable("t", columns, unique=(("key",),)),)))
    found = parse_policy(text).tables["t"].columns.values()
    assert {c.name: (c.type, str(c.derived or "")) for c in found} == {
        "s_a b": ("integer", 's."a b"'),
        "s_c_d": ("varchar", "s.c.d"),
        "s_c_e": ("varchar", "s.c.e"),
        's_q"x': ("decimal(4,1)", 's."q""x"'),
        "s_l": ("integer[]", "s.l"),
        "s_at": ("timestamp", "s.at AT TIME ZONE 'UTC'"),
        "s_city_": ("varchar", "s.city"),
        "s_city": ("varchar", ""),
        "seen": ("timestamp", "seen AT TIME ZONE 'UTC'"),
        "key": ("timestamp with time zone", ""),
    }


def test_what_of_a_nested_type_cannot_be_used_is_said() -> None:
    columns = (CatalogueColumn("s", STRUCT), CatalogueColumn("several", "STRUCT(a INTEGER)[]"))
    text = draft_policy(Catalogue((CatalogueTable("t", columns),)))
    assert '# "s.j": of a type that queries cannot use' in text and '# "s.m": of a type' in text
    assert "# several: of type STRUCT, which queries cannot use; it is a list of them" in text


def test_nothing_is_computed_on_a_server() -> None:
    tables = (CatalogueTable("t", (CatalogueColumn("seen", "TIMESTAMP WITH TIME ZONE"),)),)
    text = draft_policy(Catalogue(tables), database="postgresql://reader@host/shop")
    (column,) = parse_policy(text).tables["t"].columns.values()
    assert column.derived is None and column.sql_type == types.TIMESTAMPTZ


def test_a_text_in_json_is_proposed() -> None:
    text = draft_policy(Catalogue((CatalogueTable("t", (CatalogueColumn("j", "JSON"),)),)))
    (line,) = [line.partition(":  ")[2] for line in text.splitlines() if "from:" in line]
    declared = parse_policy(text.replace("columns: {}", f"columns: {{{line.replace('field:', 'x:', 1)}}}"))
    assert str(declared.tables["t"].columns["x"].derived) == "j ->> '$.field'"


def test_the_list_of_an_enum_is_proposed_and_not_declared() -> None:
    state = CatalogueColumn("state", "VARCHAR", enumerated=("open", "it's", "a: b"))
    long = CatalogueColumn("code", "VARCHAR", enumerated=tuple(f"code{i}" for i in range(51)))
    text = draft_policy(Catalogue((CatalogueTable("orders", (state, long)),)))
    assert all(c.domain is None for c in parse_policy(text).tables["orders"].columns.values())
    (line,) = [line for line in text.splitlines() if "state" in line]
    assert "as a domain it is public" in line and "code50" not in text and "lists 51 values" in text
    proposed = line[line.index("domain: ") : line.index("]") + 1]
    declared = parse_policy(text.replace("state: {type: varchar}", f"state: {{type: varchar, {proposed}}}"))
    assert declared.tables["orders"].columns["state"].domain == ValuesDomain(("open", "it's", "a: b"), True)


def test_draft_with_sources_and_without_tables() -> None:
    text = draft_policy(Catalogue((PEOPLE,)), sources={"people": "read_parquet('p''s/*.parquet')"})
    source = parse_policy(text).tables["people"].source
    assert source is not None and source.paths == ("p's/*.parquet",)
    assert not parse_policy(draft_policy(Catalogue(()))).tables


def catalogue(**changed: CatalogueTable) -> Catalogue:
    towns = CatalogueTable(
        "towns",
        (
            CatalogueColumn("code", "VARCHAR", False),
            CatalogueColumn("area", "DOUBLE"),
            CatalogueColumn("map", "STRUCT(a INT)"),
        ),
    )
    items = CatalogueTable("items", (CatalogueColumn("visit_id", "BIGINT"), CatalogueColumn("price", "DECIMAL(5,2)")))
    log = CatalogueTable("log", (CatalogueColumn("level", "TINYINT"),))
    tables = {"towns": towns, "people": PEOPLE, "visits": VISITS, "items": items, "log": log}
    return Catalogue(tuple({**tables, **changed}.values()))


def test_complete_changes_nothing_that_is_known() -> None:
    assert complete(good(), catalogue()) == good()


def test_complete_fills_types_and_public_columns() -> None:
    policy = good("{code: {type: varchar, nullable: false}, area: {type: double}}", "{}")
    untyped = policy.tables["towns"]
    assert not untyped.columns
    completed = complete(policy, catalogue())
    towns = completed.tables["towns"]
    assert [(c.name, c.sql_type, c.is_nullable) for c in towns.columns.values()] == [
        ("code", types.VARCHAR, False),
        ("area", types.DOUBLE, True),
    ]
    assert completed.hash != policy.hash and completed.path == policy.path
    level = complete(good("{type: tinyint, domain: [1, 2, 3]}", "{domain: [1, 2, 3]}"), catalogue()).tables["log"]
    assert level.columns["level"].sql_type == types.TINYINT


def test_complete_tells_every_disagreement() -> None:
    log = CatalogueTable("logs", (CatalogueColumn("level", "TINYINT"),))
    people = CatalogueTable(
        "people",
        (
            CatalogueColumn("id", "INTEGER"),
            CatalogueColumn("ages", "INTEGER"),
            CatalogueColumn("town", "MAP(INT, INT)"),
        ),
    )
    with pytest.raises(CannotOpen) as caught:
        complete(good(), catalogue(log=log, people=people))
    found = caught.value.diagnostics
    assert {d.code for d in found} == {"DP004"} and all(d.span is not None for d in found)
    said = [d.message for d in found]
    assert said == [
        "tables.people.columns.id: type is bigint in the policy but integer in the data",
        "tables.people.columns.age: there is no such column in the data, did you mean `ages`?",
        "tables.people.columns.town: its type in the data, MAP, cannot be used; leave the column out",
        "tables.log: there is no such table in the data, did you mean `logs`?",
    ]


def test_complete_checks_bounds_against_the_filled_type() -> None:
    policy = good("{type: tinyint, domain: [1, 2, 3]}", "{domain: [1, 2, 300]}")
    with pytest.raises(CannotOpen) as caught:
        complete(policy, catalogue())
    assert [d.code for d in caught.value.diagnostics] == ["DP004"]
    assert "must fit TINYINT" in caught.value.diagnostics[0].message


def test_show_has_the_defaults_filled_in() -> None:
    text = show_policy(good())
    for part in ("approx_dp", "good.ledger.sqlite", "max_keys     100000", "epsilon      none: a query must say",
                 "at most 20 rows per unit [enforced]", "unique (visit_id) [promised]", "unique (code) [checked]",
                 "bounds [2024-01-01, 2024-12-31]",
                 "total of person       ε 10, δ 1e-6", "no limits per analyst"):  # fmt: skip
        assert part in text, part
    assert show_policy(good(), "LOG").splitlines()[0] == "log: unit log: 2 rows, add_remove"
    assert show_policy(good(), "nothing") == ""
    facts = describe(good())
    assert facts["tables"]["items"]["columns"]["price"]["bounds"] == ["0", "99.5"]
