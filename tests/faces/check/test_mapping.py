"""From places in a made text back to the text that it was made from."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from dpsql.diagnostics.diagnostic import Span
from dpsql.faces.check.documents.mapping import Mapping, TextChange, compared, edited


def at(text: str, part: str, start: int = 0) -> Span:
    found = text.index(part, start)
    return Span(found, found + len(part))


def shown(original: str, back: Mapping, made: str, part: str) -> str:
    place = back(at(made, part))
    return original[place.start : place.end]


def test_edits_keep_what_stands_around_them() -> None:
    text = 'SELECT x FROM "db"."t" WHERE y'
    made, back = edited(text, [TextChange(at(text, '"db"."t"'), "t")])
    assert made == "SELECT x FROM t WHERE y"
    assert shown(text, back, made, "y") == "y" and shown(text, back, made, "t") == '"db"."t"'
    assert back.is_exact(at(made, "WHERE")) and not back.is_exact(at(made, "t WHERE"))
    assert back(Span(len(made), len(made))).end == len(text)


def test_what_is_put_in_stands_for_a_place() -> None:
    text = "SELECT x FROM model"
    made, back = edited(text, [TextChange(Span(0, 0), "WITH m AS (…) ", at(text, "model"))])
    assert made.startswith("WITH m") and shown(text, back, made, "(…)") == "model"
    assert shown(text, back, made, "SELECT x") == "SELECT x"


def test_two_steps_back() -> None:
    first = "a {{ b }} c"
    second = 'a "x"."b" c'
    one = compared(first, second)
    third, back = edited(second, [TextChange(at(second, '"x"."b"'), "b"), TextChange(at(second, "c"), "")])
    assert third == "a b " and shown(first, back.after(one), third, "b") == "{{ b }}"
    assert shown(first, back.after(one), third, "a") == "a"


def test_loops_and_tags() -> None:
    raw = (
        "{{ config() }}\nSELECT {% for w in ['n', 's'] %}SUM({{ w }}) AS {{ w }}, {% endfor %}z\nFROM {{ ref('t') }}\n"
    )
    made = "\nSELECT SUM(n) AS n, SUM(s) AS s, z\nFROM db.t"
    back = compared(raw, made)
    assert shown(raw, back, made, "z") == "z"
    assert shown(raw, back, made, "db.t") == "{{ ref('t') }}"
    assert shown(raw, back, made, "SELECT") == "SELECT"
    assert "{{ w }}" in shown(raw, back, made, "SUM(n)")
    assert not back.is_exact(at(made, "SUM(s)"))


def test_a_text_that_was_not_changed() -> None:
    text = "SELECT 1\r\nFROM t -- ü\n"
    back = compared(text, text)
    assert all(back(Span(i, i + 1)) == Span(i, i + 1) for i in range(len(text)))


def test_nothing_at_all() -> None:
    assert compared("", "")(Span(0, 0)) == Span(0, 0)
    assert Mapping(())(Span(3, 9)) == Span(0, 0)


@settings(max_examples=60)
@given(st.text("ab {}%\n'", max_size=40), st.text("ab {}%\n'", max_size=40))
def test_pieces_have_no_gaps_and_equal_pieces_are_equal(original: str, made: str) -> None:
    back, end = compared(original, made), 0
    for piece in back.pieces:
        assert piece.start == end < piece.end
        assert 0 <= piece.origin.start <= piece.origin.end <= len(original)
        if piece.same:
            assert original[piece.origin.start : piece.origin.end] == made[piece.start : piece.end]
        end = piece.end
    assert end == len(made)
