"""Offsets and the protocol's positions, which are a bijection on the places between characters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.faces.editor.text_positions import Lines

TEXTS = st.lists(
    st.sampled_from(["a", "é", "e\u0301", "名", "😀", "\t", "\n", "\r\n", "\u2028", "\x0b", "\ufeff"]), max_size=12
)
ENCODINGS = st.sampled_from(["utf-8", "utf-16", "utf-32"])


@pytest.mark.parametrize("encoding, character", [("utf-8", 7), ("utf-16", 4), ("utf-32", 3)])
def test_what_a_character_counts(encoding: str, character: int) -> None:
    lines = Lines("x\r\na名\u2028\r😀é", encoding)
    assert lines.starts == (0, 3, 7)
    text = Lines("a😀éx", encoding)
    assert text.position(3) == (0, character) and text.offset(0, character) == 3


def test_places_outside_are_moved_into_the_text() -> None:
    lines = Lines("ab\r\n😀")
    assert lines.offset(0, 99) == 2 and lines.offset(9, 0) == 5 and lines.offset(-1, 3) == 0
    assert lines.offset(1, 1) == 4  # half of a pair
    assert lines.position(99) == (1, 2) and lines.position(-1) == (0, 0)


@given(TEXTS.map("".join), ENCODINGS)
def test_there_and_back(text: str, encoding: str) -> None:
    lines = Lines(text, encoding)
    for offset in range(len(text) + 1):
        if 0 < offset < len(text) and text[offset - 1 : offset + 1] == "\r\n":
            continue  # no position is between the two
        line, character = lines.position(offset)
        assert lines.offset(line, character) == offset
        if encoding == "utf-16":
            last = max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1
            assert character == len(text[last:offset].encode("utf-16-le")) // 2
