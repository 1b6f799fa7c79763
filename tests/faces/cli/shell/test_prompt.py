"""The sign of the continuation prompt, and when Enter hands an input over."""

from __future__ import annotations

import time

import pytest

from dpsql.faces.cli.shell.input.loop import finished
from dpsql.faces.cli.shell.input.prompt import open_sign

SIGNS = {
    "": "-",
    "SELECT 1": "-",
    "SELECT 'a": "'",
    "SELECT 'a''": "'",
    "SELECT 'a'": "-",
    "SELECT '\\'": "-",
    "SELECT E'a\\'": "'",
    "SELECT e'a\\''": "-",
    "SELECT line'": "'",
    'SELECT "a': '"',
    'SELECT "a""b': '"',
    "SELECT \"'\" '\"' '(' \"(\"": "-",
    "SELECT f(": "(",
    "SELECT (f(1)": "(",
    "SELECT f(1))": "-",
    "SELECT ((1; SELECT": "-",
    "SELECT (-- )": "(",
    "SELECT -- '": "-",
    "SELECT -- '\n'": "'",
    "SELECT /* ": "*",
    "SELECT (/* ' */ '": "'",
    "SELECT /* /* */ (": "*",
    "SELECT /* /* */ */ (": "(",
    "SELECT '/*'": "-",
    "SELECT $$ ' (": "$",
    "SELECT $a$ $$ '": "$",
    "SELECT $a$ $b$ ' $a$": "-",
    "SELECT $$ ' $$ (": "(",
    "SELECT $1 + $2": "-",
    "SELECT $name": "-",
}


@pytest.mark.parametrize("text", SIGNS)
def test_the_sign_of_what_is_open(text: str) -> None:
    assert open_sign(text) == SIGNS[text]


@pytest.mark.parametrize("piece", ["'", '"', "(", "/*", "''", "$$", "$a$", "E'", "\\'", "--", "'a\\'", "$a", "*/"])
def test_long_inputs_are_read_in_time_that_grows_with_them(piece: str) -> None:
    began = time.process_time()
    open_sign(piece * 20_000)
    assert time.process_time() - began < 20


@pytest.mark.parametrize("text", [";", "-- c\n;", "/* c */ ;", "-- c\n\n ; -- d", "-- c", "/* c */", ";;"])
def test_a_semicolon_hands_over_what_is_empty(text: str) -> None:
    """psql, too, goes back to its first prompt."""
    assert finished(text, "", "duckdb")


@pytest.mark.parametrize("text", ["/* ;", "-- c\n';", "SELECT 1 -- ;", "SELECT 1 /* ; */"])
def test_one_in_a_text_or_a_comment_does_not(text: str) -> None:
    assert not finished(text, "", "duckdb")
