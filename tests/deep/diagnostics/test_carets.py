"""What stands between the parts of a query moves the caret by its length."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.diagnostics.test_carets import PLAIN, QUERIES, _found

TRIVIA = st.lists(
    st.sampled_from(
        [" ", "\t", "\n", "\r\n", "-- a comment, (SELECT 'x\n", "/* 名 e\u0301 😀 ) */", "/* two\nlines */", "--\n"]
    ),
    max_size=3,
).map("".join)


def _tokens(text: str) -> list[tuple[int, int]]:
    return [m.span() for m in re.finditer(r"'[^']*'|\"[^\"]*\"|\S+", text)]


@settings(max_examples=300)
@given(st.sampled_from(QUERIES), st.data())
def test_what_stands_between_moves_the_caret(query: str, data: st.DataObject) -> None:
    """The same findings, at the same tokens, wherever the tokens have gone."""
    pieces, starts, ends, at = [], {}, {}, 0
    for start, end in _tokens(query):
        gap = data.draw(TRIVIA) + (" " if start else "")
        pieces += [gap, query[start:end]]
        at += len(gap)
        starts[start], ends[end] = at, at + end - start
        at += end - start
    text = "".join([*pieces, data.draw(TRIVIA)])
    expected = [(code, message, starts[start], ends[end]) for code, message, start, end in PLAIN[query]]
    assert _found(text) == expected
