"""The front asks the catalogue: columns and parameters by types that the wire has, refusals by name."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from dpsql.faces.server.catalogue.catalogue_asking import CatalogueOfLogins
from dpsql.faces.server.front.route import Route
from dpsql.faces.server.statements import Answer, Login, Refused, StatementSettings, Value
from dpsql.faces.server.wire.wire_values import encoder, wire_type
from dpsql.policy.load import load_policy
from tests.support import recorded_catalogue as r
from tests.support.answering import Answers

ANA, BO = Login("ana", "ana"), Login("bo", "bo")


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> CatalogueOfLogins:
    place = Path(tmp_path_factory.mktemp("catalogue")) / "clinic.yaml"
    place.write_text(r.POLICY, encoding="utf-8")
    return CatalogueOfLogins(load_policy(place))


def ask(catalogue: CatalogueOfLogins, sql: str, *values: Value, login: Login = ANA) -> Answer:
    async def both() -> Answer:
        described = await catalogue.describe(login, sql, StatementSettings())
        answer = await catalogue.run(login, described, values, StatementSettings(), "1")
        assert answer.columns == described.columns
        return answer

    return asyncio.run(both())


def test_types_and_values_are_those_of_the_wire(catalogue: CatalogueOfLogins) -> None:
    """Oids of PostgreSQL, in text and in bytes."""
    sql = "SELECT oid, relname, relkind, relhasindex, relnatts, reltuples FROM pg_class WHERE relname = 'visits'"
    answer = ask(catalogue, sql)
    assert [wire_type(t).oid for _, t in answer.columns] == [26, 19, 18, 16, 21, 700]
    (row,) = answer.rows
    assert [encoder(t, 0)(v) for (_, t), v in zip(answer.columns[1:], row[1:], strict=True)] == [
        b"visits", b"r", b"t", b"9", b"-1",
    ]  # fmt: skip
    assert encoder(answer.columns[0][1], 1)(row[0]) == int(row[0]).to_bytes(4, "big")


def test_arrays_and_vectors(catalogue: CatalogueOfLogins) -> None:
    sql = (
        "SELECT indkey, ARRAY(SELECT attname FROM pg_attribute WHERE attrelid = indrelid AND attnum = 1) FROM pg_index"
    )
    answer = ask(catalogue, sql)
    assert [wire_type(t).oid for _, t in answer.columns] == [22, 1003]
    texts = {tuple(encoder(t, 0)(v) for (_, t), v in zip(answer.columns, row, strict=True)) for row in answer.rows}
    assert (b"1", b"{visit_id}") in texts


def test_values_of_parameters(catalogue: CatalogueOfLogins) -> None:
    """Their types come from casts and from columns; a list is one of PostgreSQL's arrays."""
    sql = "SELECT typname FROM pg_type WHERE oid = any($1::oid[]) AND typname <> $2 ORDER BY 1"
    described = asyncio.run(catalogue.describe(ANA, sql, StatementSettings()))
    assert [wire_type(t).oid for t in described.parameters] == [1016, 19]
    assert list(ask(catalogue, sql, [16, 25, 23], "int4").rows) == [("bool",), ("text",)]


def test_a_question_about_the_catalogue_reaches_nobody_else(catalogue: CatalogueOfLogins) -> None:
    """Answered or refused: those who hold the data are not asked."""
    others = Answers()
    route = Route(others, catalogue)

    async def ask_all() -> None:
        await route.describe(ANA, "SELECT relname FROM pg_class", StatementSettings())
        with pytest.raises(Refused):
            await route.describe(ANA, "SELECT n FROM pg_catalog.unheard_of", StatementSettings())
        assert others.asked == []
        await route.run(ANA, await route.describe(ANA, "SELECT n", StatementSettings()), (), StatementSettings(), "1")

    asyncio.run(ask_all())
    assert [sql for _, sql, _, _ in others.asked] == ["SELECT n"]


def test_each_login_sees_its_own_name(catalogue: CatalogueOfLogins) -> None:
    assert list(ask(catalogue, "SELECT current_user").rows) == [("ana",)]
    assert list(ask(catalogue, "SELECT current_user", login=BO).rows) == [("bo",)]


@pytest.mark.parametrize(
    ("sql", "column"),
    [
        ("SELECT nosuch FROM pg_class", "nosuch"), ("SELECT a.nosuch FROM pg_attribute a", "nosuch"),
        ("SELECT relname FROM pg_class ORDER BY nosuch", "nosuch"), ("SELECT relname + 1 FROM pg_class", ""),
        ("SELECT relname, count(*) FROM pg_class", ""), ("SELECT 'x'::int FROM pg_class", ""),
    ],
)  # fmt: skip
def test_a_column_that_there_is_not_is_named(catalogue: CatalogueOfLogins, sql: str, column: str) -> None:
    """Who looks whether a column is there does not take it for a question that was too long."""
    with pytest.raises(Refused) as refused:
        ask(catalogue, sql)
    (found,) = refused.value.diagnostics
    assert found.code == ("DP103" if column else "DP101")
    assert f"column {column} does not exist" == found.message if column else "do not fit" in found.message


@pytest.mark.parametrize("sql", ["SELECT * FROM pg_catalog.pg_unheard_of", "SELECT pg_sleep(5)", "SELECT pg_ FROM"])
def test_a_refusal_says_what_is_not_listed(catalogue: CatalogueOfLogins, sql: str) -> None:
    with pytest.raises(Refused) as refused:
        ask(catalogue, sql)
    assert refused.value.sqlstate == "0A000"
    assert "not on the list" in refused.value.diagnostics[0].message
