"""What is printed for PostgreSQL, without a server: no word of another engine, and all texts compared by their bytes.

That the statements give DuckDB's rows is tests/engines_elsewhere/postgres' to show.
"""

from __future__ import annotations

import json
import re
from fractions import Fraction

import pytest
import sqlglot
from sqlglot import exp

from dpsql.core.ir.public_facts import PublicFacts
from dpsql.core.ir.types import Kind
from dpsql.core.printing.shapes.release_statement import Statement
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Rejected
from dpsql.planner.compile import compile_query
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.spelling.postgres_functions import POSTGRES
from tests.fixtures.cases import FOLDER, Case, policy, read

CASES = [case for name in ("answers", "shapes") for case in read(FOLDER / "sql" / f"{name}.test").cases]
FOREIGN = re.compile(
    r"//|\bQUALIFY\b|\bTRY_CAST\b|\bHUGEINT\b|\b(SEMI|ANTI) JOIN\b|\blist_\w+\(|\bhash\(|\bto_(months|microseconds)\("
    r"|\bAS (DOUBLE|TINYINT|UBIGINT|VARCHAR|DECIMAL)\b|\blen\(|\bepoch\("
)


def printed(case: Case) -> list[str]:
    """The texts of a case's statements. Raises Rejected."""
    return [s.sql.replace("\0salt\0", "5") for s in asked(case)]


def asked(case: Case) -> list[Statement]:
    """The statements of a case. Raises Rejected."""
    loaded = policy(case.settings["policy"])
    settings = QuerySettings(Fraction(1), Fraction(1, 10**6), dialect=case.settings.get("dialect", "duckdb"))
    parameters = json.loads(case.settings.get("parameters", "[]"))
    plan = compile_query(Source(case.sql), loaded, PublicFacts(), settings, parameters, dialect=POSTGRES)
    return [s for r in plan.releases for s in r.statements]


def test_no_statement_has_a_word_of_another_engine() -> None:
    found = 0
    for case in CASES:
        try:
            texts = printed(case)
        except Rejected as refusal:
            assert all("cannot be computed exactly on PostgreSQL" in d.message for d in refusal.diagnostics), case.id
            continue
        for text in texts:
            if "\0" in text:  # reads the rows of another release
                continue
            found += 1
            outside = re.sub(r"'[^']*'|\"[^\"]*\"", "''", text)
            assert not FOREIGN.search(outside), (case.id, FOREIGN.search(outside), text)
            assert isinstance(sqlglot.parse_one(text, dialect="postgres"), exp.Query)
    assert found >= 20


def test_every_text_of_a_table_is_compared_by_its_bytes() -> None:
    compared = 0
    for case in CASES:
        texts = {
            (table.name, c.name)
            for table in policy(case.settings["policy"]).tables.values()
            for c in table.columns.values()
            if c.sql_type is not None and c.sql_type.kind is Kind.VARCHAR
        }
        try:
            statements = [sqlglot.parse_one(text, dialect="postgres") for text in printed(case) if "\0" not in text]
        except Rejected:
            continue
        for statement in statements:
            tables = {t.alias: t.name for t in statement.find_all(exp.Table)}
            for column in statement.find_all(exp.Column):
                if (tables.get(column.table), column.name) in texts:
                    compared += 1
                    assert isinstance(column.parent, exp.Collate), (case.id, column.sql())
    assert compared >= 20


def test_weights_of_ids_read_every_relation_once() -> None:
    """One that is read twice is kept, and read by one worker alone."""
    found = 0
    for case in CASES:
        try:
            statements = [s for s in asked(case) if s.shape.endswith("weights per id") and "\0" not in s.sql]
        except Rejected:
            continue
        for s in statements:
            tree = sqlglot.parse_one(s.sql, dialect="postgres")
            kept = {cte.alias for cte in tree.find_all(exp.CTE)}
            read = [t.name for t in tree.find_all(exp.Table) if t.name in kept]
            assert {"q", "g"} <= kept and len(read) == len(kept) == len(set(read)), (case.id, s.sql)
            found += 1
    assert found >= 2


@pytest.mark.parametrize("words", ["a'b", "\\", "'; DROP TABLE t; --", "$$", "E'\\'"])
def test_a_text_is_one_literal(words: str) -> None:
    parsed = sqlglot.parse_one(f"SELECT {POSTGRES.text(words)}", dialect="postgres")
    (literal,) = parsed.expressions
    assert isinstance(literal, exp.Literal) and literal.this == words
