"""Views that rest on more than the tables that they name: refused by the class of what they rest on, by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import dpsql
from dpsql.core.policy.server_address import parse_server
from dpsql.diagnostics.errors import CannotOpen
from dpsql.engines.postgres.engine import PostgresEngine
from dpsql.engines.postgres.relations import Wanted
from tests.engines_elsewhere.postgres.servers import Server

Make = Callable[[str], str]

TABLES = """
CREATE TABLE t (a integer, b text, at timestamptz); CREATE TABLE secret (a integer);
INSERT INTO t VALUES (1, 'x', '2024-01-01'); INSERT INTO secret SELECT * FROM generate_series(1, 20001);
CREATE TYPE mood AS ENUM ('sad', 'glad'); CREATE TABLE people (id integer PRIMARY KEY, m mood, ms mood[]);
"""
COUNTS = "LANGUAGE sql IMMUTABLE AS 'SELECT count(*)::integer FROM public.secret'"
HIDDEN = {
    "operator": (
        f"CREATE FUNCTION f(integer, integer) RETURNS integer {COUNTS};"
        "CREATE OPERATOR === (LEFTARG = integer, RIGHTARG = integer, FUNCTION = f)",
        "SELECT a === 1 AS n FROM t",
        "uses the operator `public.===(integer,integer)`",
    ),
    "operator within another": (
        f"CREATE FUNCTION f(integer) RETURNS integer {COUNTS};"
        "CREATE OPERATOR @@@ (RIGHTARG = integer, FUNCTION = f); CREATE VIEW inner_one AS SELECT @@@ a AS n FROM t",
        "SELECT n FROM inner_one",
        'as "public"."inner_one" does',
    ),
    "cast": (
        f"CREATE TYPE pair AS (a integer, b integer); CREATE FUNCTION f(pair) RETURNS integer {COUNTS};"
        "CREATE CAST (pair AS integer) WITH FUNCTION f(pair)",
        "SELECT CAST(CAST(ROW(a, 1) AS pair) AS integer) AS n FROM t",
        "uses the ",
    ),
    "cast to JSON": (
        "CREATE FUNCTION f(mood) RETURNS json LANGUAGE sql AS 'SELECT to_json(count(*)) FROM public.secret';"
        "CREATE CAST (mood AS json) WITH FUNCTION f(mood)",
        "SELECT to_json(CAST('sad' AS mood)) ->> 0 AS n, a FROM t",
        "calls `to_json`",
    ),
    "cast to JSON in an aggregate": (
        "CREATE FUNCTION f(mood) RETURNS jsonb LANGUAGE sql AS 'SELECT to_jsonb(count(*)) FROM public.secret';"
        "CREATE CAST (mood AS jsonb) WITH FUNCTION f(mood)",
        "SELECT CAST(jsonb_object_agg('k', CAST('sad' AS mood)) AS text) AS n FROM t",
        "calls `jsonb_object_agg`",
    ),
    "domain": (
        "CREATE FUNCTION f(integer) RETURNS boolean LANGUAGE sql AS 'SELECT count(*) > 20000 FROM public.secret';"
        "CREATE DOMAIN checked AS integer CHECK (f(VALUE))",
        "SELECT CAST(a AS checked) AS n FROM t",
        "uses the type `public.checked`",
    ),
    "collation": (
        "CREATE COLLATION own FROM \"C\"",
        "SELECT b COLLATE own < 'a' AS n FROM t",
        "uses the collation `public.own`",
    ),
    "output function": (
        "CREATE TYPE odd; CREATE FUNCTION odd_in(cstring) RETURNS odd LANGUAGE internal IMMUTABLE STRICT AS 'int4in';"
        "CREATE FUNCTION odd_out(odd) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'int4out';"
        "CREATE TYPE odd (INPUT = odd_in, OUTPUT = odd_out, LIKE = integer); CREATE TABLE odds (o odd)",
        "SELECT CAST(o AS text) AS n FROM odds",
        "converts a value, and has some of the type `public.odd`",
    ),
    "output function without a cast": (
        "CREATE TYPE odd; CREATE FUNCTION odd_in(cstring) RETURNS odd LANGUAGE internal IMMUTABLE STRICT AS 'int4in';"
        "CREATE FUNCTION odd_out(odd) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'int4out';"
        "CREATE TYPE odd (INPUT = odd_in, OUTPUT = odd_out, LIKE = integer); CREATE TABLE odds (o odd)",
        "SELECT concat(o, '') AS n FROM odds",
        "converts a value, and has some of the type `public.odd`",
    ),
    "statistics function": (
        "",
        "SELECT a, pg_stat_get_live_tuples(CAST(CAST('secret' AS regclass) AS oid)) AS n FROM t",
        "calls `pg_stat_get_live_tuples`",
    ),
    "size": ("", "SELECT a, pg_relation_size('secret') AS n FROM t", "calls `pg_relation_size`"),
    "statistics": (
        "",
        "SELECT a, (SELECT reltuples FROM pg_class WHERE relname = 'secret') AS n FROM t",
        "reads the server's catalogue",
    ),
    "statistics in a view of the server's": ("", "SELECT s.n_live_tup AS n FROM pg_stat_user_tables AS s", "reads the"),
    "sequence": ("CREATE SEQUENCE counter", "SELECT a, s.last_value AS n FROM t, counter AS s", "uses the sequence"),
    "text search": (
        "CREATE TEXT SEARCH CONFIGURATION own (COPY = simple)",
        "SELECT a, length(to_tsvector('own', b)) AS n FROM t",
        "uses the text search configuration",
    ),
    "chance": ("", "SELECT a, random() AS n FROM t", "calls `random`"),
    "text that runs": (
        "",
        "SELECT query_to_xml('TABLE secret', true, true, '') IS NULL AS n FROM t WHERE a < 0",
        "calls `query_to_xml`",
    ),
}  # fmt: skip


def opened(server: Server, name: str, *wanted: str) -> PostgresEngine:
    return PostgresEngine.open(parse_server(server.address(name)), [Wanted(w) for w in wanted])


@pytest.mark.parametrize("what", HIDDEN)
@pytest.mark.parametrize("kind", ["VIEW", "MATERIALIZED VIEW"])
def test_what_a_view_hides_is_refused_by_name(what: str, kind: str, server: Server, database: Make) -> None:
    before, view, said = HIDDEN[what]
    name = database(f"{TABLES} {before}; CREATE {kind} v AS {view}")
    with pytest.raises(CannotOpen) as caught:
        opened(server, name, "v").close()
    found = caught.value.diagnostics[0]
    assert found.code == "DP006" and said in found.message and "nothing says which rows that reads" in found.message
    assert "CREATE TABLE" in found.help[0]


def test_an_operator_that_counts_another_table_is_no_public_table(
    server: Server, database: Make, tmp_path: Path
) -> None:
    """The attack: a public view of a public table, whose operator counts the people of a private one."""
    before, view, _ = HIDDEN["operator"]
    name = database(f"{TABLES} {before}; CREATE VIEW v AS {view}")
    with server.admin(name) as admin:
        assert admin.execute("SELECT n FROM v").fetchall() == [(20001,)]
    file = tmp_path / "p.yaml"
    file.write_text(
        f"""version: 1
name: shop
database: '{server.address(name)}'
tables:
  v: {{public: true, columns: {{n: }}}}
  secret: {{unit: {{of: person, column: a}}, max_rows_per_unit: 1, columns: {{a: }}}}
budgets: {{total: {{epsilon: 1}}}}
""",
        encoding="utf-8",
    )
    with pytest.raises(CannotOpen, match="uses the operator"):
        dpsql.connect(file, ledger=":memory:")


PLAIN = (
    "SELECT * FROM t",
    "SELECT CAST(a AS text) || b AS c, a || b AS d, upper(b), CAST(b AS date) AS day FROM t WHERE b LIKE 'x%'",
    "SELECT a, date_trunc('month', at) AS month, at + INTERVAL '1 day' AS next, CAST(at AS date) AS day FROM t",
    "SELECT a, to_char(at, 'YYYY') AS y, extract(year FROM at) AS z, now() AS now, CURRENT_DATE AS d FROM t",
    "SELECT b, count(*), sum(a), string_agg(b, ','), array_agg(a), avg(a), max(at) FROM t GROUP BY b",
    "SELECT id, CAST(m AS text) AS m, m = 'sad' AS sad FROM people WHERE m IN ('sad', 'glad')",
    "SELECT id, 'sad' = ANY (ms) AS sad, CAST(ms AS text) AS ms FROM people",
    "SELECT p.id, p.m, count(t.a) FROM people AS p LEFT JOIN t ON t.a = p.id GROUP BY p.id",
    "SELECT DISTINCT a, row_number() OVER (PARTITION BY b ORDER BY at) FROM t",
    "WITH w AS (SELECT a FROM t UNION ALL SELECT a FROM secret) SELECT a FROM w WHERE a NOT IN (SELECT a FROM secret)",
    "SELECT CAST(CAST(b AS json) ->> 'k' AS integer) AS k, CAST(b AS jsonb) -> 'z' AS z FROM t",
    "SELECT b COLLATE \"C\" AS b, md5(b), length(b), coalesce(b, 'none'), CASE WHEN a > 1 THEN b END FROM t",
    "SELECT g AS day FROM generate_series(DATE '2024-01-01', DATE '2024-02-01', INTERVAL '1 day') AS g",
    "SELECT (a, b) < (1, 'x') AS less, at < DATE '2024-01-01' AS earlier, regexp_replace(b, 'x', 'y') AS r FROM t",
)  # fmt: skip


def test_plain_views_are_read(server: Server, database: Make) -> None:
    script = "".join(f"CREATE VIEW v{number} AS {text};" for number, text in enumerate(PLAIN))
    own = "CREATE DOMAIN d AS integer CHECK (VALUE > 0); CREATE TABLE e (x d); CREATE VIEW domained AS SELECT x FROM e;"
    name = database(TABLES + script + own)
    for view in (*(f"v{number}" for number in range(len(PLAIN))), "domained"):
        opened(server, name, view).close()


def test_a_type_of_ones_own_may_be_cast_where_no_function_runs(server: Server, database: Make) -> None:
    before = HIDDEN["output function"][0]
    name = database(
        f"{before}; CREATE CAST (odd AS integer) WITHOUT FUNCTION; CREATE VIEW v AS SELECT o::integer FROM odds"
    )
    opened(server, name, "v").close()
