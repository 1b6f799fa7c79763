"""Tables: plain, on a terminal, and as Markdown."""

from __future__ import annotations

import io

import pytest

from dpsql.cli.layout import markdown_table, plain_table, print_table
from dpsql.release.cells import cell

ROWS = [[cell("north"), cell(12, 3.0)], [cell("日本"), cell(1234, 30.0)], [cell(None), cell(None)]]


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_plain_table_is_aligned_by_screen_width() -> None:
    assert plain_table(["region", "n"], ROWS).split("\n") == [
        " region |     n",
        "--------+-----------",
        " north  |    12 ± 3",
        " 日本   | 1234 ± 30",
        " NULL   |      NULL",
    ]


def test_an_empty_table_has_its_header() -> None:
    assert plain_table(["a", "bc"], []) == " a | bc\n---+----"


def test_markdown_keeps_pipes_apart() -> None:
    assert (
        markdown_table(["a|b", "n"], [[cell("x|\\y"), cell(1)]]) == "| a\\|b | n |\n| --- | ---: |\n| x\\|\\\\y | 1 |"
    )


def test_colours_are_for_terminals_that_want_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    out, pipe = Terminal(), io.StringIO()
    print_table(["region", "n"], ROWS, out)
    print_table(["region", "n"], ROWS, pipe)
    assert "\x1b[" in out.getvalue() and "─" in out.getvalue() and "1234" in out.getvalue()
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
