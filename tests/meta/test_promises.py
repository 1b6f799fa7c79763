"""Every kind of promise that `dpsql policy audit` may list has a page that says what breaks when it is false."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from dpsql.policy.load import load_policy
from dpsql.policy.tools.assumptions import Kind, promises

PAGES = Path(__file__).resolve().parent.parent.parent / "docs" / "reference" / "promises"
KINDS: tuple[str, ...] = get_args(Kind)
SECTIONS = ["What it allows", "What breaks when it is false", "How to check it", "How to enforce instead"]


def block(text: str, language: str) -> str:
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return str(found)


def test_every_kind_has_its_page_and_every_page_its_kind() -> None:
    assert {path.stem for path in PAGES.glob("*.md")} == {*KINDS, "README"}


def test_the_first_page_lists_every_kind_in_the_order_of_the_audit() -> None:
    listed = re.findall(
        r"^\| \[`(\w+)`\]\((\w+)\.md\)", (PAGES / "README.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert listed == [(kind, kind) for kind in KINDS]


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_has_one_form(kind: str) -> None:
    text = (PAGES / f"{kind}.md").read_text(encoding="utf-8")
    assert text.startswith(f"# Promise: {kind}\n")
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == SECTIONS
    assert "assert " in block(text, "python")  # tests/deep/meta/test_docs.py runs it


@pytest.mark.parametrize("kind", KINDS)
def test_the_policy_of_a_page_makes_the_promise(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(block((PAGES / f"{kind}.md").read_text(encoding="utf-8"), "yaml"), encoding="utf-8")
    assert kind in {promise.kind for promise in promises(load_policy(file))}


def test_the_threat_model_names_what_is_not_protected() -> None:
    text = (PAGES.parent.parent / "threat-model.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == [
        "Who is trusted with what",
        "What is protected, and by what",
        "In process, and served",
        "What is not protected",
        "Known limitations",
        "What an audit can and cannot show",
        "Reporting",
    ]
    body = text.partition("## What is not protected")[2].partition("\n## ")[0]
    listed = re.findall(r"^- \*\*(.+?)\.?\*\*", body, re.MULTILINE)
    assert {
        "Time", "Memory and disk", "A process that holds the file", "Spill folders", "Collusion beyond the cap",
        "That something was asked before", "An edited file of answers", "Promises", "Views and copies",
        "Arithmetic after the release",
    } <= set(listed)  # fmt: skip
