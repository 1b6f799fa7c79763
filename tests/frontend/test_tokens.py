"""The quick tokens are sqlglot's, of every text that is read quickly; and the texts that people write are."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st
from sqlglot.errors import SqlglotError

from benchmarks.planning import FIVE_TABLES
from benchmarks.queries import QUERIES
from dpsql.frontend.text.tokens import _plain, tokens_of

ROOT = Path(__file__).parents[2]
DIALECTS = ("duckdb", "postgres")
PIECES = (
    *"(),.;=<>!|:?-/*%[]{$@~^&#\\`",
    *("<=", "<>", "!=", "||", "::", "--", "/*", "**", "//", "$1"),
    *("a", "x1", "_y", "E", "n", "é", "1", "1.5", ".5", "1.", "0x1", "1e5", "1_0", "'s'", "''", "'it''s'", '"q"', '"'),
    *("select", "FROM", "GROUP BY", "group by", "ORDER  BY", "PARTITION\nBY", "BY", "GROUP", "DOUBLE PRECISION"),
    *("FETCH", "user", "USER-DEFINED", "GROUPING SETS", "CHAR", "E'x'", " ", "  ", "\n", "\t", "\r", "\f", "\u00a0"),
)


@cache
def reader(dialect: str) -> sqlglot.Dialect:
    return sqlglot.Dialect.get_or_raise(dialect)


def parts(tokens: list[sqlglot.Token]) -> list[tuple[object, ...]]:
    return [(t.token_type, t.text, t.line, t.col, t.start, t.end, t.comments) for t in tokens]


def agrees(text: str, dialect: str) -> bool:
    """Whether a text is read quickly; then the tokens have to be those of sqlglot."""
    quick = _plain(text + "\n", reader(dialect))
    if quick is not None:
        assert parts(quick) == parts(reader(dialect).tokenize(text + "\n")), text
    return quick is not None


@pytest.mark.parametrize("dialect", DIALECTS)
@given(st.lists(st.tuples(st.sampled_from(PIECES), st.sampled_from(["", " ", "\n"])), max_size=8))
def test_any_text(dialect: str, drawn: list[tuple[str, str]]) -> None:
    agrees("".join(piece + space for piece, space in drawn), dialect)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_texts_of_the_fixtures_and_examples(dialect: str) -> None:
    """What stands between comments, empty lines and semicolons of all files."""
    folders = ROOT / "tests" / "fixtures", ROOT / "examples"
    files = [file for folder in folders for ext in ("sql", "test", "yaml") for file in folder.rglob(f"*.{ext}")]
    texts = [file.read_text(encoding="utf-8") for file in files]
    each = {part for text in texts for part in re.split(r"\n\s*\n|;|^--.*$|^-{4}$", text, flags=re.MULTILINE)}
    quick = sum(agrees(text, dialect) for text in each)
    assert quick > 300, f"{quick} of {len(each)}"


def test_what_people_write_is_read_quickly() -> None:
    for text in (FIVE_TABLES, *(q.sql for q in QUERIES)):
        assert agrees(text, "duckdb"), text


@pytest.mark.parametrize(
    "text", ["SELECT 1 -- c", "SELECT $1", "SELECT E'x'", "SELECT a$b", "SELECT 1e5", "GROUP  BY x", "SHOW 'x''y'"]
)
def test_what_is_not_plain_is_left_to_sqlglot(text: str) -> None:
    assert _plain(text + "\n", reader("duckdb")) is None
    found, own = tokens_of(text + "\n", reader("duckdb")), reader("duckdb").tokenize(text + "\n")
    same = "$1" in text  # of a parameter, line and column of sqlglot's own lie behind it
    assert [(t.token_type, t.text, t.start, t.end) for t in found] == [
        (t.token_type, t.text, t.start, t.end) for t in own
    ]
    assert same or parts(found) == parts(own)


@pytest.mark.parametrize("dialect", DIALECTS)
@given(st.lists(st.tuples(st.sampled_from(PIECES), st.sampled_from(["", " ", "\n"])), max_size=8))
def test_parameters_are_read_as_they_are_with_blanks_around_them(dialect: str, drawn: list[tuple[str, str]]) -> None:
    """Wherever sqlglot itself reads the text, and takes none of it for a dollar quote."""
    text = "".join(piece + space for piece, space in drawn) + "\n"
    try:
        own = reader(dialect).tokenize(text)
    except SqlglotError:
        return
    if "$" not in text or any(t.token_type is sqlglot.TokenType.HEREDOC_STRING for t in own):
        return
    found = tokens_of(text, reader(dialect))
    assert [(t.token_type, t.text, t.start, t.comments) for t in found] == [
        (t.token_type, t.text, t.start, t.comments) for t in own
    ]


def test_side_by_side_they_are_two() -> None:
    for dialect in DIALECTS:
        found = tokens_of("a IN ($1,$2,$30)\n", reader(dialect))
        assert [t.text for t in found] == ["a", "IN", "(", "$", "1", ",", "$", "2", ",", "$", "30", ")"]
        quoted = tokens_of("SELECT $a$ $1,$2 $a$, '$1,$2', \"$1\" -- $1,$2\n", reader(dialect))
        assert [t.text for t in quoted] == ["SELECT", " $1,$2 ", ",", "$1,$2", ",", "$1"]
        assert quoted[-1].comments == [" $1,$2"]


@pytest.mark.parametrize("dialect", ["bigquery", "spark", "mysql", "tsql", "snowflake"])
def test_other_dialects_are_left_to_sqlglot(dialect: str) -> None:
    """`"a"` is a text in some of them."""
    text = 'SELECT "a", b FROM t\n'
    assert parts(tokens_of(text, reader(dialect))) == parts(reader(dialect).tokenize(text))
