"""What clients ask about the schema by themselves: psql's \\d, SQLAlchemy's reflection, asyncpg's types, pandas."""

from __future__ import annotations

import asyncio
import os
import subprocess

import pytest

from tests.clients_elsewhere.clients import PSQL, missing
from tests.support.served import DATABASE, NAME, PASSWORD, Served


@pytest.mark.xfail(missing(PSQL), reason=f"needs {PSQL}", run=False, strict=False)
def test_psql_describes_tables(served: Served) -> None:
    address = f"host=127.0.0.1 port={served.port} user={NAME} dbname={DATABASE}"
    commands = [part for c in (r"\d", r"\d visits", r"\dt+", r"\dn", r"\l", r"\du", r"\df") for part in ("-c", c)]
    done = subprocess.run(
        ["psql", "-X", "-A", address, *commands], text=True, capture_output=True, timeout=120,
        env={**os.environ, "PGPASSWORD": PASSWORD, "LC_ALL": "C.UTF-8"},
    )  # fmt: skip
    assert done.stderr == ""
    for line in (
        "public|patients|table|custodian", "surcharge|numeric(10,2)|||", "Odd name|timestamp without time zone|||",
        '"visits_visit_id_key" UNIQUE CONSTRAINT, btree (visit_id)',
        '"visits_patient_id_fkey" FOREIGN KEY (patient_id) REFERENCES patients(patient_id)',
        "private: unit patient: all rows of one patient_id, add_remove", "ana|", "clinic|custodian|UTF8",
    ):  # fmt: skip
        assert line in done.stdout, line


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2", "pg8000"])
def test_sqlalchemy_reflects(served: Served, driver: str) -> None:
    sqlalchemy = pytest.importorskip("sqlalchemy")
    engine = sqlalchemy.create_engine(
        sqlalchemy.URL.create(f"postgresql+{driver}", NAME, PASSWORD, "127.0.0.1", served.port, DATABASE)
    )
    inspector = sqlalchemy.inspect(engine)
    assert inspector.get_table_names() == ["icd10", "patients", "visits"]
    assert inspector.get_pk_constraint("patients")["constrained_columns"] == ["patient_id"]
    assert [k["referred_table"] for k in inspector.get_foreign_keys("visits")] == ["patients"]
    assert inspector.get_table_comment("patients")["text"].startswith("private: unit patient")
    tables = sqlalchemy.MetaData()
    tables.reflect(engine)
    visits = tables.tables["visits"]
    assert {c.name: str(c.type) for c in visits.columns}["surcharge"] == "NUMERIC(10, 2)"
    assert visits.c.cost.nullable and not visits.c.day.nullable
    engine.dispose()


def test_asyncpg_asks_in_bytes(served: Served) -> None:
    asyncpg = pytest.importorskip("asyncpg")

    async def ask() -> list[tuple[object, ...]]:
        con = await asyncpg.connect(
            host="127.0.0.1", port=served.port, user=NAME, password=PASSWORD, database=DATABASE, ssl="prefer"
        )
        try:
            sql = "SELECT oid, relname, relnatts, relhasindex FROM pg_class WHERE relname = $1"
            names = "SELECT array_agg(attname::text ORDER BY attnum) FROM pg_attribute WHERE attrelid = $1::oid"
            (row,) = await con.fetch(sql, "patients")
            return [tuple(row)[1:], tuple((await con.fetch(names, row["oid"]))[0])]
        finally:
            await con.close()

    first, second = asyncio.run(ask())
    assert first == ("patients", 5, True)
    assert second == (["patient_id", "age", "region", "town", "smoker"],)
