"""Values inside of columns: what the policy makes a column of is this column, however a query writes it."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import dpsql
from dpsql.core.ir.fingerprint import fingerprint
from dpsql.core.policy.derived import parse_derived
from dpsql.policy.load import load_policy
from dpsql.policy.policy import Policy
from tests.support.planning import planned, policy

COLUMNS = {
    "id": "{type: bigint, nullable: false}",
    "country": "{from: home.country, type: varchar, domain: [DE, FR]}",
    "zip": "{from: home.at.zip, type: integer, bounds: [0, 99999]}",
    "city": "{from: \"profile ->> '$.city'\", type: varchar}",
    "dotted": '{from: "profile ->> \'$.\\"a.b\\"\'", type: varchar}',
    "deep": "{from: \"profile ->> '$.a.b'\", type: varchar}",
    "first": "{from: \"profile ->> '$.list[0]'\", type: varchar}",
    "age": "{from: \"profile ->> 'age'\", type: integer, bounds: [0, 99]}",
    "seen": "{from: \"seen AT TIME ZONE 'Asia/Tokyo'\", type: timestamp}",
    "paid": "{from: \"odd.times AT TIME ZONE 'UTC'\", type: timestamp}",
}
TABLE = "people:\n  unit: {column: id}\n  primary_key: [id]\n  columns:\n" + "".join(
    f"    {name}: {text}\n" for name, text in COLUMNS.items()
)
WAYS = {
    "country": ["home.country", "p.home.country", "HOME.Country", "home['country']", "p.home['country']",
                "(home).country", "(p.home).country", "struct_extract(home, 'country')", '"home"."country"'],
    "zip": ["home.at.zip", "p.home.at.zip", "home['at']['zip']", "home.at['zip']"],
    "city": ["profile ->> 'city'", "p.profile ->> '$.city'", "profile->>'$.\"city\"'",
             "json_extract_string(profile, '$.city')", "(profile) ->> 'city'"],
    "dotted": ["profile ->> 'a.b'", "profile ->> '$.\"a.b\"'"],
    "deep": ["profile ->> '$.a.b'", "profile -> 'a' ->> 'b'", "(p.profile -> '$.a') ->> '$.b'"],
    "first": ["profile ->> '$.list[0]'", "profile -> 'list' ->> '$[0]'"],
    "age": ["(profile ->> 'age')::INTEGER", "CAST(profile ->> '$.age' AS INT)"],
    "seen": ["seen AT TIME ZONE 'Asia/Tokyo'", "p.seen AT TIME ZONE 'asia/tokyo'"],
    "paid": ["odd.times AT TIME ZONE 'UTC'"],
}  # fmt: skip
DATA = """
CREATE TABLE people AS SELECT i AS id,
    {'country': ['DE', 'FR', NULL][1 + i % 3], 'at': {'zip': 10000 + i}} AS home,
    ('{"city": "c' || i % 4 || '", "a.b": "d' || i % 5 || '", "a": {"b": "e' || i % 2 || '"}, "list": ["f' || i % 6
        || '"], "age": ' || i % 90 || '}')::JSON AS profile,
    TIMESTAMPTZ '2024-01-01 00:00:00+00' + i * INTERVAL 7 HOUR AS seen,
    {'times': TIMESTAMPTZ '2024-01-01 00:00:00+00' + i * INTERVAL 5 HOUR} AS odd
FROM range(2000) t(i)
"""


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Policy]:
    """A database and its policy."""
    folder = tmp_path_factory.mktemp("made")
    with duckdb.connect(str(folder / "people.duckdb")) as db:
        db.execute("SET TimeZone = 'UTC'")
        db.execute(DATA)
    head = "version: 1\nname: made\ndatabase: people.duckdb\ntables:\n  "
    (folder / "made.yaml").write_text(
        head + TABLE.replace("\n", "\n  ") + "\nbudgets: {total: {epsilon: 1e12, delta: 0.1}}\n", encoding="utf-8"
    )
    return folder / "people.duckdb", load_policy(folder / "made.yaml")


@pytest.mark.parametrize(("column", "written"), [(c, w) for c, ways in WAYS.items() for w in ways])
def test_a_value_that_is_a_column_of_the_policy_is_that_column(column: str, written: str) -> None:
    sql, of = "SELECT COUNT(*) AS n FROM people p WHERE {} IS NOT NULL", policy(TABLE)
    one, other = (planned(sql.format(value), of).tree.node for value in (written, column))
    assert fingerprint(one) == fingerprint(other)


def test_answers_are_those_of_the_engine_to_the_same_text(asked: tuple[Path, Policy]) -> None:
    file, declared = asked
    parts = {"zip": "{} // 500", "seen": "hour({})", "paid": "hour({})"}
    with dpsql.connect(declared, ledger=":memory:") as con, duckdb.connect(str(file), read_only=True) as db:
        db.execute("SET TimeZone = 'UTC'")
        for column, ways in WAYS.items():
            for written in ways:
                value = parts.get(column, "{}").format(written)
                sql = f"SELECT {value} AS v, COUNT(*) AS n FROM people p GROUP BY v"
                got = {v: round(n) for v, n in con.sql(sql).run(epsilon=1e7, delta=1e-9) if round(n)}
                assert got == dict(db.execute(sql).fetchall()), sql


def test_subqueries_see_values_of_the_query_around_them(asked: tuple[Path, Policy]) -> None:
    inner = "EXISTS (SELECT 1 FROM people q WHERE q.id = p.id AND q.home.country = p.home.country)"
    sql = f"SELECT COUNT(*) AS n FROM people p WHERE {inner}"
    with dpsql.connect(asked[1], ledger=":memory:") as con:
        assert round(con.sql(sql).run(epsilon=1e6).fetchall()[0][0]) == 1334


def test_a_schema_may_stand_in_front() -> None:
    sql, of = "SELECT COUNT(*) FROM main.people WHERE {} = 'DE'", policy(TABLE)
    one, other = (planned(sql.format(v), of).tree.node for v in ("main.people.home.country", "country"))
    assert fingerprint(one) == fingerprint(other)


def refused(sql: str) -> tuple[str, str]:
    """The code and the one or last repair of a refusal."""
    (found,) = dpsql.check(sql, policy(TABLE))
    return found.code, found.help[-1]


@pytest.mark.parametrize(
    ("written", "code", "column"),
    [
        ("home['town']", "DP105", """home_town: {from: "home.town", type: varchar}"""),
        ("p.home['town']", "DP105", """home_town: {from: "home.town", type: varchar}"""),
        ("home.town", "DP102", """home_town: {from: "home.town", type: varchar}"""),
        ("profile ->> 'x.y'", "DP105", """profile_y: {from: 'profile ->> ''$."x.y"''', type: varchar}"""),
    ],
)
def test_what_is_no_column_yet_is_told_the_line_that_makes_it_one(written: str, code: str, column: str) -> None:
    sql = f"SELECT COUNT(*) AS n FROM people p WHERE {written} IS NULL"
    assert refused(sql)[0] == code and refused(sql)[1].endswith(f":  {column}")
    assert dpsql.check(sql, policy(f"{TABLE}    {column}\n")) == []


@pytest.mark.parametrize(
    "written", ["profile -> 'city'", "profile ->> '/city'", "profile ->> city", "home[1]", "x.y.z.w"]
)
def test_what_is_not_the_same_value_is_refused(written: str) -> None:
    assert refused(f"SELECT COUNT(*) FROM people WHERE ({written}) IS NULL")[0] in ("DP102", "DP103", "DP105", "DP101")


def test_a_table_comes_before_a_column_and_two_tables_are_told_apart() -> None:
    two = policy(TABLE + TABLE.replace("people:", "home:"))
    sql = "SELECT COUNT(*) FROM home JOIN people USING (id) WHERE {} = 'DE'"
    assert dpsql.check(sql.format("home.country"), two) == []
    (found, *_) = dpsql.check(
        "SELECT COUNT(*) FROM people a JOIN people b USING (id) WHERE profile ->> 'city' = 'x'", two
    )
    assert found.code == "DP104" and found.help == ("write a.city or b.city",)


def test_equal_texts_have_one_key_and_others_have_not() -> None:
    def key(text: str) -> str:
        return parse_derived(text).key

    assert key("p ->> 'a'") == key("P ->> '$.\"a\"'") != key("p ->> 'A'")
    assert key("s.A") == key('"S".a') != key("s.a.a") and key("s") == ""
    assert key("t AT TIME ZONE 'UTC'") == key("t at time zone 'utc'") != key("t")


def test_a_cast_to_the_type_that_a_column_has_is_the_column() -> None:
    sql, of = "SELECT COUNT(*) FROM people p JOIN people q ON {} = q.id", policy(TABLE)
    one, other = (planned(sql.format(written), of).tree.node for written in ("p.id", "p.id::BIGINT"))
    assert fingerprint(one) == fingerprint(other)
    assert [d.code for d in dpsql.check(sql.format("p.id::INTEGER"), of)] == ["DP230"]


@pytest.mark.parametrize("asked", ["GROUP BY at", "GROUP BY at, at + INTERVAL 1 DAY"])
def test_a_time_without_a_calendar_is_told_the_column_that_has_one(asked: str) -> None:
    declared = "people:\n  unit: {rows: 1}\n  columns:\n    at: {type: timestamptz}\n"
    found = dpsql.check(f"SELECT COUNT(*) FROM people {asked}", policy(declared))
    made = found[0].help[-1].partition(":  ")[2].replace("x", "at")
    repaired = policy(declared.replace("at: {type: timestamptz}", made))
    assert not {d.code for d in dpsql.check(f"SELECT COUNT(*) FROM people {asked}", repaired)} & {"DP106", "DP301"}
