"""Where inputs end: statements, meta-commands, strings that are open, and the places of what is found."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import Token

from dpsql.diagnostics.errors import Rejected
from dpsql.faces.cli.shell.input.items import Feed, InputPlace, Meta, Sql
from dpsql.faces.cli.shell.input.loop import finished
from dpsql.frontend.text import unfinished
from dpsql.frontend.text.split import tokens_of
from dpsql.frontend.text.unfinished import ends_outside, is_empty, scan, with_variables


def items(*lines: str) -> list[str]:
    """What is handed out for some lines and the end of the input; meta-commands keep their backslash."""
    feed = Feed()
    found = [item.text for line in lines for item in feed.take(line)]
    return found + [item.text for item in feed.finish()]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["SELECT 1; SELECT 2;"], ["SELECT 1", "SELECT 2"]),
        (["SELECT", "1", ";"], ["SELECT\n1"]),
        (["SELECT ';'; SELECT 2"], ["SELECT ';'", "SELECT 2"]),
        (["SELECT 'a", "\\d", "b;';"], ["SELECT 'a\n\\d\nb;'"]),
        (['SELECT "a;', '\\d";'], ['SELECT "a;\n\\d"']),
        (["SELECT $$;", "\\q", "$$;"], ["SELECT $$;\n\\q\n$$"]),
        (["/* ; ", "\\q", "*/ SELECT 1;"], ["SELECT 1"]),
        (["SELECT 1 -- ; \\g", ";"], ["SELECT 1"]),
        (["-- nothing;", "   ", ";;"], []),
        (["\\d visits", "SELECT 1;"], ["\\d visits", "SELECT 1"]),
        (["SELECT 1; \\d"], ["SELECT 1", "\\d"]),
        (
            ["DP BATCH (", "SELECT 1; -- ;", "SELECT ');';", "SELECT (2)", ");", "SELECT 3;"],
            ["DP BATCH (\nSELECT 1; -- ;\nSELECT ');';\nSELECT (2)\n)", "SELECT 3"],
        ),
        (["SELECT 1; -- dpsql: epsilon=2;", "SELECT 2;"], ["SELECT 1", "-- dpsql: epsilon=2;\nSELECT 2"]),
        (["SELECT 1 \\gx"], ["\\gx", "SELECT 1"]),
        (["SELECT 1; SELECT 2 \\g"], ["SELECT 1", "\\g", "SELECT 2"]),
        (["SELECT 1 \\watch 2"], ["\\watch 2", "SELECT 1"]),
        (["  \\x  "], ["\\x"]),
        (["SELECT 'never closed; SELECT 2;"], ["SELECT 'never closed; SELECT 2;\n"]),
    ],
)
def test_items(lines: list[str], expected: list[str]) -> None:
    assert items(*lines) == expected
    assert items("\n".join(lines)) == expected, "pasted at once it is the same"


def test_each_line_of_a_batch_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """And all of it a second time, where it ends."""
    read: list[int] = []

    def counted(text: str, dialect: str = "duckdb") -> list[Token] | None:
        read.append(len(text))
        return tokens_of(text, dialect)

    monkeypatch.setattr(unfinished, "tokens_of", counted)
    text = "DP BATCH (\n" + "SELECT COUNT(*) FROM t;\n" * 200 + ");"
    (found,) = Feed().take(text)
    assert found.text == text[:-1] and sum(read) <= 2 * len(text) + 10


def test_what_is_pending_can_be_dropped_between_two_items() -> None:
    feed = Feed()
    for item in feed.take("SELECT 1\n\\r\nSELECT 2;"):
        if isinstance(item, Meta):
            assert feed.pending.strip() == "SELECT 1" and feed.waiting
            feed.drop()
        else:
            assert item.text == "SELECT 2"
    assert not feed.waiting


def test_places_count_in_the_file() -> None:
    feed = Feed("q.sql")
    found = list(feed.take("SELECT 1;  SELECT 2;\n-- words\n  SELECT\n3; \\d\n\\x"))
    assert found == [
        Sql("SELECT 1", InputPlace("q.sql", 0, 0)),
        Sql("SELECT 2", InputPlace("q.sql", 0, 11)),
        Sql("SELECT\n3", InputPlace("q.sql", 2, 2)),
        Meta("\\d", InputPlace("q.sql", 3, 3)),
        Meta("\\x", InputPlace("q.sql", 4, 0)),
    ]


def test_a_statement_without_end_is_refused() -> None:
    feed = Feed()
    with pytest.raises(Rejected):
        for _ in range(200):
            list(feed.take("x" * 100_000))


@pytest.mark.parametrize(
    ("text", "pending", "expected"),
    [
        ("SELECT 1;", "", True),
        ("SELECT 1", "", False),
        ("SELECT ';", "", False),
        ("SELECT 1; -- done", "", True),
        ("SELECT 1; SELECT", "", False),
        ("SELECT 1; \\d", "", True),
        ("\\d", "", True),
        ("FROM t;", "SELECT 1\n", True),
        ("\\r", "SELECT 1\n", True),
        ("\\r", "SELECT '\n", False),
        ("SELECT 1 \\g", "", True),
        ("SELECT '\\g", "", False),
        ("-- words", "", True),
        ("/* words", "", False),
        ("", "", True),
        ("\\explain SELECT 1", "", True),
        ("\\explain SELECT 1\nFROM t", "", True),
        ("\\explain SELECT 'a", "", False),
        ("help", "", True),
        (" QUIT; ", "", True),
        ("exit", "SELECT 1\n", False),
        ("help me", "", False),
    ],
)
def test_enter_hands_over_what_is_finished(text: str, pending: str, expected: bool) -> None:
    assert finished(text, pending, "duckdb") is expected


def test_scan() -> None:
    found = scan("SELECT 1; SELECT 2 -- x;\n")
    assert found is not None and [s.text for s in found.statements] == ["SELECT 1"] and found.rest == 9
    assert scan("SELECT 'a") is None and scan("/* a") is None
    assert is_empty(" -- words\n") and not is_empty("1") and not is_empty("'")
    assert ends_outside("SELECT 1 ") and not ends_outside("SELECT '") and not ends_outside("-- a ")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT :a, :'a', :\"a\"", "SELECT o'k\"1, 'o''k\"1', \"o'k\"\"1\""),
        ("x::a, ':a', \":a\", $$:a$$ -- :a", "x::a, ':a', \":a\", $$:a$$ -- :a"),
        (":b :'b' : a", ":b :'b' : a"),
        ("x[1::a]", "x[1::a]"),
        ("SELECT ':a", "SELECT ':a"),
    ],
)
def test_variables(text: str, expected: str) -> None:
    assert with_variables(text, {"a": "o'k\"1"}.get) == expected


@given(st.text("ab'\";:\\$/*-\n g", max_size=40))
def test_nothing_is_lost_and_nothing_raises(text: str) -> None:
    found = items(*text.split("\n"))
    kept = "".join(found)
    assert all(kept.count(c) <= text.count(c) for c in "ab")
    with_variables(text, lambda name: "1")
    finished(text, "", "duckdb")
