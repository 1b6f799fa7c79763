"""Names and values that want to be more than text: to the terminal, to what runs CI, to what shows Markdown."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

import dpsql
from tests.support.checked_files import POLICY as CHECKED
from tests.support.checklist_clinic import POLICY, Attack, Call, Clinic

CODES = "\x1b[2J\x1b]0;owned\x07\x9b31m\u202etxet\u2028\x00\r\b"
COMMANDS = ("::set-output name=x::y", "##[error]owned", "a ##vso[task.setvariable variable=x]y", " ::stop-commands::t")
ACTIVE = (
    "[click](https://evil.example)", "![](https://evil.example/x.png)", "<img src=x onerror=alert(1)>", "@everyone",
    "see #1", "a|b", "`code`", "*bold*", "_it_", "https://evil.example", "www.evil.example", "x\\", "&lt;", "~~gone~~",
    "[a][b]",
)  # fmt: skip


def spoken(text: str) -> list[str]:
    """Characters that a terminal obeys, line ends apart."""
    return [c for c in text if c not in "\n" and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")]


def obeyed(text: str) -> list[str]:
    """Lines that GitHub's runner, or Azure's, takes for commands."""
    lines = (
        line for line in re.split(r"[\n\r]", text) if line.lstrip().startswith("::") or re.search(r"##\w*\[", line)
    )
    return list(lines)


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def test_probe_a_column_s_name_does_not_write_to_the_terminal(attack: Attack) -> None:
    name = CODES.replace("\x00", "")
    for sql in (
        f"SELECT COUNT(*) AS {quoted(name)} FROM patients",
        f"SELECT diag AS {quoted(name)}, COUNT(*) AS n FROM patients GROUP BY 1",
        f"WITH t AS (SELECT age AS {quoted(name)} FROM patients) SELECT SUM({quoted(name)}) AS s FROM t",
        f"SELECT COUNT(*) AS n FROM patients WHERE name = '{name}'",
        f"SELECT SUM(x) AS s FROM (SELECT CASE WHEN zip = '{name}' THEN age END AS x FROM patients) AS t",
    ):
        query = attack.con.sql(sql)
        first, again = query.run(epsilon=1), query.run(epsilon=1)
        for answer in (first, again):
            for text in (str(answer), repr(answer), *answer.notes, *map(str, answer._repr_html_().split("\n"))):
                assert not spoken(text), (sql, text)
        for text in (query.explain(epsilon=1), query.explain(epsilon=1, engine_sql=True), repr(query), str(query)):
            assert not spoken(text), (sql, text)
        told = query.explain(epsilon=1, format="json")
        assert not spoken(told)
        assert json.loads(told)["releases"]


def test_probe_names_are_no_commands_to_what_runs_ci(
    make: Callable[..., Clinic], dpsql_command: Callable[..., Call]
) -> None:
    keys = ", ".join("'" + text.replace("'", "''") + "'" for text in COMMANDS)
    clinic = make(policy=POLICY.replace("domain: [flu, HIV, rare]", f"domain: [{keys}]"))
    policy = clinic.policy
    for text in COMMANDS:
        sql = f"SELECT diag AS {quoted(text)}, COUNT(*) AS n FROM patients WHERE zip <> '{text}' GROUP BY diag"
        total = (
            f"SELECT SUM(x) AS {quoted(text)} FROM (SELECT CASE WHEN zip = '{text}' THEN age END AS x FROM patients)"
        )
        for query in (sql, total):
            for form in ("table", "box", "vertical", "unaligned", "markdown", "html", "json", "jsonl"):
                called = dpsql_command("query", policy, query, "--epsilon", "1", "--format", form)
                assert called.status == 0 and not obeyed(called.out + called.err), (form, called)
            for form in ("text", "json"):
                called = dpsql_command("explain", policy, query, "--epsilon", "1", "--format", form, "--engine-sql")
                assert called.status == 0 and not obeyed(called.out + called.err), (form, called)
        called = dpsql_command("query", policy, f"SELECT {quoted(text)}, SUM(income*age) FROM patients\n{text}")
        assert called.status != 0 and not obeyed(called.out + called.err)
        csv = dpsql_command("query", policy, sql, "--epsilon", "1", "--format", "csv").out
        assert not [line for line in csv.split("\n") if line.lstrip().startswith("::")]
    called = dpsql_command("audit", policy, total, "--epsilon", "1", "--runs", "100")
    assert not obeyed(called.out + called.err)
    for form in ("table", "json"):
        called = dpsql_command("budget", policy, "--history", "--format", form)
        assert called.status == 0 and not obeyed(called.out + called.err)
    for command in ("show", "audit", "verify"):
        for form in ("text", "json"):
            called = dpsql_command("policy", command, policy, "--format", form)
            assert not obeyed(called.out + called.err), (command, form, called)


@pytest.mark.parametrize("text", [*COMMANDS, CODES.replace("\x00", "").replace("\r", "")])
def test_probe_files_of_a_branch_are_no_commands_to_what_runs_ci(
    dpsql_command: Callable[..., Call], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """In a statement, in the lines that are shown of it, in a name of a file, a table or a column."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.yaml").write_bytes(CHECKED.read_bytes())
    place = tmp_path / "q"
    place.mkdir()
    (place / f"x\n{text.replace('/', '')}.sql").write_text("SELECT COUNT(*) AS n FROM nowhere")
    (place / "lines.sql").write_text(
        f"/* \n{text}\n */ SELECT\n\n{text}\n FROM t;\nSELECT x FROM \"\n{text}\" WHERE '\n{text}';"
    )
    (place / "names.sql").write_text(
        f"SELECT SUM(cost) AS {quoted(text)} FROM visits;\nSELECT {quoted(text)} FROM visits;\n"
        f"-- dpsql: ignore[{text}]\n"
        f"SELECT COUNT(*) AS {quoted(text)} FROM visits WHERE ward = '{text}' AND ward = NULL;"
    )
    for form in ("full", "concise", "json", "sarif", "gitlab", "github"):
        called = dpsql_command("check", "q", "--policy", "p.yaml", "--no-cache", "--output-format", form)
        shown = called.out + called.err
        assert called.status == 1 and not spoken(shown), shown
        lines = obeyed(shown)
        assert all(re.match(r"::(error|warning) (file|line|title)=", line) for line in lines), lines
        assert bool(lines) == (form == "github") and "##[" not in shown and "##vso[" not in shown
        if form in ("json", "sarif", "gitlab"):
            assert json.loads(called.out)
    for more in (("--budget-report",), ("--statistics",), ("--diff",), ("--budget-report", "--output-format", "json")):
        called = dpsql_command("check", "q", "--policy", "p.yaml", "--no-cache", *more)
        assert not obeyed(called.out + called.err), called


def cells(line: str) -> Iterable[str]:
    return (cell.strip() for cell in line.strip().strip("|").split("|"))


@pytest.mark.parametrize("text", ACTIVE)
def test_probe_a_value_is_text_in_markdown_and_html(
    make: Callable[..., Clinic], dpsql_command: Callable[..., Call], text: str
) -> None:
    """A group key, and a name: each is one cell, and code, in which Markdown gives nothing a meaning."""
    literal = json.dumps(text)
    clinic = make(policy=POLICY.replace("domain: [flu, HIV, rare]", f"domain: [{literal}]"))
    sql = f"SELECT diag AS {quoted(text)}, COUNT(*) AS n FROM patients GROUP BY diag"
    shown = dpsql_command("query", clinic.policy, sql, "--epsilon", "1", "--format", "markdown").out
    head, rule, first, *_ = shown.split("\n")
    assert re.fullmatch(r"\| --- \| ---: \|", rule)
    for line in (head, first):
        name, _ = cells(line)
        pieces = name.split("&#124;")
        assert all(re.fullmatch(r"(`+) ?.+? ?\1", piece) for piece in pieces), line
        assert "|".join(re.sub(r"^(`+) ?(.+?) ?\1$", r"\2", piece) for piece in pieces) == text
    for page in (
        dpsql_command("query", clinic.policy, sql, "--epsilon", "1", "--format", "html").out,
        dpsql.connect(clinic.policy).sql(sql).run(epsilon=1)._repr_html_(),
    ):
        tags = set(re.findall(r"<\s*/?\s*([a-z]+)", page))
        assert tags <= {"table", "thead", "tbody", "tr", "th", "td", "p"}, page
        assert page.count(text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")) == 2


def test_probe_what_markdown_gives_no_meaning_stays_as_it_is(
    make: Callable[..., Clinic], dpsql_command: Callable[..., Call]
) -> None:
    clinic = make(policy=POLICY.replace("domain: [flu, HIV, rare]", "domain: ['north-west (2)', 'a_b, c/d', '50 %']"))
    sql = "SELECT diag AS mean_of, COUNT(*) AS n FROM patients GROUP BY diag"
    shown = dpsql_command("query", clinic.policy, sql, "--epsilon", "1", "--format", "markdown").out
    assert [next(iter(cells(line))) for line in shown.strip().split("\n")] == [
        "mean_of", "---", "north-west (2)", "a_b, c/d", "50 %", "NULL",
    ]  # fmt: skip


def test_probe_formulas_stay_as_they_are_and_the_reader_is_told(
    make: Callable[..., Clinic], dpsql_command: Callable[..., Call], root: Path
) -> None:
    clinic = make(policy=POLICY.replace("domain: [flu, HIV, rare]", "domain: ['=cmd|calc', '+1', '-1', '@x']"))
    sql = "SELECT diag, COUNT(*) AS n FROM patients GROUP BY diag"
    shown = dpsql_command("query", clinic.policy, sql, "--epsilon", "1", "--format", "csv").out
    assert [line.split(",")[0] for line in shown.strip().split("\n")] == ["diag", "=cmd|calc", "+1", "-1", "@x", ""]
    for page in ("docs/reference/cli.md", "docs/howto/shell.md"):
        said = " ".join((root / page).read_text(encoding="utf-8").split())
        assert re.search(r"formula[^.]*\.", said) and "spreadsheet" in said, page
