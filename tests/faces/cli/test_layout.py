"""Tables: plain, on a terminal, and as Markdown."""

from __future__ import annotations

import io
import re

import pytest

from dpsql.answers.results.cell_texts import cell
from dpsql.faces.cli.table_layout import (
    box_table,
    html_table,
    markdown_table,
    plain_table,
    print_table,
    unaligned_table,
    vertical_list,
)

ROWS = [[cell("north"), cell(12, (3.0, 3.0))], [cell("日本"), cell(1234, (30.0, 30.0))], [cell(None), cell(None)]]


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_plain_table_is_aligned_by_screen_width() -> None:
    assert plain_table(["region", "n"], ROWS).split("\n") == [
        " region |     n",
        "--------+------------",
        " north  |     12 ± 3",
        " 日本   | 1,234 ± 30",
        " NULL   |       NULL",
    ]


def test_an_empty_table_has_its_header() -> None:
    assert plain_table(["a", "bc"], []) == " a | bc\n---+----"


def test_markdown_keeps_pipes_apart() -> None:
    shown = markdown_table(["a|b", "n"], [[cell("x|\\y"), cell(1)]])
    assert shown == "| `a`&#124;`b` | n |\n| --- | ---: |\n| `x`&#124;`\\y` | 1 |"


def test_colours_are_for_terminals_that_want_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    out, pipe = Terminal(), io.StringIO()
    print_table(["region", "n"], ROWS, out)
    print_table(["region", "n"], ROWS, pipe)
    assert "\x1b[" in out.getvalue() and "─" in out.getvalue() and "1,234" in out.getvalue()
    assert pipe.getvalue() == plain_table(["region", "n"], ROWS) + "\n"
    monkeypatch.setenv("NO_COLOR", "1")
    out = Terminal()
    print_table(["region", "n"], ROWS, out)
    assert out.getvalue() == pipe.getvalue()


def test_values_are_not_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    out = Terminal()
    print_table(["[b]x[/b]"], [[cell("[red]y[/red]")], [cell("\x1b[2J")]], out)
    assert "[b]x[/b]" in out.getvalue() and "[red]y[/red]" in out.getvalue() and "\x1b[2J" not in out.getvalue()


def test_a_row_in_lines() -> None:
    assert vertical_list(["region", "n"], ROWS[1:]).split("\n") == [
        "-[ RECORD 1 ]------",
        "region | 日本",
        "n      | 1,234 ± 30",
        "-[ RECORD 2 ]------",
        "region | NULL",
        "n      | NULL",
    ]
    assert vertical_list(["a"], []) == ""
    assert vertical_list(["a", "b"], ROWS[:1] * 2, heading=False).split("\n")[1:4] == ["b | 12 ± 3", "", "a | north"]


def test_a_box() -> None:
    assert box_table(["region", "n"], ROWS).split("\n") == [
        "┌────────┬────────────┐",
        "│ region │ n          │",
        "├────────┼────────────┤",
        "│ north  │     12 ± 3 │",
        "│ 日本   │ 1,234 ± 30 │",
        "│ NULL   │       NULL │",
        "└────────┴────────────┘",
    ]
    assert len(box_table(["region", "n"], ROWS, heading=False).split("\n")) == 5


def test_html_is_escaped() -> None:
    text = html_table(["<a>"], [[cell("<script>alert('x')</script>&")]])
    assert "<script" not in text and "&lt;script&gt;" in text and "&lt;a&gt;" in text
    assert "<thead>" not in html_table(["a"], [[cell(1)]], heading=False)


def test_unaligned() -> None:
    assert unaligned_table(["a", "b"], ROWS[:1], ";") == "a;b\nnorth;12 ± 3"
    assert unaligned_table(["a", "b"], ROWS[:1], "|", heading=False) == "north|12 ± 3"


def test_colours_change_no_text() -> None:
    for draw in (plain_table, vertical_list):
        painted = draw(["region", "n"], ROWS, color=True)
        assert "\x1b[2mNULL" in painted and "\x1b[2m ± 30" in painted
        assert re.sub(r"\x1b\[\d+m", "", painted) == draw(["region", "n"], ROWS)
