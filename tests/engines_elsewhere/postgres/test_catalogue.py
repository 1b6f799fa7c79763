"""What a server's catalogue says, and what is made of it: types, facts, places, and refusals by name."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

import dpsql
from dpsql.core.policy.catalogue import Catalogue, CatalogueColumn, CatalogueKey
from dpsql.core.policy.server_address import parse_server, parse_stored
from dpsql.diagnostics.errors import CannotOpen
from dpsql.engines.postgres.engine import PostgresEngine
from dpsql.engines.postgres.relations import Wanted
from dpsql.faces.cli.main import main
from tests.engines_elsewhere.postgres.servers import Server
from tests.support.canary import MARKER
from tests.support.drafts import decide

Make = Callable[[str], str]


def all_of(server: Server, name: str) -> PostgresEngine:
    return PostgresEngine.open(parse_server(server.address(name)))


def described(server: Server, name: str) -> Catalogue:
    engine = all_of(server, name)
    try:
        return engine.describe()
    finally:
        engine.close()


def opened(server: Server, name: str, *wanted: str | Wanted) -> PostgresEngine:
    named = [Wanted(w) if isinstance(w, str) else w for w in wanted]
    return PostgresEngine.open(parse_server(server.address(name)), named)


def refusal(server: Server, name: str, *wanted: str | Wanted) -> str:
    with pytest.raises(CannotOpen) as caught:
        opened(server, name, *wanted).close()
    assert caught.value.diagnostics[0].help
    return str(caught.value)


TYPES = {
    "boolean": "BOOLEAN", "smallint": "SMALLINT", "integer": "INTEGER", "bigint": "BIGINT", "real": "FLOAT",
    "double precision": "DOUBLE", "text": "VARCHAR", "varchar": "VARCHAR", "varchar(7)": "VARCHAR", "date": "DATE",
    "timestamp": "TIMESTAMP", "timestamp(0)": "TIMESTAMP", "timestamptz": "TIMESTAMP WITH TIME ZONE", "time": "TIME",
    "uuid": "UUID", "bytea": "BLOB", "numeric(9,2)": "DECIMAL(9,2)", "numeric(38)": "DECIMAL(38,0)",
    "mood": "VARCHAR", "age": "INTEGER", "price": "DECIMAL(7,3)", "older": "INTEGER",
}  # fmt: skip
REFUSED = (
    "char", "char(3)", '"char"', "name", "numeric", "numeric(39,2)", "numeric(3,-1)", "interval", "timetz", "money",
    "json", "jsonb", "xml", "point", "int4range", "bit(3)", "oid", "inet", "tsvector", "pair", "padded", "regclass",
)  # fmt: skip
SCRIPT = f"""
CREATE TYPE mood AS ENUM ('{MARKER}', 'glad');
CREATE TYPE pair AS (a integer, b text);
CREATE DOMAIN age AS integer CHECK (value >= 0);
CREATE DOMAIN older AS age CHECK (value >= 18);
CREATE DOMAIN price AS numeric(7,3);
CREATE DOMAIN padded AS char(4);
"""


def test_types(server: Server, database: Make) -> None:
    columns = ", ".join(f"c{i} {type_}" for i, type_ in enumerate((*TYPES, *REFUSED)))
    table = described(server, database(f"{SCRIPT} CREATE TABLE t ({columns})")).table("t")
    assert table is not None
    known, others = table.columns[: len(TYPES)], table.columns[len(TYPES) :]
    assert [c.type for c in known] == list(TYPES.values()) and not any(c.why for c in known)
    assert known[list(TYPES).index("mood")].enumerated == (MARKER, "glad")
    assert {c.type for c in others} == {"unusable"} and all(c.why for c in others)


def test_values_arrive_as_they_are_and_nan_of_a_decimal_is_null(server: Server, database: Make) -> None:
    name = database(
        f"""{SCRIPT} CREATE TABLE t (i integer, m mood, a older, p price, d numeric(9,2), z numeric(9,0));
        INSERT INTO t VALUES (1, 'glad', 20, 1.5, 'NaN', 3), (2, NULL, NULL, 'NaN', 2.5, 'NaN')"""
    )
    engine = opened(server, name, "t")
    found = engine.fetch(f"SELECT m, a, p, d, z FROM {engine.table_sql('t')} AS t0 ORDER BY i")
    assert found.columns == (["glad", None], [20, None], [Decimal("1.500"), None], [None, Decimal("2.50")], [3, None])
    table = engine.describe().table("t")
    assert table is not None and all(c.nullable for c in table.columns)
    engine.close()


FAR = {
    "DATE 'infinity'": dt.date.max, "DATE '-infinity'": dt.date.min, "DATE '20000-01-01'": "20000-01-01",
    "DATE '0044-03-15 BC'": "0044-03-15 (BC)", "TIMESTAMP 'infinity'": dt.datetime.max,
    "TIMESTAMP '-infinity'": dt.datetime.min, "TIMESTAMP '20000-01-01'": "20000-01-01 00:00:00",
    "TIMESTAMP '0044-03-15 12:00:00.5 BC'": "0044-03-15 (BC) 12:00:00.500000", "TIME '24:00:00'": "24:00:00",
    "TIMESTAMPTZ '20000-01-01 00:00:00+00'": "20000-01-01 00:00:00+00", "TIME '23:59:59.999999'": dt.time.max,
    "TIMESTAMPTZ '2024-01-01 01:00:00+01'": dt.datetime(2024, 1, 1, tzinfo=dt.UTC),
    "DATE '9999-12-31'": dt.date.max, "DATE '0001-01-01'": dt.date.min, "DATE '0001-12-31 BC'": "0001-12-31 (BC)",
    "DATE '10000-01-01'": "10000-01-01", "DATE '5874897-12-31'": "5874897-12-31",
    "DATE '4713-01-01 BC'": "4713-01-01 (BC)",
}  # fmt: skip


def test_no_date_is_an_error(server: Server, database: Make) -> None:
    """An error would tell of a row; Python's calendar is shorter than the server's."""
    engine = opened(server, database("CREATE TABLE t (a integer)"), "t")
    for expression, value in FAR.items():
        assert engine.fetch(f"SELECT {expression} AS x").columns == ([value],), expression
    engine.close()


KEYS = """
CREATE TABLE people (id integer PRIMARY KEY, mail text UNIQUE, name text NOT NULL, born date, x integer, y integer,
  UNIQUE (x, y));
CREATE TABLE visits (id bigint NOT NULL, person integer REFERENCES people, later integer, UNIQUE (id) DEFERRABLE);
INSERT INTO visits VALUES (1, NULL, 9);
ALTER TABLE visits ADD FOREIGN KEY (later) REFERENCES people NOT VALID;
CREATE UNIQUE INDEX ON visits (person) WHERE person > 5;
CREATE VIEW adults AS SELECT * FROM people;
CREATE MATERIALIZED VIEW stored AS SELECT * FROM people;
CREATE TABLE parent (id integer PRIMARY KEY, n integer NOT NULL);
CREATE TABLE child (more text) INHERITS (parent);
CREATE TABLE parts (id integer NOT NULL, day integer NOT NULL, PRIMARY KEY (id, day)) PARTITION BY RANGE (day);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (10);
CREATE SCHEMA ref; CREATE TABLE ref.codes (code integer PRIMARY KEY, person integer REFERENCES people);
"""


def test_facts_are_what_the_server_makes_true_for_every_row(server: Server, database: Make) -> None:
    catalogue = described(server, database(KEYS))

    def table(name: str) -> tuple[object, ...]:
        found = catalogue.table(name)
        assert found is not None, name
        nullable = tuple(c.name for c in found.columns if c.nullable)
        return found.primary_key, found.unique, found.foreign_keys, nullable

    assert table("people") == (("id",), (("mail",), ("x", "y")), (), ("mail", "born", "x", "y"))
    # A key that was not validated, and an index of some rows, say nothing.
    assert table("visits") == ((), (("id",),), (CatalogueKey(("person",), "people", ("id",)),), ("person", "later"))
    for view in ("adults", "stored"):
        assert table(view) == ((), (), (), ("id", "mail", "name", "born", "x", "y"))
    assert table("parent") == ((), (), (), ("id", "n"))  # its key does not hold for the child's rows
    assert catalogue.table("child") is catalogue.table("parts_1") is None  # whose rows their parents have
    assert table("parts")[0] == ("id", "day") and table("parts")[3] == ()
    assert table("ref.codes")[2] == (CatalogueKey(("person",), "people", ("id",)),)


def test_what_rows_are_made_of(server: Server, database: Make) -> None:
    script = (
        "CREATE VIEW deeper AS SELECT a.id FROM adults AS a, (SELECT 1 FROM ref.codes) AS c WHERE EXISTS (TABLE visits)"
    )
    catalogue = described(server, database(f"{KEYS} {script}"))
    reads = {t.name: t.reads for t in catalogue.tables}
    assert reads["people"] == ('"public"."people"',)
    assert reads["adults"] == ('"public"."adults"', '"public"."people"')
    assert reads["deeper"][0] == '"public"."deeper"'
    assert set(reads["deeper"][1:]) == {
        '"public"."adults"', '"public"."people"', '"ref"."codes"', '"public"."visits"',
    }  # fmt: skip
    assert reads["parent"] == ('"public"."parent"',) and "child" not in reads and "parts_1" not in reads
    engine = opened(server, database(KEYS), "parent", "child", "parts", "adults")
    reads = {t.name: t.reads for t in engine.describe().tables}
    engine.close()
    assert reads == {
        "parent": ('"public"."parent"', '"public"."child"'),
        "child": ('"public"."child"',),
        "parts": ('"public"."parts"', '"public"."parts_1"'),
        "adults": ('"public"."adults"', '"public"."people"'),
    }


POLICY = """
version: 1
name: p
database: ADDRESS
tables:
  people: {unit: {of: person, column: id}, max_rows_per_unit: 1, columns: {id: , name: }}
  adults: {UNIT, columns: {id: }}
  parent: {unit: {of: thing, column: id}, max_rows_per_unit: 1, columns: {id: }}
  CHILD: {unit: {of: THING, column: id}, max_rows_per_unit: 1, columns: {id: }}
budgets: {total: {epsilon: 1}}
"""


def test_rows_that_two_tables_share_have_one_unit(server: Server, database: Make, tmp_path: Path) -> None:
    """Through views, and through inheritance."""
    name = database(KEYS)
    address, file = f"'{server.address(name)}'", tmp_path / "p.yaml"

    def written(unit: str, thing: str) -> Path:
        text = POLICY.replace("ADDRESS", address).replace("UNIT", unit).replace("THING", thing)
        file.write_text(text, encoding="utf-8")
        return file

    same = "unit: {of: person, column: id}, max_rows_per_unit: 1"
    dpsql.connect(written(same, "thing"), ledger=":memory:").close()
    for unit, thing, said in (
        ("unit: {rows: 1}", "thing", "tables.adults"),
        ("public: true", "thing", "tables.adults"),
        (same, "other", "reads `CHILD`"),
    ):
        with pytest.raises(CannotOpen, match=said) as caught:
            dpsql.connect(written(unit, thing), ledger=":memory:")
        assert [d.code for d in caught.value.diagnostics] == ["DP004"]


def test_a_draft_is_a_policy_that_opens(server: Server, database: Make, tmp_path: Path) -> None:
    odd = """CREATE TABLE odd (at timestamptz, j json, c char(3), "Name" text, m mood);
        CREATE TABLE "select" ("a b" integer);"""
    name = database(SCRIPT.replace(MARKER, "sad") + KEYS + odd)
    draft = tmp_path / "draft.yaml"
    assert main(["policy", "init", server.address(name), "-o", str(draft)]) == 0
    text = draft.read_text(encoding="utf-8")
    assert "at: {type: " in text and "from:" not in text and "parts_1" not in text and "[sad, glad]" in text
    assert "adults: a view of people" in text and "queries cannot use blank-padded text" in text
    with dpsql.connect(decide(draft), ledger=":memory:") as con:
        assert "ref.codes" in con.tables and con.policy.tables["parts"].columns["day"].sql_type is not None


def test_a_view_that_calls_what_nobody_can_look_into_is_refused(server: Server, database: Make) -> None:
    name = database(
        """CREATE TABLE t (a integer);
        CREATE FUNCTION hidden() RETURNS SETOF t LANGUAGE sql AS 'SELECT * FROM t';
        CREATE VIEW calls AS SELECT * FROM hidden();
        CREATE VIEW above AS SELECT * FROM calls;
        CREATE VIEW asks AS SELECT query_to_xml('SELECT * FROM t', true, true, '') IS NULL AS a;
        CREATE VIEW sleeps AS SELECT a FROM t WHERE pg_sleep(0) IS NULL;
        CREATE VIEW plain AS SELECT abs(a) AS a FROM t"""
    )
    assert "uses the function `public.hidden()`: nothing says which rows that reads" in refusal(server, name, "calls")
    assert '`public.hidden()`, as "public"."calls" does, which it reads' in refusal(server, name, "above")
    assert "calls `query_to_xml`" in refusal(server, name, "asks")
    assert "calls `pg_sleep`" in refusal(server, name, "sleeps")
    opened(server, name, "plain").close()


def test_foreign_tables_are_refused_wherever_they_stand(server: Server, database: Make) -> None:
    name = database(
        """CREATE FOREIGN DATA WRAPPER w; CREATE SERVER s FOREIGN DATA WRAPPER w;
        CREATE FOREIGN TABLE far (a integer NOT NULL) SERVER s;
        CREATE TABLE parts (a integer NOT NULL) PARTITION BY LIST (a);
        CREATE FOREIGN TABLE one PARTITION OF parts FOR VALUES IN (1) SERVER s;
        CREATE TABLE parent (a integer); CREATE FOREIGN TABLE child () INHERITS (parent) SERVER s;
        CREATE VIEW over AS SELECT * FROM parts"""
    )
    for table in ("far", "parts", "parent", "over"):
        assert "reads a foreign table" in refusal(server, name, table)
    assert described(server, name).tables == ()


def test_rows_that_a_policy_of_the_server_cuts_are_refused(server: Server, database: Make) -> None:
    name = database("CREATE TABLE t (a integer); ALTER TABLE t ENABLE ROW LEVEL SECURITY")
    assert "row security" in refusal(server, name, "t")


def test_what_the_role_may_not_read_is_refused_with_the_grant(server: Server, database: Make) -> None:
    name = database(
        "CREATE SCHEMA s; CREATE TABLE s.t (a integer); CREATE MATERIALIZED VIEW m AS TABLE s.t WITH NO DATA"
    )
    with server.admin(name) as admin:
        admin.execute("REVOKE SELECT ON s.t FROM reader")
        assert 'GRANT SELECT ON "s"."t" TO reader' in refusal(server, name, "s.t")
        admin.execute("GRANT SELECT ON s.t TO reader; REVOKE USAGE ON SCHEMA s FROM reader")
        assert 'GRANT USAGE ON SCHEMA "s"' in refusal(server, name, "s.t")
        admin.execute("REVOKE SELECT ON s.t FROM reader; GRANT SELECT (a) ON s.t TO reader")
        assert "GRANT SELECT" in refusal(server, name, "s.t")
    assert "REFRESH MATERIALIZED VIEW" in refusal(server, name, "m")


def test_a_role_that_may_write_is_told_of(server: Server, database: Make) -> None:
    name = database("CREATE TABLE t (a integer)")
    engine = opened(server, name, "t")
    assert engine.notes == ()
    engine.close()
    for grant in ("INSERT", "DELETE", "TRUNCATE"):
        with server.admin(name) as admin:
            admin.execute(f"GRANT {grant} ON t TO reader")
        engine = opened(server, name, "t")
        assert len(engine.notes) == 1 and "may also write" in engine.notes[0]
        engine.close()
        with server.admin(name) as admin:
            admin.execute(f"REVOKE {grant} ON t FROM reader")


def test_names(server: Server, database: Make) -> None:
    name = database(
        """CREATE TABLE "Odd ""one"".x; --" (a integer); CREATE TABLE plain ("Case" integer, other integer);
        CREATE TABLE twice ("A" integer, a integer, b integer);
        CREATE SCHEMA "S"; CREATE TABLE "S".t (a integer); CREATE SCHEMA s; CREATE TABLE s.t (b integer);
        CREATE TABLE "T1" (a integer); CREATE TABLE t1 (a integer); INSERT INTO plain VALUES (1, 2)"""
    )
    odd = 'Odd "one".x; --'
    engine = opened(server, name, odd, Wanted("p", parse_stored("Plain"), ("CASE", "OTHER")), "S.t", "t1", "twice")
    assert engine.table_sql(odd.upper()) == '"public"."Odd ""one"".x; --"'
    assert engine.table_sql("S.t") == '"S"."t"' and engine.table_sql("T1") == '"public"."t1"'
    plain = engine.describe().table("P")
    assert plain is not None and [c.name for c in plain.columns] == ["CASE", "OTHER"]
    assert engine.fetch(f'SELECT t0."CASE", t0."OTHER" FROM {engine.table_sql("p")} AS t0').columns == ([1], [2])
    twice = engine.describe().table("twice")
    assert twice is not None and [bool(c.why) for c in twice.columns] == [True, True, False]
    for missing in ("plain", "nobody", "pg_class", "pg_catalog.pg_class", "information_schema.tables"):
        with pytest.raises(CannotOpen, match="DP004"):
            engine.table_sql(missing)
    engine.close()
    assert "more than one table" in refusal(server, name, Wanted("s.T"))


def test_collations_and_other_kinds_of_text(server: Server, database: Make) -> None:
    name = database('CREATE TABLE t (a text COLLATE "C", b text COLLATE "ucs_basic" NOT NULL, c char(3))')
    table = described(server, name).table("t")
    assert table is not None
    assert [c.type for c in table.columns] == ["VARCHAR", "VARCHAR", "unusable"]
    assert "blank-padded" in table.columns[2].why
    with server.admin(name) as admin:
        available = {row[0] for row in admin.execute("SELECT name FROM pg_available_extensions").fetchall()}
    columns: list[CatalogueColumn] = []
    if "citext" in available:  # that of the machine; pgserver brings none
        server.run(
            name, "CREATE EXTENSION citext; CREATE TABLE e (a citext); CREATE DOMAIN d AS citext; ALTER TABLE e ADD b d"
        )
        found = described(server, name).table("e")
        assert found is not None
        columns += found.columns
        assert all("ignores case" in c.why for c in found.columns)
    if server.name != "pgserver":  # which is built without ICU
        server.run(
            name,
            "CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false);"
            "CREATE TABLE l (a text COLLATE loose); CREATE VIEW v AS SELECT a FROM l",
        )
        for relation in ("l", "v"):
            found = described(server, name).table(relation)
            assert found is not None and "takes different texts for equal" in found.columns[0].why
            columns += found.columns
    assert {c.type for c in columns} <= {"unusable"}
    assert bool(columns) == (server.name != "pgserver")
