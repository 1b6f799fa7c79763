"""Lines and tables that are wider than the terminal: no word is broken, and nothing is lost."""

from __future__ import annotations

import pytest

from dpsql.answers.results.cell_texts import cell
from dpsql.diagnostics.errors import Rejected
from dpsql.faces.cli.shell.commands.all_commands import first_help, help_text
from dpsql.faces.cli.shell.output.crosstab import crossed, places
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


# \crosstabview --------------------------------------------------------------------------------------------------------

HEADER = ("region", "smoker", "n")


def test_an_answer_is_crossed() -> None:
    rows = [
        [cell(a), cell(b), cell(n)] for a, b, n in (("w", "yes", 1), ("w", "no", 2), ("e", "no", 3), ("e", "no", 4))
    ]
    header, found = crossed(HEADER, rows, places(HEADER, []))
    assert header == ["region", "yes", "no"]
    assert [[c.text for c in row] for row in found] == [["w", "1", "2"], ["e", "", "3, 4"]]
    header, found = crossed(HEADER, rows, places(HEADER, ["SMOKER", "1"]))
    assert header == ["smoker", "w", "e"] and found[0][0].text == "yes"


@pytest.mark.parametrize(
    ("columns", "wanted"),
    [
        (("a", "b"), []), (("a", "b", "c", "d"), []), (HEADER, ["nosuch"]), (HEADER, ["0"]), (HEADER, ["1", "1"]),
        (HEADER, ["4"]), (("a", "a", "b"), ["a"]), (("n",), []),
    ],
)  # fmt: skip
def test_what_cannot_be_crossed_is_refused(columns: tuple[str, ...], wanted: list[str]) -> None:
    with pytest.raises(Rejected) as refusal:
        places(columns, wanted)
    d = refusal.value.diagnostics[0]
    assert d.code == "DP903" and "nothing was spent" in d.notes[0]
