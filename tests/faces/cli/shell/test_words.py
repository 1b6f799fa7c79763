"""The arguments of meta-commands."""

from __future__ import annotations

import pytest

from dpsql.diagnostics.errors import Rejected
from dpsql.faces.cli.shell.input.meta_words import unquoted, words


@pytest.mark.parametrize(
    ("text", "expected", "rest"),
    [
        (" a  b ", ["a", "b"], ""),
        ("'a  b' c", ["a  b", "c"], ""),
        ("'it''s' '\\n'", ["it's", "\n"], ""),
        ('"My Table" x', ['"My Table"', "x"], ""),
        (":v :'v' :\"v\" :w", ["o'k", "'o''k'", '"o\'k"', ":w"], ""),
        ("a\\b \\x", ["a\\b"], "\\x"),
        ("on \\t off", ["on"], "\\t off"),
        ("", [], ""),
    ],
)
def test_words(text: str, expected: list[str], rest: str) -> None:
    assert words(text, {"v": "o'k"}.get) == (expected, rest)


@pytest.mark.parametrize(("text", "code"), [("'a", "DP903"), ('"a', "DP903"), ("`ls`", "DP906")])
def test_refusals(text: str, code: str) -> None:
    with pytest.raises(Rejected) as refusal:
        words(text, {}.get)
    assert [d.code for d in refusal.value.diagnostics] == [code]


def test_quotes_of_names() -> None:
    assert [unquoted(t) for t in ('"A b"', "x", '"', '"a""b"')] == ["A b", "x", '"', 'a"b']
