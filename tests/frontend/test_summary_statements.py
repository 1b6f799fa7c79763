"""CREATE and DROP DP SUMMARY as text: what is read, what is written, and what is none of them."""

from __future__ import annotations

import pytest

from dpsql.diagnostics.errors import Rejected
from dpsql.frontend.text.summary_statements import CreateSummary, DropSummary, summary_statement


@pytest.mark.parametrize(
    ("sql", "meant"),
    [
        ("CREATE DP SUMMARY s ON t (a)", CreateSummary("s", ("t",), ("a",))),
        ("create dp summary S on x.t (a, b) with (k=3)", CreateSummary("S", ("x", "t"), ("a", "b"), 3)),
        (
            'CREATE DP SUMMARY "my board" ON t ("or", b) WITH (epsilon = .5, k = 1);',
            CreateSummary("my board", ("t",), ("or", "b"), 1, (("epsilon", ".5"),)),
        ),
        (
            "/* why */ CREATE DP SUMMARY s -- so\n ON t (a) WITH (rho = '1/3')",
            CreateSummary("s", ("t",), ("a",), 2, (("rho", "'1/3'"),)),
        ),
        ('DROP DP SUMMARY "a""b"', DropSummary('a"b')),
    ],
)
def test_it_is_read_and_written_so_that_it_is_read_alike(sql: str, meant: CreateSummary | DropSummary) -> None:
    assert summary_statement(sql) == meant == summary_statement(meant.sql)


@pytest.mark.parametrize(
    "sql",
    ["", "SELECT 1", "CREATE SUMMARY s ON t (a)", "CREATE TABLE summary (dp int)", "SELECT 'CREATE DP SUMMARY s'",
     "DP SUMMARY", "EXPLAIN CREATE DP SUMMARY s ON t (a)", "summary", "DELETE DP SUMMARY s"],
)  # fmt: skip
def test_other_statements_are_none(sql: str) -> None:
    assert summary_statement(sql) is None


@pytest.mark.parametrize(
    ("sql", "what"),
    [
        ("CREATE DP SUMMARY", "a name is missing"),
        ("CREATE DP SUMMARY s", "ON is missing"),
        ("CREATE DP SUMMARY select ON t (a)", "a name is missing"),
        ("CREATE DP SUMMARY s ON t a", r"\( is missing"),
        ("CREATE DP SUMMARY s ON t (a", r"\) is missing"),
        ("CREATE DP SUMMARY s ON t (a, A)", "named twice"),
        ("CREATE DP SUMMARY s ON t (a) WITH", r"\( is missing"),
        ("CREATE DP SUMMARY s ON t (a) WITH ()", "a name is missing"),
        ("CREATE DP SUMMARY s ON t (a) WITH (k = 2, k = 2)", "an option of a summary"),
        ("CREATE DP SUMMARY s ON t (a) WITH (delta = 1)", "an option of a summary"),
        ("CREATE DP SUMMARY s ON t (a) WITH (k = 1.5)", "whole number"),
        ("CREATE DP SUMMARY s ON t (a) WITH (k = 2) x", "ends before this"),
        ('CREATE DP SUMMARY "s ON t (a)', "a name is missing"),
        (f"CREATE DP SUMMARY {'x' * 64} ON t (a)", "at most 63"),
        ('CREATE DP SUMMARY "a\x1b[2J" ON t (a)', "cannot be printed"),
        ("DROP DP SUMMARY s, t", "ends before this"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_form(sql: str, what: str) -> None:
    with pytest.raises(Rejected, match=what) as refusal:
        summary_statement(sql)
    (found,) = refusal.value.diagnostics
    assert found.code == "DP010" and found.span is not None
    assert "write  CREATE DP SUMMARY name ON table (column, …) WITH (k = 2, epsilon = 0.5)" in found.help
