"""Several statements in one text: where each begins and ends."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.diagnostics.errors import Rejected
from dpsql.faces.server.front.commands.client_tokens import statements
from dpsql.frontend.text.batch_statement import batch_statement
from dpsql.frontend.text.split import TextStatement, split_statements


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (";;\n ;", []),
        ("-- only; a comment", []),
        ("SELECT 1", ["SELECT 1"]),
        ("SELECT 1;", ["SELECT 1"]),
        ("  SELECT 1 ;; SELECT 2  ", ["SELECT 1", "SELECT 2"]),
        ("SELECT ';'; SELECT \"a;b\"", ["SELECT ';'", 'SELECT "a;b"']),
        ("SELECT 1 -- ; x\n + 1; /* ; */ SELECT 2", ["SELECT 1 -- ; x\n + 1", "SELECT 2"]),
        ("SELECT $$a;b$$; SELECT 'it''s;'", ["SELECT $$a;b$$", "SELECT 'it''s;'"]),
        ("SELECT '日本;🙂'; SELECT 'é'", ["SELECT '日本;🙂'", "SELECT 'é'"]),
        ("COPY t TO 'x;y'; SET a = 'b;c'; SELECT 3", ["COPY t TO 'x;y'", "SET a = 'b;c'", "SELECT 3"]),
        ("SELECT $1; SELECT $1, ''", ["SELECT $1", "SELECT $1, ''"]),
        ("DP BATCH (SELECT 1; SELECT (2)); SELECT 3;", ["DP BATCH (SELECT 1; SELECT (2))", "SELECT 3"]),
        (
            "SELECT 0; explain /* ; */ -- ;\n dp batch (SELECT 1; SELECT 2) ; SELECT 3",
            ["SELECT 0", "explain /* ; */ -- ;\n dp batch (SELECT 1; SELECT 2)", "SELECT 3"],
        ),
        (
            "EXPLAIN (COST) DP BATCH (SELECT 1; SELECT 2; SELECT 3)",
            ["EXPLAIN (COST) DP BATCH (SELECT 1; SELECT 2; SELECT 3)"],
        ),
        (
            "prepare q AS DP BATCH (SELECT 1; SELECT 2; SELECT 3)",
            ["prepare q AS DP BATCH (SELECT 1; SELECT 2; SELECT 3)"],
        ),
        ("EXPLAIN SELECT 'EXPLAIN DP BATCH (a'; SELECT 1", ["EXPLAIN SELECT 'EXPLAIN DP BATCH (a'", "SELECT 1"]),
        ("DP -- ;\rBATCH -- (\r(SELECT 1; SELECT 2)", ["DP -- ;\rBATCH -- (\r(SELECT 1; SELECT 2)"]),
        (
            "SELECT $EXPLAIN$ a $ANALYZE$; b $EXPLAIN$; SELECT 1",
            ["SELECT $EXPLAIN$ a $ANALYZE$; b $EXPLAIN$", "SELECT 1"],
        ),
        ("DP BATCH; SELECT 1", ["DP BATCH", "SELECT 1"]),
        ("DP BATCH (SELECT 1; SELECT 2", ["DP BATCH (SELECT 1; SELECT 2"]),
        ("SELECT 1; SELECT 'open; SELECT 2", ["SELECT 1; SELECT 'open; SELECT 2"]),
    ],
)
def test_statements(text: str, expected: list[str]) -> None:
    found = split_statements(text)
    assert [s.text for s in found] == expected
    assert all(text[s.start : s.start + len(s.text)] == s.text for s in found)


def test_quotes_are_those_of_the_dialect() -> None:
    assert [s.text for s in split_statements("SELECT `a;b`; SELECT 2", "bigquery")] == ["SELECT `a;b`", "SELECT 2"]
    with pytest.raises(Rejected, match="DP903"):
        split_statements("SELECT 1", "klingon")


@given(
    parts=st.lists(st.sampled_from(["SELECT 1", "SELECT 'a;é'", 'SELECT "b;" FROM t', "WITH q AS (SELECT 1) SELECT 2"]))
)
def test_statements_joined_come_apart_again(parts: list[str]) -> None:
    assert [s.text for s in split_statements(" ;\n--;\n".join(parts))] == parts


@given(text=st.text(alphabet="SELECT 1;'\"-/*\n$é🙂()", max_size=40))
def test_any_text_is_split_and_every_offset_is_right(text: str) -> None:
    end = 0
    for s in split_statements(text):
        assert isinstance(s, TextStatement) and s.start >= end and text[s.start : s.start + len(s.text)] == s.text
        end = s.start + len(s.text)


def test_all_readers_end_a_line_alike() -> None:
    """PostgreSQL and the parser end a comment where a line of old files ends, too."""
    text = "DP BATCH -- queries\r(SELECT 1; -- another\rSELECT 2); SELECT 3"
    first, second = split_statements(text)
    assert [s.text.strip() for s in statements(text)] == [first.text, second.text]
    batch = batch_statement(first.text)
    assert batch is not None and [s.text for s in split_statements(batch.queries)] == ["SELECT 1", "SELECT 2"]
