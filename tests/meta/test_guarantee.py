"""The guarantee, README and SECURITY say the same numbers, and those are true."""

from __future__ import annotations

import re
from math import ceil, comb, log2
from pathlib import Path

import pytest

from docs.rooms import below, code
from dpsql.core.ir.nodes import Node
from dpsql.core.policy.budgets import Failures
from dpsql.engines.duckdb.locked.optimizers import ALLOWED

ROOT = Path(__file__).resolve().parents[2]
GUARANTEE = "docs/explanation/guarantee.md"
FORMS = ROOT / "dpsql" / "core" / "printing" / "forms"


def said(file: str, pattern: str) -> set[int]:
    text = " ".join((ROOT / file).read_text(encoding="utf-8").split())
    return {int(number.replace(",", "")) for number in re.findall(pattern, text)}


@pytest.mark.parametrize("file", [GUARANTEE, "README.md", "SECURITY.md"])
def test_lines_of_the_core(file: str) -> None:
    """An upper end, in all of them the same: lines without blanks, comments, docstrings and imports."""
    (most,) = said(file, r"fewer than ([\d,]+) lines")
    assert {most} == said(GUARANTEE, r"fewer than ([\d,]+) lines")
    lines = sum(code(path.read_text(encoding="utf-8")) for path in below(ROOT / "dpsql" / "core"))
    assert lines < most, f"the core has {lines} lines of code: say so in the guarantee, README and SECURITY"


def test_optimizers_that_are_on() -> None:
    assert said(GUARANTEE, r"only the (\d+) on a list") == said("SECURITY.md", r"the (\d+) that move operators are on")
    assert said(GUARANTEE, r"only the (\d+) on a list") == {len(ALLOWED)}


def test_what_failures_tell() -> None:
    """Of 1,000 statements, by what a policy allows that says nothing."""
    defaults = Failures()
    bits = {ceil(log2(comb(1_000, most))) for most in (defaults.most, defaults.in_total)}
    assert said(GUARANTEE, r"up to (\d+) bits") == said("SECURITY.md", r"up to (\d+) bits") == bits


def test_operators_of_a_plan() -> None:
    assert said(GUARANTEE, r"a plan of (\d+) operators") == {len(Node.__args__)}


def table(heading: str) -> list[list[str]]:
    text = (ROOT / GUARANTEE).read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = [line.strip("|").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in row] for row in rows[1:]]


def test_every_form_has_a_row_with_its_file() -> None:
    rows = table("The forms")
    assert [row[0] for row in rows] == [f"F{i}" for i in range(1, 11)]
    assert {row[1].strip("`") for row in rows} == {path.name for path in FORMS.glob("*.py")} - {"__init__.py"}
    for form, file, *_ in rows:
        assert f"({form})" in (FORMS / file.strip("`")).read_text(encoding="utf-8").partition('"""\n')[0]


def test_the_sql_of_forms_is_emitted_or_stands_in_their_heads() -> None:
    shown = "".join(path.read_text(encoding="utf-8") for path in [*FORMS.glob("*.py"), *_statements()])
    squeezed = " ".join(shown.replace("{", "").replace("}", "").split())
    for form, _, _, sql in table("The forms"):
        for text in re.findall(r"`([^`]*[A-Z]{4}[^`]*)`", sql):
            parts = [part.strip() for part in text.split("…") if len(part.strip()) > 2]
            assert all(part in squeezed for part in parts), (form, text)


def _statements() -> list[Path]:
    return sorted((ROOT / "tests" / "fixtures" / "sql").glob("*.test"))


def test_every_claim_of_assumptions_is_there_once() -> None:
    assert [row[0].strip("*") for row in table("The four assumptions")] == ["E1", "E2", "E3", "E4"]
