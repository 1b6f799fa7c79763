"""Items 31 to 40: reaching outside the declared tables, planner in front."""

from __future__ import annotations

import pytest

import dpsql
from dpsql.diagnostics.errors import Rejected
from tests.support.checklist_clinic import CANARY, Attack, Clinic, assert_silent

hidden = [1, 2, 3]


@pytest.mark.parametrize(
    "source",
    [
        "read_csv('secret.csv')",
        "read_text('/etc/passwd')",
        "read_parquet('x.parquet')",
        "read_json('x')",
        "glob('/*')",
        "sniff_csv('secret.csv')",
        "'secret.csv'",
        '"secret.csv"',
        '"/etc/passwd"',
        "'https://example.org/x.csv'",
        "parquet_scan('x')",
        "parquet_metadata('x')",
        "sqlite_scan('a', 'b')",
        "postgres_scan('a', 'b', 'c')",
        "generate_series(1, 100000000)",
        "unnest([1])",
        "repeat('a', 10)",
        "duckdb_secrets()",
        "test_all_types()",
    ],
)
def test_item_31_no_files_and_no_table_functions(attack: Attack, source: str) -> None:
    for sql in (
        f"SELECT COUNT(*) FROM {source}",
        f"SELECT COUNT(*) FROM patients, {source}",
        f"SELECT COUNT(*) FROM patients JOIN {source} s ON true",
        f"WITH x AS (SELECT * FROM {source}) SELECT COUNT(*) FROM x",
    ):
        attack.refused(sql, "DP101", "DP102")


@pytest.mark.parametrize(
    "statement", ["COPY patients TO 'x'", "EXPORT DATABASE 'x'", "ATTACH 'x'", "INSTALL httpfs", "LOAD httpfs"]
)
def test_item_31_no_other_statements(attack: Attack, statement: str) -> None:
    attack.refused(statement, "DP012", "DP010", "DP011")


def test_item_32_no_python_variables(attack: Attack) -> None:
    hidden_frame = hidden
    assert hidden_frame
    attack.refused("SELECT COUNT(*) FROM hidden", "DP102")
    attack.refused("SELECT COUNT(*) FROM hidden_frame", "DP102")


@pytest.mark.parametrize(
    "table",
    [
        "information_schema.tables",
        "duckdb_tables()",
        "duckdb_columns()",
        "pragma_storage_info('patients')",
        "sqlite_master",
        "pg_catalog.pg_class",
        "pg_class",
        "duckdb_tables",
        "pragma_table_info('patients')",
        "system.main.duckdb_tables",
        "data.main.patients",
        "memory.main.patients",
        "d.duckdb_tables",
        "temp.patients",
        "main.sqlite_master",
    ],
)
def test_item_33_no_catalogue(attack: Attack, table: str) -> None:
    attack.refused(f"SELECT COUNT(*) FROM {table}", "DP101", "DP102")
    attack.refused(f"SELECT * FROM {table}", "DP101", "DP102")


@pytest.mark.parametrize(
    "call", ["stats(age)", "pg_typeof(age)", "typeof(age)", "getenv('HOME')", "hash(name)", "current_query()"]
)
def test_item_33_and_34_no_metadata_functions(attack: Attack, call: str) -> None:
    attack.refused(f"SELECT COUNT(*) FROM patients WHERE {call} IS NOT NULL", "DP105", "DP101")


@pytest.mark.parametrize(
    "statement",
    [
        "SUMMARIZE SELECT * FROM patients",
        "DESCRIBE 'patients.csv'",
        "SHOW DATABASES",
        "PRAGMA table_info('patients')",
        "EXPLAIN SELECT COUNT(*) FROM patients",
        "EXPLAIN ANALYZE SELECT COUNT(*) FROM patients",
    ],
)
def test_item_33_no_statistics_statements(attack: Attack, statement: str) -> None:
    attack.refused(statement, "DP012", "DP010")


def test_item_33_explain_is_ours(attack: Attack) -> None:
    """EXPLAIN shows the plan, never the engine's estimates: it is the same for every database (item 70)."""
    shown = attack.con.sql("SELECT COUNT(*) FROM patients").explain(1, engine_sql=True)
    assert "cardinality" not in shown.lower() and "estimated" not in shown.lower()


@pytest.mark.parametrize(
    "source",
    ["query('SELECT 1')", "query_table('patients')", "query_table(['patients'])", "json_execute_serialized_sql('x')"],
)
def test_item_35_no_sql_in_strings(attack: Attack, source: str) -> None:
    attack.refused(f"SELECT COUNT(*) FROM {source}", "DP101", "DP102")
    attack.refused(f"SELECT {source} FROM patients", "DP105", "DP101")


@pytest.mark.parametrize("name", ["patients", "PATIENTS", '"Patients"', "pub", "visits"])
def test_item_36_a_with_query_cannot_take_a_tables_name(attack: Attack, name: str) -> None:
    attack.refused(f"WITH {name} AS (SELECT diag FROM pub) SELECT COUNT(*) FROM {name}", "DP107")
    attack.refused(f"SELECT COUNT(*) FROM (WITH {name} AS (SELECT 1 AS pid) SELECT * FROM {name})", "DP107")


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE MACRO f(x) AS 1",
        "CREATE TEMP TABLE patients AS SELECT 1",
        "CREATE VIEW v AS SELECT 1",
        "DROP TABLE patients",
        "INSERT INTO patients VALUES (1)",
        "SET threads = 1",
    ],
)
def test_item_36_nothing_can_be_made(attack: Attack, statement: str) -> None:
    attack.refused(statement, "DP012", "DP010")


def test_item_36_names_of_our_own_sql_are_nobodys(attack: Attack) -> None:
    """Tables, columns and WITH queries called like our aliases change nothing."""
    truth = attack.answer("SELECT COUNT(*), SUM(amt) FROM visits v JOIN patients q USING (pid)")
    for outer, inner in (
        ("t1", "p"),
        ("p", "g"),
        ("u", "k0"),
        ("m0", "t2"),
        ("f", "kept"),
        ("c0", "c1"),
        ("b", "x"),
        ("n", "r0"),
    ):
        sql = (
            f"WITH {outer} AS (SELECT pid AS u, age AS k0, diag AS m0 FROM patients), "
            f"{inner} AS (SELECT pid AS n, amt AS c1 FROM visits) "
            f"SELECT COUNT(*) AS m0, SUM({inner}.c1) AS k0 FROM {inner} JOIN {outer} ON {outer}.u = {inner}.n"
        )
        rows = attack.answer(sql)
        assert rows[0][0] == truth[0][0] and abs(rows[0][1] - truth[0][1]) < 30


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1; SELECT COUNT(*) FROM patients",
        "SELECT COUNT(*) FROM patients; DROP TABLE patients",
        ";",
        "",
        " ",
        "-- nothing",
        "SELECT COUNT(*) FROM patients;;SELECT 1",
    ],
)
def test_item_37_exactly_one_statement(attack: Attack, text: str) -> None:
    attack.refused(text, "DP011", "DP010")


@pytest.mark.parametrize(
    "text",
    [
        "EXPLAIN SELECT 1",
        "CALL pragma_version()",
        "LOAD x",
        "PREPARE q AS SELECT 1",
        "EXECUTE q",
        "VACUUM",
        "checkpoint",
        "SELECT #1 FROM patients",
        "SELECT COUNT(*) FROM patients WHERE name = E'\\x62ob'",
        "VALUES (1)",
        "PIVOT patients ON diag",
        "SELECT COUNT(*) FROM patients FOR UPDATE",
        "SELECT COUNT(*) INTO x FROM patients",
        "SELECT COUNT(*) FROM patients AT (VERSION => 1)",
        "DELETE FROM patients",
        "SELECT COUNT(*) FROM patients\0",
        "SELECT COUNT(*) FROM patients WHERE name = 'a\0b'",
    ],
)
def test_item_38_unknown_syntax_is_refused(attack: Attack, text: str) -> None:
    attack.refused(text, "DP010", "DP011", "DP012", "DP101", "DP105")


def test_item_38_comments_carry_nothing(attack: Attack) -> None:
    for comment in ("-- */ UNION SELECT name FROM patients", "/* ; DROP TABLE patients */", "/*+ hint */", "-- \ud800"):
        assert attack.answer(f"SELECT COUNT(*) FROM patients {comment}") == [(4,)]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), [1], {"a": 1}, b"x", "a\0b", "\ud800"])
def test_item_38_odd_parameters_are_refused(attack: Attack, value: object) -> None:
    for column in ("age", "name"):
        attack.refused(f"SELECT COUNT(*) FROM patients WHERE {column} = ?", "DP013", "DP106", parameters=[value])


def test_item_38_half_characters_are_refused(attack: Attack) -> None:
    for sql in ("SELECT COUNT(*) FROM patients WHERE name = 'a\ud800'", "SELECT 'a\udfff', COUNT(*) FROM patients"):
        attack.refused(sql, "DP106")
    attack.refused('SELECT COUNT(*) FROM patients WHERE "a\ud800" = 1', "DP103")


@pytest.mark.parametrize(
    "text",
    ["9" * 5000, "9" * 400, "'1e999999999'", "1e999", "0." + "1" * 500, "'9e99999999999999999999'"],
)
def test_item_38_numbers_with_many_digits_are_refused_at_once(attack: Attack, text: str) -> None:
    attack.refused(f"SELECT COUNT(*) FROM patients WHERE age = {text}", "DP106", "DP010")


@pytest.mark.parametrize("name", ["patients", "PATIENTS", '"PaTiEnTs"', '"patients"'])
def test_item_39_a_name_in_another_case_is_the_same_table(attack: Attack, name: str) -> None:
    assert attack.answer(f'SELECT COUNT("AGE") FROM {name}') == [(3,)]
    attack.refused(f"SELECT Name FROM {name}", "DP110")
    for dialect in ("postgres", "snowflake", "bigquery"):
        quoted = name.replace('"', "`") if dialect == "bigquery" else name
        attack.refused(f"SELECT name FROM {quoted}", "DP110", "DP102", dialect=dialect)


def test_item_39_tables_that_differ_in_case_alone_are_refused(clinic: Clinic) -> None:
    text = clinic.policy.read_text() + "  PATIENTS:\n    public: true\n"
    with pytest.raises(dpsql.Error) as caught:
        from dpsql.policy.load import parse_policy

        parse_policy(text)
    assert "DP003" in str(caught.value) or "DP002" in str(caught.value)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT patients FROM patients",
        "SELECT COUNT(patients) FROM patients",
        "SELECT COUNT(p) FROM patients p",
        "SELECT COUNT(COLUMNS('a.*')) FROM patients",
        "SELECT COLUMNS(*) FROM patients",
        "SELECT * FROM patients",
        "SELECT p.* FROM patients p",
        "SELECT struct_pack(a := age) FROM patients",
        "SELECT row(age, name) FROM patients",
        "SELECT {'a': age} FROM patients",
    ],
)
def test_item_40_no_whole_rows(attack: Attack, sql: str) -> None:
    attack.refused(sql, "DP101", "DP103", "DP105", "DP110")


def test_item_40_bounds_belong_to_columns_not_to_names(attack: Attack) -> None:
    """Relabelling, aliases, derived tables and merges never move a bound, an id or a domain to another column."""
    attack.refused("SELECT SUM(age) FROM patients p(age, pid, c, d, e, f, g, h, i)", "DP201")  # `age` is pid here
    attack.refused("SELECT SUM(age) FROM (SELECT big AS age FROM patients)", "DP201")
    attack.refused("WITH t(age) AS (SELECT big FROM patients) SELECT SUM(age) FROM t", "DP201")
    attack.refused("SELECT SUM(age) FROM (SELECT length(name) AS age FROM patients)", "DP201", "DP202")
    assert attack.answer("SELECT COUNT(*) FROM patients p(a, b) WHERE b = 'bob'") == [(1,)]
    (l1, _), *_ = attack.sensitivities("SELECT SUM(age) FROM (SELECT income AS age FROM patients)")
    assert l1 >= 100_000
    (l1, _), *_ = attack.sensitivities("SELECT SUM(x.age) FROM (SELECT age * 1000 AS age FROM patients) x")
    assert l1 >= 110_000
    # An id that is only called so is none: the real one still bounds the contributions.
    swapped = "SELECT COUNT(DISTINCT pid) FROM (SELECT amt AS pid, pid AS amt FROM visits)"
    (l1, _), *_ = attack.sensitivities(swapped)
    assert l1 == 3


def test_item_40_group_aliases_never_capture_columns(attack: Attack) -> None:
    """GROUP BY and HAVING take the column, ORDER BY the alias, as the engine does."""
    rows = attack.answer("SELECT age AS diag, COUNT(*) FROM (SELECT diag, 1 AS age FROM patients) GROUP BY diag, age")
    assert sorted(n for _, n in rows) == [0, 1, 1, 2]
    with pytest.raises(Rejected) as caught:
        attack.con.sql("SELECT name AS diag, COUNT(*) FROM patients GROUP BY diag").run(epsilon=1)
    assert caught.value.diagnostics[0].code == "DP109"
    assert CANARY not in str(caught.value)
    assert_silent(caught.value)
