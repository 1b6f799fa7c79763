"""Every diagnostic has a page of one form, and the examples on it behave as the page says.

A page is `# CODE: title` and the sections *What it means · Why · Repair · Example*. The example is a rejected and an
accepted block: of `sql` or `yaml`, which are executed here; of `python` or `sh` (test_page_commands.py); or of `text`,
which describes what no example can show. SQL runs against tests/fixtures/policies/pages.yaml unless the page holds a
`yaml policy` block; a policy is checked with the query of a `sql query` block, or a plain count.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

import dpsql
from dpsql.diagnostics.codes import CODES, Code
from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.diagnostics.errors import Error
from dpsql.diagnostics.pages_loader import load_page
from dpsql.diagnostics.render import render_text

PAGES = Path(dpsql.__file__).parent / "diagnostics" / "pages"
SHARED_POLICY = Path(__file__).resolve().parents[1] / "fixtures" / "policies" / "pages.yaml"
SECTIONS = ["What it means", "Why", "Repair", "Example"]
PLAIN_QUERY = "SELECT COUNT(*) AS n FROM people"
BLOCK = re.compile(r"^```(\w+) (\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Example:
    """The fenced blocks of a page: (language, role) → text."""

    blocks: dict[tuple[str, str], str]

    @property
    def language(self) -> str:
        return next(language for language, role in self.blocks if role == "rejected")

    def run(self, role: str, folder: Path) -> list[Diagnostic]:
        """The diagnostics of the `rejected` or `accepted` block."""
        policy = SHARED_POLICY
        own_policy = self.blocks.get(("yaml", "policy"), self.blocks.get(("yaml", role)))
        if own_policy is not None:
            policy = folder / f"{role}.yaml"
            policy.write_text(own_policy, encoding="utf-8")
        sql = self.blocks.get(("sql", role), self.blocks.get(("sql", "query"), PLAIN_QUERY))
        try:
            dialect = re.match(r"-- dialect: (\w+)\n", sql)
            of_policy = dpsql.Policy.from_file(policy).warnings if self.language == "yaml" else ()
            return [*of_policy, *dpsql.check(sql, policy, dialect=dialect[1] if dialect else "duckdb")]
        except Error as error:
            return list(error.diagnostics)


def read_example(code: str) -> Example:
    blocks = BLOCK.findall(load_page(code))
    keys = [(language, role) for language, role, _ in blocks]
    assert len(set(keys)) == len(keys), "a block stands twice"
    return Example({(language, role): text for language, role, text in blocks})


EXECUTABLE = [code for code in CODES if read_example(code).language in ("sql", "yaml")]


def test_pages_and_codes_belong_together() -> None:
    """No code without a page, no page without a code; names are as the table says."""
    assert sorted(path.name for path in PAGES.iterdir()) == [entry.page for entry in CODES.values()]


@pytest.mark.parametrize("entry", CODES.values(), ids=list(CODES))
def test_the_page_is_complete(entry: Code) -> None:
    page = load_page(entry.code)
    assert page.startswith(f"# {entry.code}: {entry.title}\n")
    assert re.findall(r"^## (.*)$", page, re.MULTILINE) == SECTIONS
    for text in re.split(r"^## .*$", page, flags=re.MULTILINE)[1:]:
        assert len(text.split()) >= 8, "a section says nothing"
    roles = [(language, role) for language, role in read_example(entry.code).blocks]
    assert [role for _, role in roles if role in ("rejected", "accepted")] == ["rejected", "accepted"]
    assert len({language for language, role in roles if role in ("rejected", "accepted")}) == 1
    assert {language for language, _ in roles} <= {"sql", "yaml", "python", "sh", "text"}
    assert page.count("```") == 2 * len(roles), "a block without language and role"
    assert page.endswith("\n") and not any(len(line) > 120 for line in page.splitlines())
    for code in re.findall(r"\bDP\d{3}\b", page):
        assert code in CODES or code == "DP999"


def test_what_the_analysis_refuses_is_shown_by_an_executed_example() -> None:
    """A DP1xx, DP2xx or DP3xx is about text alone, so its example can be executed, and must be; a run alone tells
    DP212."""
    assert [code for code in CODES if code[2] in "123" and code not in EXECUTABLE] == ["DP212"]


@pytest.mark.parametrize("code", EXECUTABLE)
def test_the_rejected_example_is_rejected_with_the_code_of_the_page(code: str, tmp_path: Path) -> None:
    found = findings(code, read_example(code).run("rejected", tmp_path))
    assert {diagnostic.code for diagnostic in found} == {code}, render_text(found)
    for diagnostic in found:
        assert diagnostic.source is not None and diagnostic.span is not None, "no place to put the caret"
        assert diagnostic.source.text[diagnostic.span.start : diagnostic.span.end].strip() or code in ("DP002", "DP010")
        assert diagnostic.help or code in ("DP002", "DP003"), "no repair"  # there, the message itself names it
        assert f"`dpsql rule {code}`" in render_text([diagnostic])


@pytest.mark.parametrize("code", EXECUTABLE)
def test_the_accepted_example_is_accepted(code: str, tmp_path: Path) -> None:
    found = read_example(code).run("accepted", tmp_path)
    assert not found, render_text(found)


def findings(code: str, diagnostics: Sequence[Diagnostic]) -> list[Diagnostic]:
    """The errors, for a DP5xx, DP007 and DP015 the warnings: of the others no page is about a warning."""
    severity = "warning" if code.startswith("DP5") or code in ("DP007", "DP015") else "error"
    return [diagnostic for diagnostic in diagnostics if diagnostic.severity == severity]
