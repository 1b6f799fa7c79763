"""Lines and tables that are wider than the terminal: no word is broken, and nothing is lost."""

from __future__ import annotations

import pytest

from dpsql.answers.results.cell_texts import cell
from dpsql.faces.cli.shell.commands.all_commands import first_help, help_text
from dpsql.faces.cli.shell.output.wrapping import wrapped, wrapped_lines
from dpsql.faces.cli.table_layout import plain_table

LONG = "visits  one of surgery, medicine, children, outpatient, emergency, intensive care and rehabilitation"


@pytest.mark.parametrize("columns", [30, 40, 80, 200])
def test_lines_are_broken_between_words(columns: int) -> None:
    for text in (LONG, f"    {LONG}", help_text().replace("\n", " "), "a" * 100):
        lines = wrapped_lines(text, columns)
        assert " ".join(lines).split() == text.split()
        assert all(len(line) <= columns or " " not in line.strip() for line in lines)
    assert wrapped_lines(LONG, None) == [LONG]


def test_what_goes_on_stands_below_its_text() -> None:
    first, *others = wrapped_lines("  \\d+ [TABLE]   one two three four five six seven eight", 40)
    assert first.startswith("  \\d+ [TABLE]   one") and all(
        line.startswith(" " * 16 + line.strip()[0]) for line in others
    )


@pytest.mark.parametrize("columns", [50, 80])
def test_wide_cells_go_on_below_themselves(columns: int) -> None:
    header = ("column", "known in public")
    rows = [[cell("ward"), cell(LONG)], [cell("n"), cell("0 to 1")]]
    text = plain_table(header, wrapped(header, rows, columns))
    assert all(len(line) <= columns for line in text.splitlines())
    words = [w for line in text.splitlines() for w in line.split()]
    assert set(LONG.split()) <= set(words)
    assert len(wrapped(header, rows, 200)) == 2


def test_help_fits_on_a_terminal_of_80() -> None:
    text = first_help()
    assert max(map(len, text.splitlines())) <= 80
    assert 10 <= text.count("\n  \\") <= 14 and "\\? all" in text and len(help_text()) > 2 * len(text)
