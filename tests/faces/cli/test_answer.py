"""CSV and the words below an answer."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest

from dpsql.answers.results.answer import Release, unique_names
from dpsql.core.ir.expressions import Column
from dpsql.core.ir.nodes import Values
from dpsql.core.ir.types import DOUBLE
from dpsql.core.numbers.confidence import LEVEL
from dpsql.core.privacy_loss import PrivacyLoss, left_text
from dpsql.diagnostics.note import Note, Rank, Topic
from dpsql.faces.cli.answer_text import Style, answer_text, as_csv, as_json, footer_of
from dpsql.faces.cli.options import Format, Intervals
from dpsql.planner.postprocessing.intervals.shown_intervals import ShownIntervals
from dpsql.planner.postprocessing.run import AnswerRows as Table


def answer(columns: tuple[str, ...], rows: tuple[tuple[Any, ...], ...], epsilon: str = "0.2", **others: Any) -> Any:
    """As much of a Release as printing looks at."""
    around = others.get("around", [{} for _ in rows])
    why = others.get("why", {})
    names = unique_names(columns)
    uids = [Column(uid, name, DOUBLE) for uid, name in enumerate(names)]
    values = tuple([row[i] for row in rows] for i in range(len(columns)))
    told = {
        uid: ShownIntervals([row.get(name) for row in around], why.get(name, [""] * len(rows)), single=True)
        for uid, name in enumerate(names)
    }
    derived = SimpleNamespace(intervals=lambda uid, values, level, bounded: told[uid])
    return Rows(
        columns=columns, rows=rows, spent=PrivacyLoss(Fraction(epsilon), others.get("delta", Fraction(0))),
        notes=others.get("notes", ()), types=(DOUBLE,) * len(columns),
        plan=SimpleNamespace(columns=uids, tree=SimpleNamespace(node=Values((), ()))),
        _table=Table(values, len(rows), derived),  # type: ignore[arg-type]
    )  # fmt: skip


class Rows(SimpleNamespace):
    intervals, gaps, to_dict = Release.intervals, Release.gaps, Release.to_dict

    def __len__(self) -> int:
        return len(self.rows)


def test_csv_tells_null_from_an_empty_text() -> None:
    text = as_csv(answer(("a", 'b "c"'), ((None, ""), ("x,y", 'q"r'), ("line\nend", Decimal("1.50")))))
    assert text == 'a,"b ""c"""\n,""\n"x,y","q""r"\n"line\nend",1.50\n'
    assert list(csv.reader(io.StringIO(text)))[2] == ["x,y", 'q"r']


def test_csv_values() -> None:
    rows = ((True, dt.date(2025, 1, 2), 0.1, 10**30),)
    assert as_csv(answer(("a", "b", "c", "d"), rows)) == f"a,b,c,d\ntrue,2025-01-02,0.1,{10**30}\n"


def test_json_intervals_may_be_open_or_missing() -> None:
    around = [{"n": (1.0, float("inf")), "m": None}]
    found = json.loads(as_json(answer(("n", "m", "n"), ((2, 3, 4),), around=around, notes=(Note("note"),))))
    assert found["columns"] == ["n", "m", "n_1"] and found["intervals"] == [{"n": [1.0, None], "m": None, "n_1": None}]
    assert found["spent"]["epsilon"] == 0.2 and found["gaps"] == [{}]
    assert found["notes"] == [{"rank": "remark", "text": "note"}]


def test_what_has_no_interval_says_why() -> None:
    """Where people read, and in JSON; not among data for other programs."""
    why = "denominator may be 0"
    given = {"around": [{"r": None}, {"r": (0.0, 1.0)}, {"r": None}], "why": {"r": [why, "", why]}}
    shown = answer(("r",), ((None,), (0.5,), (-7,)), **given)
    assert json.loads(as_json(shown))["gaps"] == [{"r": why}, {}, {"r": why}]
    table = answer_text(shown, Format.UNALIGNED, Style(null="∅"), LEVEL, io.StringIO()).splitlines()
    assert table == ["r", f"∅ ({why})", "0.500 ± 0.500", f"-7 ({why})"]
    assert as_csv(shown) == "r\n\n0.5\n-7\n"


def test_dangers_stand_first_and_each_note_has_a_line() -> None:
    notes = (Note("drawn"), Note("clipped", Rank.BIAS), Note("beyond is missing", Rank.BIAS), Note("cut", Rank.DANGER))
    lines = footer_of(answer(("n",), ((1,),), notes=notes), None).splitlines()
    assert lines == ["(1 row)  spent ε 0.2; 1 more note: --format json", "  cut", "  clipped", "  beyond is missing"]


def test_three_notes_are_shown_and_all_dangers() -> None:
    dangers = [Note(f"danger {n}", Rank.DANGER) for n in range(4)]
    gap, ends = Note("no interval", Rank.BIAS, Topic.GAP), Note("at least", Rank.BIAS, Topic.ENDS)
    shown = answer(("n",), ((1,),), notes=(Note("clipped", Rank.BIAS), ends, gap, dangers[0]))
    first, *rest = footer_of(shown, None, more="\\notes").splitlines()
    assert first == "(1 row)  spent ε 0.2; 1 more note: \\notes"
    assert rest == ["  danger 0", "  no interval", "  at least"]
    shown = answer(("n",), ((1,),), notes=(gap, *dangers, ends))
    assert footer_of(shown, None).splitlines()[1:] == [f"  {note}" for note in dangers]


@pytest.mark.parametrize(
    ("rows", "others", "left", "expected"),
    [
        (1, {"around": [{"n": (0.0, 1.0)}]}, PrivacyLoss(Fraction(2)), "(1 row)  spent ε 0.2, left ε 2; ± at 95 %"),
        (1, {"notes": (Note("bounded"),)}, None, "(1 row)  spent ε 0.2\n  bounded"),
        (0, {"delta": Fraction("1e-9")}, None, "(0 rows)  spent ε 0.2 δ 1e-9"),
        (2, {"epsilon": "0"}, None, "(2 rows)  spent nothing"),
        (1, {"epsilon": "0", "around": [{"n": (0.0, 1.0)}]}, None, "(1 row)  spent nothing; ± at 95 %"),
    ],
)  # fmt: skip
def test_footers(rows: int, others: dict[str, Any], left: PrivacyLoss | None, expected: str) -> None:
    assert footer_of(answer(("n",), ((1,),) * rows, **others), left) == expected


def test_the_confidence_of_the_interval_is_said_where_there_is_one_to_see() -> None:
    shown = answer(("n",), ((1,),), around=[{"n": (0.0, 1.0)}])
    assert footer_of(shown, None, level=Fraction("0.999")) == "(1 row)  spent ε 0.2; ± at 99.9 %"
    assert footer_of(shown, None, level=None) == "(1 row)  spent ε 0.2"


def test_what_is_left_is_rounded_down() -> None:
    third = PrivacyLoss(Fraction(2, 3), Fraction(2, 3 * 10**9))
    assert left_text(third) == "ε 0.666666 δ 6.66666e-10"
    assert left_text(PrivacyLoss(rho=Fraction(2, 3)), in_rho=True) == "ρ 0.666666"
    assert left_text(PrivacyLoss()) == "ε 0" and left_text(PrivacyLoss(), in_rho=True) == "ρ 0"


AROUND = [{"n": (1.0, 5.0)}, {"n": None}]
TWO = (("NULL", 3), (None, None))


def text_of(format: Format, out: Any = None, level: Fraction = LEVEL, rows: Any = TWO, **style: Any) -> str:
    """An answer of a text and a number as it is printed."""
    found = answer(("k", "n"), rows, around=AROUND[: len(rows)])
    return answer_text(found, format, Style(**style), level, out or io.StringIO())


def test_null_is_told_from_the_text_null() -> None:
    assert text_of(Format.UNALIGNED, heading=False) == "'NULL'|3 ± 2\nNULL|NULL\n"
    assert text_of(Format.UNALIGNED, heading=False, null="∅", intervals=Intervals.OFF) == "NULL|3\n∅|∅\n"
    rows = (("'NULL'", 1), ("''NULL''", 1))
    assert text_of(Format.UNALIGNED, rows=rows, heading=False).splitlines()[0].startswith("''NULL''|")
    assert text_of(Format.CSV) == "k,n\nNULL,3\n,\n"


def test_intervals_in_columns() -> None:
    assert text_of(Format.CSV, intervals=Intervals.COLS) == "k,n,n_low,n_high\nNULL,3,1.0,5.0\n,,,\n"
    lines = text_of(Format.JSONL, intervals=Intervals.COLS).splitlines()
    assert json.loads(lines[0]) == {"k": "NULL", "n": 3, "n_low": 1.0, "n_high": 5.0}
    header = text_of(Format.TABLE, intervals=Intervals.COLS).splitlines()[0]
    assert [name.strip() for name in header.split("|")] == ["k", "n", "n_low", "n_high"]


@pytest.mark.parametrize("format", list(Format))
def test_every_format_shows_empty_answers_and_ends_its_lines(format: Format) -> None:
    empty = text_of(format, rows=())
    assert empty == "" or empty.endswith("\n")
    assert text_of(format).endswith("\n")


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("format", list(Format))
def test_no_control_character_reaches_a_terminal(format: Format) -> None:
    rows = (("\x1b[2J\x9b31m\u202e", 1),)
    shown = text_of(format, Terminal(), rows=rows)
    assert all(c == "\n" or c.isprintable() for c in shown), shown
    if format in (Format.JSON, Format.JSONL):
        found = json.loads(shown)
        assert (found["rows"][0][0] if format is Format.JSON else found["k"]) == rows[0][0]
    if format is Format.CSV:
        assert rows[0][0] in text_of(format, rows=rows), "data for programs stays what it is"
