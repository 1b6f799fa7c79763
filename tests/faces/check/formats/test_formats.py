"""Every format says what a report holds, and stays valid whatever stands in names, texts and messages."""

from __future__ import annotations

import json
import os
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsql.diagnostics.codes import CODES
from dpsql.diagnostics.diagnostic import Diagnostic, Edit, Fix, Source, Span
from dpsql.diagnostics.pages_loader import load_page
from dpsql.faces.check.report.finding import Finding, Report
from dpsql.faces.check.report.formats import FORMATS, full
from dpsql.faces.check.report.formats.texts import fingerprints, path_of, uri_of
from tests.faces.check.formats.readers import READERS, bytes_of, read_github, read_gitlab, read_sarif

SQL = "-- é 𝄞\r\nSELECT '𝄞', SUM(fee) AS f\r\nFROM visits; SELECT 2"
STATEMENT = "SELECT '𝄞', SUM(fee) AS f\r\nFROM visits"
FEE = Span(SQL.index("fee"), SQL.index("fee") + 3)
BOTH_LINES = Span(SQL.index("SUM"), SQL.index("visits") + 6)
FIX = Fix("clip {it}", (Edit(FEE, "CLIP(fee, 0, 𝄞)"), Edit(Span(0, 0), "-- clipped\n")))


def finding(
    name: str = "queries/cost.sql", span: Span | None = FEE, code: str = "DP201", text: str = SQL, **more: object
) -> Finding:
    given = {"message": "SUM(fee) has no bounds", "label": "no `bounds`", "help": ("write  SUM(CLIP(fee, 0, 500))",)}
    return Finding(Diagnostic(code, source=Source(text, name), span=span, **{**given, **more}), STATEMENT)  # type: ignore[arg-type]


WARNING = finding(code="DP501", severity="warning", message="the error exceeds the value")
UNREADABLE = Diagnostic(
    "DP903", "'queries/old.sql' cannot be read: there is no such file", Source("", "queries/old.sql")
)
REPORT = Report(
    (finding(fix=FIX), finding(code="DP110", span=BOTH_LINES, message="rows, 100 % private: no"), WARNING),
    files=2,
    statements=4,
    unreadable=(UNREADABLE,),
    names=("queries/clean.sql", "queries/cost.sql"),
)
CLEAN = Report((), 1, 1, names=("queries/clean.sql",))


def test_a_clean_report() -> None:
    assert FORMATS["full"](CLEAN) == FORMATS["concise"](CLEAN) == FORMATS["github"](CLEAN) == ""
    assert FORMATS["json"](CLEAN) == FORMATS["gitlab"](CLEAN) == "[]"
    run = read_sarif(FORMATS["sarif"](CLEAN))
    assert run["results"] == [] and run["invocations"][0]["executionSuccessful"]


def test_sarif_results() -> None:
    run = read_sarif(FORMATS["sarif"](REPORT))
    first, second, third = run["results"]
    assert run["columnKind"] == "utf16CodeUnits"
    assert [r["level"] for r in run["results"]] == ["error", "error", "warning"]
    where = first["locations"][0]["physicalLocation"]
    assert where["artifactLocation"] == {"uri": "queries/cost.sql", "uriBaseId": "%SRCROOT%"}
    # 𝄞 is one character and two UTF-16 units: fee is at character 17, unit 18
    assert SQL.split("\r\n")[1].index("fee") == 16
    assert where["region"] == {"startLine": 2, "startColumn": 18, "endLine": 2, "endColumn": 21}
    assert second["locations"][0]["physicalLocation"]["region"] == {
        "startLine": 2, "startColumn": 14, "endLine": 3, "endColumn": 12,
    }  # fmt: skip
    assert first["message"]["text"].splitlines() == [
        "SUM(fee) has no bounds.",
        "no `bounds`",
        "help: write  SUM(CLIP(fee, 0, 500))",
    ]
    (fix,) = first["fixes"]
    assert fix["description"]["text"] == "clip {{it}}"
    (change,) = fix["artifactChanges"]
    assert change["artifactLocation"] == where["artifactLocation"]
    clip, insert = change["replacements"]
    assert clip["deletedRegion"] == where["region"] and clip["insertedContent"]["text"] == "CLIP(fee, 0, 𝄞)"
    assert insert["deletedRegion"] == {"startLine": 1, "startColumn": 1, "endLine": 1, "endColumn": 1}
    assert "fixes" not in third
    (said,) = run["invocations"][0]["toolExecutionNotifications"]
    assert not run["invocations"][0]["executionSuccessful"] and "there is no such file" in said["message"]["text"]


@pytest.mark.parametrize("code", CODES)
def test_sarif_rules(code: str) -> None:
    """What a viewer shows of a rule: title, the page's first paragraph, the page."""
    (rule,) = read_sarif(FORMATS["sarif"](Report((finding(code=code),))))["tool"]["driver"]["rules"]
    page = load_page(code)
    assert rule["id"] == code and rule["name"].isidentifier() and rule["name"][0].isupper()
    assert rule["shortDescription"]["text"] == CODES[code].title
    assert rule["help"] == {"text": page, "markdown": page}
    paragraph = rule["fullDescription"]["text"]
    assert paragraph in " ".join(page.split()) and paragraph.endswith(".") and len(paragraph) <= 1024
    assert rule["defaultConfiguration"]["level"] == ("warning" if code.startswith("DP5") else "error")


def test_sarif_of_a_finding_without_a_place() -> None:
    nowhere = Report((Finding(Diagnostic("DP904", "it failed"), ""), finding(span=None)))
    first, second = read_sarif(FORMATS["sarif"](nowhere))["results"]
    assert "locations" not in first
    assert second["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "queries/cost.sql", "uriBaseId": "%SRCROOT%"}
    }


def test_github_commands() -> None:
    first, second, third, unreadable = read_github(FORMATS["github"](REPORT))
    assert first.name == "error" and third.name == "warning"
    assert first.properties == {
        "file": "queries/cost.sql", "line": "2", "col": "17", "endLine": "2", "endColumn": "20", "title": "dpsql DP201",
    }  # fmt: skip
    assert first.text.splitlines()[0] == "SUM(fee) has no bounds"
    assert (second.properties["line"], second.properties["endLine"]) == ("2", "3")
    assert second.text.startswith("rows, 100 % private: no\n")
    assert unreadable.properties == {"file": "queries/old.sql", "title": "dpsql DP903"}


def test_github_escapes() -> None:
    odd = finding(name="a,b:c%25=d.sql", message="::set-output name=x::1%0A\n::add-mask::x")
    (found,) = read_github(FORMATS["github"](Report((odd,))))
    assert found.properties["file"] == "a,b:c%25=d.sql"
    assert found.text.splitlines()[0] == "::set-output name=x::1%0A ::add-mask::x"


def test_gitlab_issues() -> None:
    first, second, third, old = read_gitlab(FORMATS["gitlab"](REPORT))
    assert first["description"] == "DP201: SUM(fee) has no bounds" and first["severity"] == "major"
    assert first["location"] == {
        "path": "queries/cost.sql",
        "lines": {"begin": 2, "end": 2},
        "positions": {"begin": {"line": 2, "column": 17}, "end": {"line": 2, "column": 20}},
    }
    assert first["content"]["body"].splitlines()[-1] == "`dpsql rule DP201` explains it."
    assert second["location"]["lines"] == {"begin": 2, "end": 3}
    assert third["severity"] == "minor"
    assert old["location"]["path"] == "queries/old.sql" and "there is no such file" in old["description"]


def test_json_records() -> None:
    first, _, _, old = json.loads(FORMATS["json"](REPORT))
    assert (first["code"], first["path"], first["line"], first["column"]) == ("DP201", "queries/cost.sql", 2, 17)
    assert first["statement"] == STATEMENT and first["fix"]["edits"][0]["text"] == "CLIP(fee, 0, 𝄞)"
    assert (old["code"], old["path"]) == ("DP903", "queries/old.sql")


def test_concise_and_full() -> None:
    assert FORMATS["concise"](REPORT).splitlines() == [
        "queries/cost.sql:2:17: DP201 SUM(fee) has no bounds",
        "queries/cost.sql:2:13: DP110 rows, 100 % private: no",
        "queries/cost.sql:2:17: DP501 the error exceeds the value",
    ]
    assert FORMATS["full"](REPORT).count("[DP") == 3
    assert "\x1b[" in full.render(REPORT, color=True) and "\x1b[" not in full.render(REPORT)


def test_fingerprints_stay_when_text_moves() -> None:
    """New lines before a statement and another layout keep them; another file, code or statement does not."""
    (before,) = fingerprints([finding()])
    moved = Finding(finding(text="\n\n" + SQL, span=Span(FEE.start + 2, FEE.end + 2)).diagnostic, f"  {STATEMENT}\n")
    (after,) = fingerprints([moved])
    assert before == after
    others = [
        finding(name="other.sql"),
        finding(code="DP202"),
        Finding(finding().diagnostic, "SELECT 1"),
        finding(),
        finding(),
    ]
    assert len({before, *fingerprints(others)}) == 5  # `before`, three others, and the second of two equal ones
    assert fingerprints(others) == fingerprints(others)


@pytest.mark.parametrize(
    ("name", "windows", "path", "uri"),
    [
        ("a.sql", False, "a.sql", "a.sql"),
        ("./q/./a.sql", False, "q/a.sql", "q/a.sql"),
        ("q/../../a.sql", False, "../a.sql", "../a.sql"),
        ("q\\a.sql", True, "q/a.sql", "q/a.sql"),
        ("q\\a.sql", False, "q\\a.sql", "q%5Ca.sql"),
        ("C:\\data\\a b.sql", False, "C:/data/a b.sql", "file:///C:/data/a%20b.sql"),
        ("\\\\server\\share\\a.sql", False, "//server/share/a.sql", "file://server/share/a.sql"),
        ("/elsewhere/ü.sql", False, "/elsewhere/ü.sql", "file:///elsewhere/%C3%BC.sql"),
        ("<stdin>", False, "<stdin>", "%3Cstdin%3E"),
        ("file:x?y#z.sql", False, "file:x?y#z.sql", "file%3Ax%3Fy%23z.sql"),
        ("100%.sql", False, "100%.sql", "100%25.sql"),
        ("latin-\udce9.sql", False, "latin-\udce9.sql", "latin-%E9.sql"),
        ("half-\ud834.sql", False, "half-\ud834.sql", "half-%EF%BF%BD.sql"),
    ],
)
def test_paths(name: str, windows: bool, path: str, uri: str) -> None:
    assert (path_of(name, windows), uri_of(name, windows)) == (path, uri)


def test_paths_below_the_current_folder_are_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert path_of(str(tmp_path / "q" / "a.sql")) == uri_of(str(tmp_path / "q" / "a.sql")) == "q/a.sql"
    assert path_of(f"{tmp_path}-other/a.sql") == f"{tmp_path}-other/a.sql"


# --- whatever stands in them -----------------------------------------------------------------------------------------

ODD = st.sampled_from(
    ["\x00", "\x1b[31m", "\r", "\n", "\r\n", "\t", "%0A", "::error::", ",", ":", "=", "]]>", "<a b='&'>", '"', "\\",
     "{0}", "}", "](1)", "[", "\u2028", "\u202e", "\ufffe", "\uffff", "𝄞", "é", "e\u0301", "\ud800", "\udcff", " ", "x",
     "#", "?", "/", "//", "..", "C:", "\x7f", "\x85"]
)  # fmt: skip


@given(st.lists(ODD | st.characters(), min_size=1).map("".join))
@settings(max_examples=200)
def test_a_name_can_be_read_back_from_its_uri(name: str) -> None:
    uri = uri_of(name)
    (artifact,) = [
        location["physicalLocation"]["artifactLocation"]
        for result in read_sarif(FORMATS["sarif"](Report((finding(name=name),))))["results"]
        for location in result["locations"]
    ]
    assert artifact["uri"] == uri
    if not any("\ud800" <= c <= "\udfff" for c in name) and not path_of(name).startswith(("C:", "//")):
        assert os.fsdecode(bytes_of(uri)) == path_of(name)


def test_long_sql_stays_short() -> None:
    """A statement of 200,000 characters on one line does not make any format fail."""
    text = "SELECT " + ", ".join(f"SUM(fee) AS f{n}" for n in range(10_000)) + " FROM visits"
    report = Report((Finding(finding(text=text, span=Span(len(text) - 6, len(text))).diagnostic, text),))
    for name, read in READERS.items():
        read(FORMATS[name](report))
    assert len(FORMATS["sarif"](report)) < 10_000 and len(FORMATS["github"](report)) < 1_000


# --- the readers see mistakes ----------------------------------------------------------------------------------------


def test_the_readers_see_mistakes() -> None:
    sarif = FORMATS["sarif"](REPORT)
    for old, new in (
        ('"startLine": 2', '"startLine": 0'),
        ('"2.1.0"', '"2.0.0"'),
        ('"ruleIndex": 0', '"ruleIndex": 1'),
        ('"queries/cost.sql"', '"queries/cost 1.sql"'),
        ('"queries/cost.sql"', '"/queries/cost.sql"'),
        ('"clip {{it}}"', '"clip {{it}}", "colour": 1'),
        ("has no bounds.", "has {0} bounds."),
        ('"utf16CodeUnits"', '"bytes"'),
    ):
        assert old in sarif
        with pytest.raises((AssertionError, jsonschema.ValidationError)):
            read_sarif(sarif.replace(old, new))
    gitlab = FORMATS["gitlab"](REPORT)
    for old, new in (('"major"', '"bad"'), ('"begin": 2', '"begin": 0'), ('"queries/', '"./queries/')):
        assert old in gitlab
        with pytest.raises((AssertionError, jsonschema.ValidationError)):
            read_gitlab(gitlab.replace(old, new))
    github = FORMATS["github"](REPORT)
    for old, new in (("%25 private", "% private"), ("queries/cost", "queries,cost"), ("::error ", ":error ")):
        assert old in github
        with pytest.raises((AssertionError, KeyError, ValueError)):
            read_github(github.replace(old, new))


@pytest.mark.parametrize("name", ["::error::x.sql", "::stop-commands::x/a.sql", " ::error::x.sql"])
def test_no_path_is_a_workflow_command(name: str) -> None:
    """Of the formats that people read, as of that which is commands."""
    report = Report((finding(name),), 1, 1, names=(name,))
    for style in ("concise", "full"):
        out = FORMATS[style](report)
        assert not any(line.lstrip().startswith("::") for line in out.splitlines()) and name.strip() in out
    assert FORMATS["github"](report).count("::") == 2


def test_what_gitlab_takes_for_markdown_is_code() -> None:
    hostile = finding(message="![x](http://evil.example/p.png) @org `#1`", label="a|b", help=("<img src=x>",))
    (issue,) = read_gitlab(FORMATS["gitlab"](Report((hostile,), 1, 1)))
    body = issue["content"]["body"].split("\n\n")
    assert body[0] == "`` ![x](http://evil.example/p.png) @org `#1` ``" and body[1] == "`a`&#124;`b`"
    assert body[2] == "`help: <img src=x>`"
