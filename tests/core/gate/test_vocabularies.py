"""The lists of names: what is printed of them passes the gate, and no name is on a list that nothing needs."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest

from dpsql.core.gate.grammar import is_scalar
from dpsql.core.gate.vocabularies import OF_DIALECTS
from dpsql.core.ir.public_facts import PublicFacts
from dpsql.core.printing.dialect import Dialect
from dpsql.core.printing.dialects.postgres_again import PostgresAgain
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Rejected
from dpsql.planner.compile import compile_query
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.spelling.duckdb_functions import DUCKDB
from dpsql.spelling.postgres_functions import POSTGRES
from dpsql.spelling.spark_functions import SPARK
from tests.fixtures.cases import files, policy
from tests.support.scalar_texts import texts

DIALECTS: list[Dialect] = [DUCKDB, POSTGRES, SPARK]


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda d: d.name)
def test_every_function_and_cast_passes_and_every_name_is_used(dialect: Dialect) -> None:
    vocabulary, seen = OF_DIALECTS[dialect.name], set[str]()
    for text, atoms, function in texts(dialect, 20):
        assert is_scalar(text, atoms, vocabulary), (function, text)
        seen |= set(re.findall(r"[A-Za-z_]\w*|[^\w\s'()\[\],.]+", text))
    listed = vocabulary.functions | vocabulary.special | vocabulary.fields | vocabulary.typed | vocabulary.casts
    assert sorted((listed | vocabulary.operators) - seen) == []


def test_what_postgres_is_asked_the_second_time_passes() -> None:
    again = PostgresAgain(POSTGRES)
    for text, atoms, function in texts(again, 4):
        assert is_scalar(text, atoms, OF_DIALECTS[again.name]), (function, text)
    assert again.functions


@pytest.mark.parametrize("dialect", DIALECTS[1:], ids=lambda d: d.name)
def test_texts_of_fixtures_pass(dialect: Dialect) -> None:
    """Those of DuckDB are printed by tests/fixtures."""
    seen = 0
    for case in [case for file in files() for case in file.cases][::5]:
        settings = QuerySettings(Fraction(1), Fraction(1, 10**6), dialect=case.settings.get("dialect", "duckdb"))
        loaded = policy(case.settings["policy"])
        try:
            compile_query(Source(case.sql), loaded, PublicFacts(), settings, case.parameters, dialect=dialect)
            seen += 1
        except Rejected as refusal:
            assert "DP904" not in str(refusal), case.id
    assert seen > 30
