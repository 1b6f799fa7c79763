"""A real PostgreSQL 15 answers what clients asked as `tests/fixtures/catalogue/recorded.json` has it.

Our own answers are compared with that file where no PostgreSQL is (tests/faces/server/test_catalogue.py). `--update`
rewrites the answers; the statements are what clients sent, as a server's log had them.
"""

from __future__ import annotations

import json
from typing import Any

import psycopg
import pytest
from psycopg.types.string import StrDumperUnknown

from tests.engines_elsewhere.postgres.servers import Server
from tests.support import recorded_catalogue as r

OWNER, LOGIN, DATABASE = "custodian", "ana", "clinic"


def test_a_server_answers_as_it_was_recorded(one_server: Server, update: bool) -> None:
    """Names, types and rows of every recorded statement."""
    server = one_server
    if server.name != "postgres15":
        pytest.skip("the recordings are of PostgreSQL 15")
    with server.admin() as admin:
        admin.execute(f"CREATE ROLE {OWNER} SUPERUSER LOGIN")
        admin.execute(f"CREATE ROLE {LOGIN} LOGIN")
        admin.execute(f"CREATE DATABASE {DATABASE} TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C.UTF-8' OWNER {OWNER}")
    try:
        with psycopg.connect(server.address(DATABASE, OWNER), autocommit=True) as owner:
            owner.execute(f"ALTER SCHEMA public OWNER TO {OWNER}")
            owner.execute(r.SCRIPT)
        with psycopg.connect(server.address(DATABASE, LOGIN), autocommit=True) as connection:
            connection.adapters.register_dumper(str, StrDumperUnknown)
            asked = [(s, _answer(connection, s)) for s in r.recorded()]
    finally:
        server.drop(DATABASE)
        with server.admin() as admin:
            admin.execute(f"DROP ROLE {LOGIN}")
            admin.execute(f"DROP ROLE {OWNER}")
    if update:
        r.PLACE.write_text(json.dumps([s | a for s, a in asked], indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for statement, answer in asked:
        assert {k: statement[k] for k in answer} == answer, statement["sql"]


def _answer(connection: psycopg.Connection[Any], statement: dict[str, Any]) -> dict[str, Any]:
    oids = {n: connection.execute(f"SELECT '{n}'::regclass::oid").fetchone()[0] for n in r.NAMES}  # type: ignore[index]
    types = dict(connection.execute("SELECT oid, format_type(oid, NULL) FROM pg_type").fetchall())
    rows_of = "SELECT 'type ' || typname, oid FROM pg_type WHERE ltrim(typname, '_') = ANY (%s)"
    numbers = oids | dict(connection.execute(rows_of, [list(r.NAMES)]).fetchall())
    cursor = psycopg.RawCursor(connection)
    values = [r.with_oids(v, oids) for v in statement["values"]]
    cursor.execute(str(r.with_oids(statement["sql"], oids)).encode(), values or None)
    result = cursor.pgresult
    assert result is not None
    rows = [
        [
            None if (v := result.get_value(i, j)) is None else r.without_oids(v.decode(), numbers)
            for j in range(result.nfields)
        ]
        for i in range(result.ntuples)
    ]
    whole = len(rows) <= r.MANY
    ours = [row for row in rows if whole or any(name in str(v) for v in row for name in ("{oid:", *r.NAMES))]
    return {
        "names": [d.name for d in cursor.description or ()],
        "types": [types[d.type_code] for d in cursor.description or ()],
        "whole": whole,
        "rows": ours,
    }
