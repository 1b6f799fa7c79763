"""The three renderers: exact text, and carets that stand under the right characters whatever the text holds."""

from __future__ import annotations

import pickle
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.diagnostics.diagnostic import Diagnostic, Edit, Fix, ForCustodian, Source, Span
from dpsql.diagnostics.errors import reject
from dpsql.diagnostics.layout import width
from dpsql.diagnostics.render import as_record, render_concise, render_text


def finding(text: str, start: int, end: int, label: str = "", code: str = "DP201", name: str = "q.sql") -> Diagnostic:
    return Diagnostic(code, "message", Source(text, name), Span(start, end), label)


def body(diagnostic: Diagnostic) -> list[str]:
    """The lines of the source excerpt, without the gutter."""
    return [line[4:].removeprefix(" ") for line in render_text([diagnostic]).split("\n") if line.startswith("   |")]


def test_the_form_of_the_documentation() -> None:
    sql = "select region, sum(cost) from visits v join patients p using (patient_id) group by region;"
    diagnostic = Diagnostic(
        "DP201",
        "SUM(v.cost) has no bounds, so its sensitivity is unbounded",
        Source(sql, "queries/cost.sql"),
        Span(19, 23),
        "numeric column without `bounds` in clinic.yaml: tables.visits.columns.cost",
        help=("custodian: add  bounds: [0, 5000]   or, in this query:  SUM(CLIP(cost, 0, 5000))",),
        notes=("a fact",),
    )
    assert render_text([diagnostic]) == (
        "error[DP201]: SUM(v.cost) has no bounds, so its sensitivity is unbounded\n"
        "  --> queries/cost.sql:1:20\n"
        "   | select region, sum(cost) from visits v join patients p using (patient_id) group by region;\n"
        "   |                    ^^^^ numeric column without `bounds` in clinic.yaml: tables.visits.columns.cost\n"
        "   = help: custodian: add  bounds: [0, 5000]   or, in this query:  SUM(CLIP(cost, 0, 5000))\n"
        "   = note: a fact\n"
        "   = note: nothing was run and nothing was spent. `dpsql rule DP201`"
    )


def test_a_span_on_the_third_line() -> None:
    diagnostic = finding("SELECT a,\n\n  SUM(b)\nFROM t", 17, 18, "here")
    assert body(diagnostic) == ["  SUM(b)", "      ^ here"]
    assert "q.sql:3:7" in render_text([diagnostic])


def test_a_span_over_several_lines_marks_each_and_labels_the_last() -> None:
    text = "SELECT x + \n\n    sum(y) \nFROM t"
    assert body(finding(text, 7, text.index(" \nFROM"), "all of it")) == [
        "SELECT x +",
        "       ^^^",
        "    sum(y)",
        "    ^^^^^^ all of it",
    ]


def test_a_span_that_ends_with_the_line_end_stays_on_its_line() -> None:
    assert body(finding("abc\ndef\n", 0, 4)) == ["abc", "^^^"]


def test_the_middle_of_a_long_span_is_left_out() -> None:
    text = "\n".join(f"line{n}" for n in range(10))
    lines = body(finding(text, 0, len(text), "end"))
    assert lines[:2] == ["line0", "^^^^^"]
    assert lines[-3:] == ["…", "line9", "^^^^^ end"]
    assert len(lines) == 11


@pytest.mark.parametrize(
    ("text", "target", "expected"),
    [
        ("a\tbad", "bad", ["a   bad", "    ^^^"]),
        ("\t\tbad", "bad", ["        bad", "        ^^^"]),
        ("select '名前', bad", "bad", ["select '名前', bad", " " * 15 + "^^^"]),
        ("select 名前", "名前", ["select 名前", "       ^^^^"]),
        ("select 'e\u0301', bad", "bad", ["select 'e\u0301', bad", " " * 12 + "^^^"]),
        ("x\r\nbad\r\ny", "bad", ["bad", "^^^"]),
        ("bad\r\n", "bad", ["bad", "^^^"]),
    ],
)
def test_carets_stand_under_the_word(text: str, target: str, expected: list[str]) -> None:
    start = text.index(target)
    assert body(finding(text, start, start + len(target))) == expected


@pytest.mark.parametrize(
    ("text", "start", "end", "expected", "place"),
    [
        ("", 0, 0, ["", "^ here"], "1:1"),
        ("", 5, 9, ["", "^ here"], "1:1"),
        ("SELECT", 6, 6, ["SELECT", "      ^ here"], "1:7"),
        ("SELECT (\n\n  ", 12, 12, ["SELECT (", "        ^ here"], "1:9"),
        ("SELECT\r\n", 8, 8, ["SELECT", "      ^ here"], "1:7"),
        ("SELECT x", 7, 99, ["SELECT x", "       ^ here"], "1:8"),
        ("SELECT x", 7, 7, ["SELECT x", "       ^ here"], "1:8"),
        ("SELECT x", 7, 3, ["SELECT x", "       ^ here"], "1:8"),
        ("  \n ", 0, 0, ["  ", "^ here"], "1:1"),
    ],
)
def test_spans_at_the_end_and_out_of_range(text: str, start: int, end: int, expected: list[str], place: str) -> None:
    diagnostic = finding(text, start, end, "here")
    assert [line.rstrip() for line in body(diagnostic)] == [line.rstrip() for line in expected]
    assert f"  --> q.sql:{place}\n" in render_text([diagnostic])


@pytest.mark.parametrize("at", [0, 99, 101, 5000, 9996])
@pytest.mark.parametrize("size", [4, 3000])
def test_of_a_very_long_line_the_part_around_the_mark_is_shown(at: int, size: int) -> None:
    text = "".join(f"{n:04}" for n in range(2500))[:at] + "MARK" * (size // 4) + "x" * (9996 - at)
    shown = render_text([Diagnostic("DP201", "m", Source(text), Span(at, at + size))]).split("\n")
    assert shown[1] == f"  --> <sql>:1:{at + 1}"
    line, carets = shown[2], shown[3]
    start, end = carets.index("^"), carets.rindex("^") + 1
    assert max(len(line), len(carets)) <= 5 + 2 + 400 + 2
    assert line[start:end] == text[at : at + min(size, end - start)] and end - start == min(size, 400 - min(at, 100))
    assert line.startswith("   | … ") == (at > 100) and line.endswith(" …") == (len(text) > at + 300 or at < 100)


def test_several_findings_are_separated_by_an_empty_line() -> None:
    text = render_text([finding("a b", 0, 1), finding("a b", 2, 3, code="DP103")])
    first, second = text.split("\n\n")
    assert first.startswith("error[DP201]") and first.endswith("`dpsql rule DP201`")
    assert second.startswith("error[DP103]") and second.endswith("`dpsql rule DP103`")
    assert render_text([]) == ""


def test_a_finding_without_a_place() -> None:
    assert render_text([Diagnostic("DP901", "the engine failed", label="why")]) == (
        "error[DP901]: the engine failed\n   | why\n   = note: `dpsql rule DP901`"
    )
    assert render_text([Diagnostic("DP001", "no such file", Source("", "p.yaml"))]) == (
        "error[DP001]: no such file\n  --> p.yaml\n   = note: `dpsql rule DP001`"
    )


@pytest.mark.parametrize("code", ["DP010", "DP013", "DP101", "DP201", "DP301", "DP403", "DP905"])
def test_refusals_say_that_nothing_was_spent(code: str) -> None:
    assert f"nothing was run and nothing was spent. `dpsql rule {code}`" in render_text([Diagnostic(code, "m")])


@pytest.mark.parametrize("code", ["DP003", "DP501", "DP901", "DP902"])
def test_nothing_else_claims_it(code: str) -> None:
    assert "nothing was spent" not in render_text([Diagnostic(code, "m")])


def test_a_warning_claims_nothing_about_the_budget() -> None:
    text = render_text([Diagnostic("DP202", "m", severity="warning")])
    assert text == "warning[DP202]: m\n   = note: `dpsql rule DP202`"


def test_help_of_several_lines_is_indented() -> None:
    assert "   = help: add\n             bounds: [0, 1]\n" in render_text(
        [Diagnostic("DP201", "m", help=("add\n  bounds: [0, 1]",))]
    )


@pytest.mark.parametrize("hostile", ["\x1b[2J", "\x07", "\u202e", "\x00", "\u2028", "\x9b1m"])
def test_a_text_cannot_write_to_the_terminal(hostile: str) -> None:
    diagnostic = Diagnostic(
        "DP103",
        f"m{hostile}m",
        Source(f"a{hostile}b", f"p{hostile}"),
        Span(0, 1),
        f"l{hostile}",
        (hostile,),
        (hostile,),
    )
    for text in (render_text([diagnostic]), render_concise([diagnostic])):
        assert hostile[0] not in text
        assert not [c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Zl") and c != "\n"]


def test_colour_adds_only_escape_codes() -> None:
    diagnostics = [finding("SELECT a,\n b", 7, 12, "here"), Diagnostic("DP501", "m", severity="warning")]
    coloured = render_text(diagnostics, color=True)
    assert "\x1b[1;31m" in coloured and "\x1b[1;33m" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == render_text(diagnostics)


def test_concise() -> None:
    diagnostics = [finding("a\nbcd", 3, 4), Diagnostic("DP903", "no\nplace"), Diagnostic("DP001", "m", Source("", "p"))]
    assert render_concise(diagnostics) == "q.sql:2:2: DP201 message\nDP903 no place\np: DP001 m"


def test_a_record_has_the_documented_fields() -> None:
    diagnostic = Diagnostic("DP201", "m", Source("SELECT\n x ", "q.sql"), Span(8, 9), "l", ("one", "two"), ("n",))
    assert as_record(diagnostic) == {
        "code": "DP201",
        "message": "m",
        "path": "q.sql",
        "line": 2,
        "column": 2,
        "end_line": 2,
        "end_column": 3,
        "help": "one\ntwo",
        "fix": None,
        "statement": "SELECT\n x",
    }


def test_the_record_of_a_finding_in_a_policy_holds_no_statement() -> None:
    record = as_record(Diagnostic("DP003", "m", Source("version: 2", "p.yaml"), Span(9, 10)))
    assert record["statement"] is None and record["path"] == "p.yaml" and record["column"] == 10
    assert as_record(Diagnostic("DP903", "m"))["line"] is None
    assert as_record(finding("a; b", 3, 4), "b")["statement"] == "b"


def test_the_record_of_a_fix() -> None:
    fix = Fix("x → y", (Edit(Span(8, 9), "y"), Edit(Span(6, 6), ",")), safe=True)
    diagnostic = Diagnostic("DP103", "m", Source("SELECT\n x "), Span(8, 9), fix=fix)
    place = {"line": 1, "column": 7, "end_line": 1, "end_column": 7}
    assert as_record(diagnostic)["fix"] == {
        "message": "x → y",
        "safe": True,
        "edits": [{"line": 2, "column": 2, "end_line": 2, "end_column": 3, "text": "y"}, {**place, "text": ","}],
    }


def test_a_finding_of_a_part_moves_with_its_fix() -> None:
    whole = Source("a; SELECT x", "q.sql")
    fix = Fix("x → y", (Edit(Span(7, 8), "y"),))
    found = Diagnostic("DP103", "m", Source("SELECT x"), Span(7, 8), fix=fix).within(whole, 3)
    assert found.source is whole and found.span == Span(10, 11)
    assert found.fix == Fix("x → y", (Edit(Span(10, 11), "y"),))


def test_an_exception_prints_its_diagnostics() -> None:
    error = reject(
        "DP103", "unknown column", span=Span(7, 8), source=Source("SELECT x FROM t"), help=["did you mean y?"]
    )
    assert str(error).startswith("error[DP103]: unknown column\n  --> <sql>:1:8\n   | SELECT x FROM t\n   |        ^\n")


PIECES = st.lists(st.sampled_from(["a", " ", "\t", "\n", "\r\n", "名", "e\u0301", "\x1b", "😀", "\u200b"]), max_size=12)


@given(PIECES.map("".join), st.integers(-2, 20), st.integers(-2, 20))
def test_every_text_and_span_is_rendered(text: str, start: int, end: int) -> None:
    """Whatever the text and the span: every marked line has at least one caret, and the JSON place lies in the text."""
    diagnostic = finding(text, start, end)
    lines = body(diagnostic)
    assert lines and len(lines) % 2 == 0
    assert all(set(line) <= {" ", "^"} and "^" in line for line in lines[1::2])
    assert not any("^" in line for line in lines[::2])
    record = as_record(diagnostic)
    assert isinstance(record["line"], int) and 1 <= record["line"] <= text.count("\n") + 1
    assert isinstance(record["column"], int) and record["column"] >= 1


@pytest.mark.parametrize("columns", [10, 40, 60, 100])
def test_words_go_on_in_a_new_line_on_a_terminal(columns: int) -> None:
    source = Source("SELECT SUM(debt) FROM people WHERE region = 'north'")
    d = Diagnostic(
        "DP201", "a message of " + "many words " * 20, source, Span(7, 16), "a label of many words " * 4,
        ("do this " * 30, "or  SUM(CLIP(debt, 0, 5))"), ("日本 " * 60,),
    )  # fmt: skip
    text = render_text([d], columns=columns)
    assert text.replace("|", " ").split() == render_text([d]).replace("|", " ").split(), "no word is lost"
    assert f"   | {source.text}\n   |        ^^^^^^^^^" in text
    plain = re.sub(r"\x1b\[[\d;]*m", "", render_text([d], True, columns))
    assert plain == text
    if columns >= 40:
        assert all(sum(map(width, line)) <= columns for line in text.splitlines() if source.text not in line)


def test_a_repair_for_the_custodian_says_so_to_others_only() -> None:
    """Also in another process, where `dpsql check` examines files."""
    repair = ForCustodian("declare it")
    again = pickle.loads(pickle.dumps(repair))
    assert repair == again == "custodian: declare it" and repair.own == again.own == "declare it"
