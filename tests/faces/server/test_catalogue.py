"""What clients ask about the schema is answered as PostgreSQL 15 answered it, from the policy alone."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.engines.policy_catalogue import DoesNotFit, TooMuch
from dpsql.faces.server.catalogue.login_catalogue import LoginCatalogue
from dpsql.frontend.catalogue.known import NotListed
from dpsql.policy.load import load_policy
from tests.support import recorded_catalogue as r

RECORDED = r.recorded()
SYSTEM = (
    "plpgsql",
    "pg_global",
    "template",
    "postgres",
    "reader",
    "pg_",
    "_stem",
    "simple",
    "sql_identifier",
    "_ops",
    "boolin",
    "byteaout",
)
"""A row that says one of these is of the system's own: we may have it or not."""

NOT_TOLD = ("size", "cardinality", "pages", "access privileges", "elements_opclass", "relacl")
"""What is left out on purpose: sizes of tables, rights, and the operator classes of indexes that there are not."""


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> LoginCatalogue:
    place = Path(tmp_path_factory.mktemp("catalogue")) / "clinic.yaml"
    place.write_text(r.POLICY, encoding="utf-8")
    return LoginCatalogue(load_policy(place), "ana")


@pytest.fixture(scope="module")
def numbers(catalogue: LoginCatalogue) -> dict[str, int]:
    """The oids of the tables."""
    return {
        name: int(catalogue.answer(f"SELECT oid FROM pg_class WHERE relname = '{name}'").rows[0][0]) for name in r.NAMES
    }


def text(value: Any, type_: str) -> str | None:
    """As PostgreSQL writes a value."""
    match value:
        case None:
            return None
        case bool():
            return "t" if value else "f"
        case list():
            items = ["NULL" if v is None else str(text(v, "")) for v in value]
            return " ".join(items) if type_.endswith("vector") else "{" + ",".join(items) + "}"
        case float() if value.is_integer():
            return str(int(value))
    return str(value)


def of_the_system(row: list[str | None], sql: str) -> bool:
    """Whether a row need not be there. In PostgreSQL each table is a type, too; here it is not."""
    if "typname" in sql and "pg_attribute" not in sql and any(str(v).strip("_") in r.NAMES for v in row):
        return True
    return any(word in str(v) for v in row for word in SYSTEM)


@pytest.mark.parametrize("statement", RECORDED, ids=[f"{i}-{s['client']}" for i, s in enumerate(RECORDED)])
def test_as_postgresql_answered(statement: dict[str, Any], catalogue: LoginCatalogue, numbers: dict[str, int]) -> None:
    """Names, types, and rows, but for those of PostgreSQL's own tables, types and functions."""
    sql = str(r.with_oids(statement["sql"], numbers))
    assert LoginCatalogue.concerns(sql)
    answer = catalogue.answer(sql, [r.with_oids(v, numbers) for v in statement["values"]])
    assert [n for n, _ in answer.columns] == statement["names"]
    assert [t for _, t in answer.columns] == statement["types"]
    types = statement["types"]
    kept = [i for i, name in enumerate(statement["names"]) if name.lower() not in NOT_TOLD]
    got = [[r.without_oids(text(row[i], types[i]), numbers) for i in kept] for row in answer.rows]
    wanted = [[row[i] for i in kept] for row in statement["rows"]]
    if statement["whole"]:
        assert not [row for row in got if row not in wanted and not of_the_system(row, sql)]
    assert not [row for row in wanted if row not in got and not of_the_system(row, sql)]


def test_functions_of_types_are_compared_by_their_names(catalogue: LoginCatalogue) -> None:
    """So ADBC reads which bytes a value comes in."""
    asked = "SELECT typname, typreceive FROM pg_type WHERE (typreceive != 0 OR typsend != 0) AND typreceive::TEXT != "
    rows = dict(catalogue.answer(f"{asked}'array_recv'").rows)
    assert (rows["int8"], rows["varchar"], rows["float8"]) == ("int8recv", "varcharrecv", "float8recv")
    assert "_int8" not in rows and all(of.endswith("recv") for of in rows.values())
    assert catalogue.answer("SELECT typname FROM pg_type WHERE typmodin = 0 AND typname = 'bool'").rows == [("bool",)]
    with pytest.raises(NotListed):
        catalogue.answer("SELECT typname FROM pg_type WHERE typsend = 31")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM duckdb_settings()",
        "SELECT relname, (SELECT max(value) FROM duckdb_settings) FROM pg_class",
        "WITH duckdb_settings AS (SELECT 1 AS value FROM pg_class) SELECT value FROM pg_class, duckdb_settings()",
        "SELECT * FROM pg_class, read_text('/etc/passwd')",
        "SELECT * FROM pg_class, pg_ls_dir('/etc')",
        "SELECT * FROM pg_class, pg_catalog.pg_read_file('/etc/passwd')",
        "SELECT relname FROM pg_class, '/etc/passwd'",
        "SELECT pg_sleep(100), relname FROM pg_class",
        "SELECT repeat('x', 300000000) FROM pg_class",
        "SELECT range(50000000) FROM pg_class",
        "SELECT relname FROM pg_class, generate_series(1, 1000000000) x",
        "SELECT getenv('HOME') FROM pg_class",
        "SELECT current_setting('x', relname) || lpad('x', 100000000) FROM pg_class",
        "SELECT pg_read_file('/etc/passwd') FROM pg_class",
        "SELECT '/etc/passwd'::regclass FROM pg_class",
        "SELECT x FROM pg_class, LATERAL (SELECT * FROM sqlite_master) AS t(x)",
        "SELECT * FROM pg_catalog.pg_class JOIN main.visits ON true",
        "SELECT relname FROM pg_class; SELECT 1",
        "CREATE TABLE pg_catalog.x AS SELECT 1",
        "SELECT * FROM pg_catalog.pg_shadow_nothing",
    ],
)
def test_what_is_not_listed_is_refused(sql: str, catalogue: LoginCatalogue) -> None:
    """Relations, functions and nodes by name; DuckDB is never asked."""
    with pytest.raises(NotListed):
        catalogue.answer(sql)


def test_names_of_a_with_reach_nothing_else(catalogue: LoginCatalogue) -> None:
    """A WITH of a name that DuckDB knows is that WITH, and outside of it there is none."""
    inside = "WITH duckdb_settings AS (SELECT relname AS name FROM pg_class) SELECT count(*) FROM duckdb_settings"
    own = catalogue.answer("SELECT count(*) FROM pg_class").rows
    assert catalogue.answer(inside).rows == own
    inner = "WITH duckdb_settings AS (SELECT 'x' AS name) SELECT name FROM duckdb_settings"
    outside = f"SELECT ({inner}), x.name FROM duckdb_settings x"
    with pytest.raises((NotListed, TooMuch, DoesNotFit)):
        catalogue.answer(outside)


def test_a_question_that_takes_long_is_stopped(catalogue: LoginCatalogue) -> None:
    """A product of all types with themselves would not end in a lifetime."""
    many = ", ".join(f"pg_type t{i}" for i in range(12))
    with pytest.raises(TooMuch):
        catalogue.answer(f"SELECT count(*) FROM {many} WHERE t0.oid + t11.oid = 7")


def test_questions_of_the_data_go_elsewhere() -> None:
    """Whatever reads a table that is none of the catalogue's is asked of the planner."""
    for sql in (
        "SELECT count(*) FROM visits", "SELECT 1", "SELECT count(*) FROM public.pg_visits", "SELECT 'pg_class'",
        "SELECT count(*) FROM visits WHERE ward IN (SELECT relname FROM pg_class)", "SELECT current_date",
    ):  # fmt: skip
        assert not LoginCatalogue.concerns(sql), sql
    for sql in ("SELECT version()", "SELECT current_database(), current_user", "select current_schema()"):
        assert LoginCatalogue.concerns(sql), sql


@given(st.lists(st.sampled_from(sorted({w for s in RECORDED[::7] for w in s["sql"].split()})), max_size=40))
def test_words_in_any_order_are_answered_or_refused(catalogue: LoginCatalogue, words: list[str]) -> None:
    """No text raises anything else."""
    sql = "SELECT " + " ".join(words)
    LoginCatalogue.concerns(sql)
    with contextlib.suppress(NotListed, TooMuch, DoesNotFit):
        catalogue.answer(sql)


RELATIONS = [".".join(place) for place in LoginCatalogue.relations() if place[1] != "pg_get_keywords"]


@pytest.mark.parametrize("items", ["*", "t.*", "t.*, (SELECT count(*) FROM {0} u) AS n"])
def test_every_relation_is_shown_whole(catalogue: LoginCatalogue, items: str) -> None:
    """Each row has a value for each column, `tableoid` not among them."""
    for place in RELATIONS:
        answer = catalogue.answer(f"SELECT {items.format(place)} FROM {place} t")
        assert {len(row) for row in answer.rows} <= {len(answer.columns)}, place
        assert "tableoid" not in dict(answer.columns)
    both = catalogue.answer("SELECT c.*, n.*, c.tableoid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace")
    assert {len(row) for row in both.rows} == {len(both.columns)}
    within = catalogue.answer("WITH x AS (SELECT * FROM pg_am) SELECT * FROM x, (SELECT * FROM pg_class) y")
    assert {len(row) for row in within.rows} == {len(within.columns)}


@pytest.mark.parametrize(
    "sql, rows, missing",
    [
        ("SELECT pg_my_temp_schema()", [(None,)], ["pg_my_temp_schema()"]),
        ("SELECT nspname FROM pg_namespace WHERE oid = pg_my_temp_schema()", [], ["pg_my_temp_schema()"]),
        ("SELECT DISTINCT pg_is_other_temp_schema(oid) FROM pg_namespace", [(False,)], ["pg_is_other_temp_schema()"]),
        ("SELECT has_any_column_privilege('visits', 'select')", [(False,)], ["has_any_column_privilege()"]),
        ("SELECT a, b FROM pg_stat_io", [], ["pg_catalog.pg_stat_io"]),
        ("SELECT count(*) FROM pg_stat_io", [(0,)], ["pg_catalog.pg_stat_io"]),
        ("SELECT a.amname, s.reads FROM pg_am a LEFT JOIN pg_stat_io s ON s.object = a.amname ORDER BY 1",
         [("btree", None), ("heap", None)], ["pg_catalog.pg_stat_io"]),
        ("SELECT routine_name FROM information_schema.routines", [], []),
        # pgAdmin's first statement
        ("SELECT set_config('bytea_output', 'hex', false) FROM pg_show_all_settings() WHERE name = 'bytea_output'",
         [(None,)], []),
        ("SELECT s.setting FROM pg_catalog.pg_show_all_settings() s WHERE s.name = 'server_encoding'", [("UTF8",)], []),
        ("SELECT pid FROM pg_stat_get_activity(NULL)", [], ["pg_catalog.pg_stat_get_activity"]),
        ("SELECT EXISTS (SELECT FROM information_schema.tables WHERE table_name = 'visits')", [(True,)], []),
        ("SELECT x FROM information_schema.of_tomorrow", [], ["information_schema.of_tomorrow"]),
    ],
)  # fmt: skip
def test_what_is_not_known_here_says_nothing(
    catalogue: LoginCatalogue, sql: str, rows: list[tuple[Any, ...]], missing: list[str]
) -> None:
    """A function or relation of PostgreSQL's catalogue: NULL, FALSE, no rows, and it is said which."""
    answer = catalogue.answer(sql)
    assert (list(answer.rows), list(answer.missing)) == (rows, missing)


@pytest.mark.parametrize(
    "sql, rows",
    [
        ("SELECT DISTINCT indkey::text FROM pg_index", [("1",)]),
        ("SELECT DISTINCT conkey::text FROM pg_constraint ORDER BY 1", [("{1}",), ("{2}",)]),
        ("SELECT t.typname, p.proname, p.oid FROM pg_type t JOIN pg_proc p ON p.oid = t.typinput "
         "WHERE t.typname IN ('int8', 'date', '_int4') ORDER BY 3",
         [("int8", "int8in", 460), ("_int4", "array_in", 750), ("date", "date_in", 1084)]),
        ("SELECT typinput::oid, typinput::regproc::text FROM pg_type WHERE typname = 'int8'", [(460, "int8in")]),
        ("SELECT typname FROM pg_type WHERE oid::regtype = 'int8'::regtype", [("int8",)]),
        ("SELECT current_setting('work_mem'), current_setting('JIT')", [("4096", "off")]),
    ],
)  # fmt: skip
def test_vectors_and_functions_as_postgresql_shows_them(
    catalogue: LoginCatalogue, sql: str, rows: list[tuple[Any, ...]]
) -> None:
    assert list(catalogue.answer(sql).rows) == rows


def test_a_comment_of_a_column_says_its_bounds_and_groups(tmp_path: Path) -> None:
    place = tmp_path / "clinic.yaml"
    declared = r.POLICY.replace("age: {type: integer, nullable: false}",
                                "age: {type: integer, nullable: false, bounds: [0, 120]}")  # fmt: skip
    declared = declared.replace("region: {type: varchar, nullable: false}",
                                "region: {type: varchar, nullable: false, domain: [north, south]}")  # fmt: skip
    place.write_text(declared, encoding="utf-8")
    catalogue = LoginCatalogue(load_policy(place), "ana")
    asked = "SELECT attname, col_description(attrelid, attnum) FROM pg_attribute WHERE attrelid = 'patients'::regclass"
    said = dict(catalogue.answer(asked).rows)
    assert said["age"] == "bounds [0, 120]" and "north" in said["region"] and said["town"] is None
    described = catalogue.answer("SELECT description FROM pg_description WHERE objsubid = 2").rows
    assert described == [("bounds [0, 120]",)]


@pytest.mark.parametrize("depth, why", [(8, "an array of arrays"), (14, "this spelling")])
def test_a_text_that_is_read_in_many_ways_is_given_up_while_it_is_read(
    catalogue: LoginCatalogue, depth: int, why: str
) -> None:
    """Each `ARRAY[` doubles what sqlglot makes of all within it: fourteen make 16,000 nodes, forty would take years."""
    with pytest.raises(NotListed, match=why):
        catalogue.read(f"SELECT {'ARRAY[' * depth}1{']' * depth} FROM pg_class")
