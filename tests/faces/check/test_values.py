"""Values of parameters for the check's sake: comments, options, configuration; which is stronger, and who uses them."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.diagnostics.errors import CannotOpen, Rejected
from dpsql.faces.check.documents.parameter_comments import given_in
from dpsql.faces.check.documents.parameter_values import Value, given_values, read_constant
from dpsql.faces.check.examine import parallel
from dpsql.faces.check.examine.cache import Cache
from dpsql.faces.check.examine.check_settings import Asked, settle
from dpsql.faces.check.examine.config import read_configuration
from dpsql.faces.check.examine.examination import examine
from dpsql.faces.check.examine.examine_text import TextOptions
from dpsql.faces.check.examine.prices import CHARGED, REFUSED, budget_report
from dpsql.faces.check.examine.records import from_record, to_record
from dpsql.faces.check.examine.run_check import check_documents, examine_documents
from dpsql.faces.check.report.diff import Side, compare
from dpsql.faces.editor.hover import hover
from dpsql.frontend.placeholders import placeholders
from dpsql.frontend.text.split import split_text
from tests.support.checked_files import CHEAP, GOOD, codes, documents, found, policy, settings, shown

NAMED = "SELECT COUNT(*) AS n FROM patients WHERE age > $lo"
NUMBERED = "SELECT COUNT(*) AS n FROM patients WHERE age > ? AND age < ?"
TEXT = "SELECT COUNT(*) AS n FROM visits WHERE ward = $ward"
# A value that decides: multiplied by it, a fee of one dollar counts this often, and 0 leaves nothing to clip.
DECIDES = "SELECT SUM(CLIP(fee, 0, $most)) AS f FROM visits"


def values(text: str, dialect: str = "duckdb", **general: Value) -> list[dict[str, Value]]:
    return [dict(v) for v in given_in(text, split_text(text, dialect), dialect, general).values]


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("18", 18), ("-3", -3), ("+4", 4), ("1.5", Decimal("1.5")), (".5", Decimal("0.5")), ("-2.", Decimal(-2)),
        ("15e-1", 1.5), ("1E3", 1000.0), ("'x'", "x"), ("'O''Neill, (a) -- b'", "O'Neill, (a) -- b"), ("''", ""),
        ("TRUE", True), ("false", False), ("null", None), ("DATE '2024-01-31'", dt.date(2024, 1, 31)),
        ("date'2024-01-31'", dt.date(2024, 1, 31)),
        ("TIMESTAMP '2024-01-31 12:30:00'", dt.datetime(2024, 1, 31, 12, 30)),
        ("'$lo = 3'", "$lo = 3"), ("'é🙂'", "é🙂"),
    ],
)  # fmt: skip
def test_constants_are_what_python_would_pass(written: str, value: Value) -> None:
    read = read_constant(written, 0, len(written))
    assert read == (value, len(written)) and type(read[0]) is type(value)
    assert values(f"-- dpsql: parameters( {written} )\n{NAMED.replace('$lo', '?')}") == [{"1": value}]
    assert values(f"-- dpsql: parameters(lo={written})\n{NAMED}") == [{"lo": value}]
    assert given_values([f"lo={written}"]) == {"lo": value}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"-- dpsql: parameters(lo = 18)\n{NAMED};", [{"lo": 18}]),
        (f"-- dpsql: parameters($lo = 18)\r\n{NAMED};\r\n", [{"lo": 18}]),
        (f"--DPSQL:PARAMETERS(lo=18)\n-- and why\n{NAMED}", [{"lo": 18}]),
        (f"{NAMED} -- dpsql: parameters(lo = 18)\n;", [{"lo": 18}]),
        (f"{NAMED}; -- dpsql: parameters(lo = 18)\n{GOOD}", [{"lo": 18}, {}]),
        ("SELECT COUNT(*) -- dpsql: parameters(lo = 18)\nAS n FROM patients WHERE age > $lo", [{"lo": 18}]),
        (f"/* dpsql: parameters(18,\n   99) */ {NUMBERED}", [{"1": 18, "2": 99}]),
        (f"-- dpsql: parameters(18)\n-- dpsql: parameters(2 = 99)\n{NUMBERED}", [{"1": 18, "2": 99}]),
        (f"-- dpsql: parameters(lo = 1)\n{NAMED};\n-- dpsql: parameters(lo = 2)\n{NAMED}", [{"lo": 1}, {"lo": 2}]),
    ],
)
def test_the_statement_that_a_comment_is_about(text: str, expected: list[dict[str, Value]]) -> None:
    assert values(text) == expected
    assert codes(text) == []
    assert "DP902" in codes(text.replace("parameters(", "ignored(").replace("PARAMETERS(", "ignored("))


@pytest.mark.parametrize(
    ("comment", "place", "message"),
    [
        ("parameters", "-- dpsql: parameters", "gives no values"),
        ("parameters lo = 3", "-- dpsql: parameters lo = 3", "gives no values"),
        ("parameters()", ")", "a constant of SQL"),
        ("parameters(lo = )", ")", "a constant of SQL"),
        ("parameters(lo = 18", "-- dpsql: parameters(lo = 18", "comma or the closing bracket"),
        ("parameters(lo = abc)", "abc", "a constant of SQL"),
        ("parameters(lo = 2024-01-01)", "2024-01-01", "a constant of SQL"),
        ("parameters(lo = DATE '2024-02-30')", "DATE '2024-02-30'", "is no date"),
        ("parameters(lo = TIMESTAMP 'noon')", "TIMESTAMP 'noon'", "is no timestamp"),
        ("parameters(lo = TIMESTAMP '2024-01-31 12:00+01')", "TIMESTAMP '2024-01-31 12:00+01'", "no time zone"),
        ("parameters(lo = 1e999)", "1e999", "too large"),
        (f"parameters(lo = {'9' * 500})", "9" * 500, "at most 400"),
        ("parameters(lo = 3 + 4)", "+ 4", "comma or the closing bracket"),
        ("parameters(lo = (SELECT 1))", "(SELECT 1", "a constant of SQL"),
        ("parameters(lo = 3, lo = 4)", "lo = 4", "given twice"),
        ("parameters(lo = 3, hi = 4)", "hi = 4", "has no parameter $hi"),
        ("parameters(Lo = 3)", "Lo = 3", "has no parameter $Lo"),
        ("parameters(3)", "3", "has no parameter $1"),
        ("parameters(lo = 3) because", "because", "nothing may stand behind"),
    ],
)
def test_mistakes_are_findings_with_their_place(comment: str, place: str, message: str) -> None:
    text = f"-- dpsql: {comment}\n{NAMED}"
    first, *others = found(text)
    assert first.diagnostic.code == "DP013" and message in first.diagnostic.message and first.diagnostic.help
    assert shown(text)[0] == f"1:DP013 {place}"
    assert [f.diagnostic.message for f in others] in ([], ["no value was given for parameter $lo"])


def test_a_comment_about_no_statement() -> None:
    assert shown(f"-- dpsql: parameters(lo = 3)\n\n{GOOD}") == ["1:DP013 -- dpsql: parameters(lo = 3)"]
    assert shown(f"SELECT '-- dpsql: parameters(x)' AS x, {GOOD[7:]}, x") == []  # a string
    # What cannot be read as a query has no known parameters: only that is said.
    assert codes("-- dpsql: parameters(lo = 3)\nSELEC $lo") == ["DP010"]


def test_the_mistakes_cannot_be_ignored() -> None:
    wrong = f"-- dpsql: ignore[DP013] why\n-- dpsql: parameters(hi = 3)\n{NAMED}"
    assert sorted(codes(wrong)) == ["DP013", "DP013", "DP902"]


def test_a_missing_value_says_how_to_give_one_in_a_file() -> None:
    for text, written in (
        (NAMED, "parameters(lo = VALUE)"),
        (NUMBERED, "parameters(VALUE, VALUE)"),
        (f"-- dpsql: parameters(18)\n{NUMBERED}", "parameters(2 = VALUE)"),
        (NAMED + " AND age < $hi", "parameters(hi = VALUE, lo = VALUE)"),
    ):
        diagnostics = [f.diagnostic for f in found(text)]
        assert {d.code for d in diagnostics} == {"DP013"}
        assert all(f"-- dpsql: {written}" in d.help[0] for d in diagnostics)
        assert all(("--parameter" in d.help[-1]) is ("=" in written and "2" not in written) for d in diagnostics)
        assert not any("parameters=" in line for d in diagnostics for line in (*d.help, *d.notes))


def test_a_value_of_a_wrong_type_is_found() -> None:
    assert codes(f"-- dpsql: parameters(lo = 'old')\n{NAMED}") == ["DP106"]
    assert codes(f"-- dpsql: parameters(lo = DATE '2024-01-01')\n{NAMED}") != []
    zone = dt.timezone(dt.timedelta(hours=5))
    assert codes(NAMED, TextOptions(parameters={"lo": dt.datetime(1, 1, 1, tzinfo=zone)})) == ["DP013"]


def test_general_values_are_taken_by_those_who_ask() -> None:
    options = TextOptions(parameters={"lo": 18, "other": 3})
    assert {line[:6] for line in shown(f"{NAMED};\n{GOOD};\n{NUMBERED}", options)} == {"3:DP01"}
    assert values(f"{NAMED}; {GOOD}", lo=18, other=3) == [{"lo": 18}, {}]
    assert values(f"-- dpsql: parameters(lo = 30)\n{NAMED}; {NAMED}", lo=18) == [{"lo": 30}, {"lo": 18}]  # stronger
    assert codes(NUMBERED, TextOptions(parameters={"1": 18, "2": 99})) == []


def test_options_are_stronger_than_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "dpsql.toml").write_text(
        'policy = "p.yaml"\n[parameters]\nlo = 18\nhalf = 0.5\nward = "surgery"\non = true\n1 = 7\n'
        "since = 2024-01-31\nat = 2024-01-31T12:30:00\n"
    )
    assert settle(Asked(parameters=["lo=30", "x=plain text", "y = a=b"]), tmp_path).options.parameters == {
        "lo": 30, "half": 0.5, "ward": "surgery", "on": True, "1": 7, "since": dt.date(2024, 1, 31),
        "at": dt.datetime(2024, 1, 31, 12, 30), "x": "plain text", "y": "a=b",
    }  # fmt: skip
    assert settle(Asked(), tmp_path).options.parameters["lo"] == 18
    (tmp_path / "pyproject.toml").write_text("[tool.dpsql.parameters]\nlo = 18.5\n")
    value = read_configuration(tmp_path / "pyproject.toml").values.parameters["lo"]
    assert value == 18.5 and isinstance(value, float)


@pytest.mark.parametrize("line", ["lo = [1]", "lo = {a = 1}", "lo = 12:30:00", "lo = inf", "lo = nan", '"a b" = 1'])
def test_wrong_values_of_a_configuration(tmp_path: Path, line: str) -> None:
    (tmp_path / "dpsql.toml").write_text(f"[parameters]\nok = 1\n{line}\n")
    with pytest.raises(CannotOpen) as refused:
        read_configuration(tmp_path / "dpsql.toml")
    (d,) = refused.value.diagnostics
    assert d.code == "DP910" and d.source is not None and d.span is not None
    assert d.source.position(d.span.start)[0] == 3


@pytest.mark.parametrize("given", ["lo", "=3", "lo=", "a b=3", "lo='x", "n=O'Neill", "d=DATE 'x'", "n=1e999", "$lo=3"])
def test_wrong_options(given: str) -> None:
    with pytest.raises(Rejected) as refused:
        given_values([given])
    assert refused.value.diagnostics[0].code == "DP903" and "--parameter" in refused.value.diagnostics[0].message
    with pytest.raises(Rejected):
        given_values(["lo=1", "lo=1"])


def test_the_names_that_a_query_asks_for() -> None:
    assert placeholders("SELECT $a, $1, ?, '$b', x::int -- $c") == {"a", "1"}
    assert placeholders("SELECT ?, @lo", "bigquery") == {"1", "lo"}
    for text, dialect in (("@@lo", "tsql"), ("%(lo)s", "postgres"), (":lo", "postgres"), ("$$1", "spark")):
        written = NAMED.replace("$lo", text)
        names = placeholders(written, dialect)
        assert names is not None and len(names) == 1
        assert codes(written, TextOptions(dialect)) == ["DP013"]
        assert codes(written, TextOptions(dialect, parameters=dict.fromkeys(names, 18))) == []
    assert placeholders("SELECT 1") == frozenset() and placeholders("SELEC $a") is None


def test_cache_and_processes_go_by_the_values(tmp_path: Path) -> None:
    text = DECIDES
    low, high = settings(tmp_path, parameters=["most=10"]), settings(tmp_path, parameters=["most='ten'"])
    low, high = (replace(s, cache=tmp_path / "cache") for s in (low, high))
    for chosen, expected in ((low, False), (high, True), (low, False), (high, True)):
        report = check_documents(documents(text), chosen).report
        assert any(f.diagnostic.severity == "error" for f in report.findings) is expected
    assert len(list((tmp_path / "cache").glob("*.json"))) == 2
    kept = Cache(tmp_path / "cache", Path(low.policy).read_bytes(), low.policy, "duckdb", {"most": 10})
    assert kept.find([text]) and not Cache(tmp_path / "cache", b"", low.policy, "duckdb", {"most": 10}).find([text])
    # 10 and 10.0 are other types, and other plans.
    assert not Cache(tmp_path / "cache", Path(low.policy).read_bytes(), low.policy, "duckdb", {"most": 10.0}).find(
        [text]
    )
    examined = examine_documents(documents(text), low)[text]
    assert examined == examine(text, policy(), "duckdb", {"most": 10})
    broken = examine(f"-- dpsql: parameters(x = 1)\n{NAMED}", policy(), "duckdb")
    assert broken.remarks and from_record(to_record(broken)) == broken


@pytest.mark.processes
def test_other_processes_get_the_values() -> None:
    texts = [NAMED, NUMBERED] * 20
    alone = parallel.examine_all(texts, policy(), "duckdb", 1, parameters={"lo": 18})
    assert [bool(e.statements[0].diagnostics) for e in alone if e is not None] == [False, True] * 20
    assert parallel.examine_all(texts, policy(), "duckdb", 2, parameters={"lo": 18}) == alone


def test_a_budget_report_prices_statements_with_values() -> None:
    text = f"{CHEAP} WHERE age > $lo"
    rows = {}
    for general in ({}, {"lo": 18}):
        examined = [(d, examine(d.text, policy(), "duckdb", general)) for d in documents(text)]
        rows[bool(general)] = budget_report(examined, policy()).rows[0]
    assert rows[False].status == REFUSED
    assert rows[True].status == CHARGED and rows[True].loss.epsilon == Fraction(1, 4)


def test_two_versions_are_compared_with_their_values() -> None:
    def side(value: str) -> Side:
        (document,) = documents(f"-- dpsql: parameters(most = {value})\n{DECIDES}")
        return Side({"q.sql": document}, policy())

    assert compare(side("10"), side("10")).shown == ()
    assert compare(side("1"), side("TRUE")).shown != ()  # equal in Python
    (pair,) = compare(side("10"), side("20")).shown
    assert pair.status == "changed" and pair.worse
    (bare,) = documents(DECIDES)
    (pair,) = compare(Side({"q.sql": bare}, policy()), side("10")).shown
    assert pair.status == "newly accepted"
    assert compare(Side({"q.sql": bare}, policy()), side("10"), parameters={"most": 10}).shown == ()


def test_hover_has_a_plan_with_the_values() -> None:
    offset = NAMED.index("COUNT")
    bare, given_ = hover(NAMED, offset, policy()), hover(NAMED, offset, policy(), parameters={"lo": 18})
    comment = "-- dpsql: parameters(lo = 18)\n"
    own = hover(f"{GOOD};\n{comment}{NAMED}", len(GOOD) + 2 + len(comment) + offset, policy())
    assert bare is not None and given_ is not None and own is not None
    assert "sensitivity" not in bare.text and "sensitivity" in given_.text and own.text == given_.text


PIECES = st.sampled_from(
    [
        "(",
        ")",
        ",",
        "=",
        "'",
        "''",
        "lo",
        "$lo",
        " ",
        "\n",
        "1",
        "-",
        ".5",
        "e9",
        "DATE",
        "'2024-01-01'",
        "NULL",
        "*/",
        "é",
    ]
)


@given(st.lists(PIECES, max_size=12).map("".join), st.sampled_from(["-- {}\n", "/* {} */\n", "# {}\n"]))
def test_no_comment_makes_it_fail(written: str, comment: str) -> None:
    text = comment.format(f"dpsql: parameters{written}") + NAMED
    for finding in found(text):
        span = finding.diagnostic.span
        assert span is not None and 0 <= span.start <= span.end <= len(text)


def test_a_missing_value_is_not_what_is_wrong_with_another() -> None:
    text = NAMED.replace("$lo", "$lo AND region = $where")
    diagnostics = [f.diagnostic for f in found(text, TextOptions(parameters={"where": "a\0b", "lo": 3}))]
    assert [d.message for d in diagnostics] == ["a text cannot contain a NUL character"]
    first, *_ = (f.diagnostic for f in found(text.replace("$lo", "3").replace("$where", "$where AND age < $hi"),
                                             TextOptions(parameters={"where": "a\0b"})))  # fmt: skip
    assert "NUL" in first.message and first.help == ("remove it",)
