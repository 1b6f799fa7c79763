"""Comments between tokens, and the shape of a statement: what changes it and what does not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.frontend.text.split import split_text

TOKENS = [
    "SELECT", "a", ",", "'it''s -- no comment'", '"/* nor this */"', "1.5", "<=", "::", "$$ # nor -- this $$", "é",
    "(", ")", "COUNT", "*", "+", "||",
]  # fmt: skip
GAPS = [" ", "\n", "\r\n\t", " /* c */ ", " -- c ; d\n", " /* dpsql: ignore[DP301] 'x' */\n", "  \n\n"]


@pytest.mark.parametrize(
    ("text", "comments"),
    [
        ("SELECT 1", []),
        ("-- a\nSELECT 1 -- b", ["-- a", "-- b"]),
        ("/* a */SELECT/* b\n\n*/1;/**/--", ["/* a */", "/* b\n\n*/", "/**/", "--"]),
        ("SELECT '-- a', \"/* b */\", $$ -- c $$", []),
        ("SELECT 1 -- é🙂\r\n; -- b\r\n", ["-- é🙂", "-- b"]),
        ("SELECT 1 - -1, 2 -1", []),
        ("SELECT 'open -- a", []),  # no tokens, so no comments
    ],
)
def test_comments(text: str, comments: list[str]) -> None:
    found = split_text(text).comments
    assert [c.text for c in found] == comments
    assert all(text[c.start : c.start + len(c.text)] == c.text for c in found)


def test_comments_are_those_of_the_dialect() -> None:
    assert [c.text for c in split_text("SELECT 1 # a\n, `-- b`", "bigquery").comments] == ["# a"]


@given(
    tokens=st.lists(st.sampled_from(TOKENS), min_size=1, max_size=8),
    first=st.lists(st.sampled_from(GAPS), min_size=9, max_size=9),
    second=st.lists(st.sampled_from(GAPS), min_size=9, max_size=9),
)
def test_the_shape_is_that_of_the_tokens(tokens: list[str], first: list[str], second: list[str]) -> None:
    shapes = []
    for gaps in (first, second):
        text = gaps[-1] + "".join(token + gap for token, gap in zip(tokens, gaps, strict=False)) + ";"
        (statement,) = split_text(text).statements
        assert text[statement.start : statement.end] == statement.text
        shapes.append(statement.shape)
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize("other", ["SELECT b", "SELECT A", "SELECT a a", "SELECTa", "select a", "SELECT 'a'", "SELECT"])
def test_other_tokens_have_another_shape(other: str) -> None:
    assert split_text(other).statements[0].shape != split_text("SELECT a").statements[0].shape
