"""The pages for users stay few words: 50,000 in all, and 1,500 each but for references.

A page for users stands in the site's navigation outside of *Project* and *For developers*, or is a promise. A word has
a letter or a digit; blocks of code are not read as prose, and are not counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

IN_ALL, EACH = 50_000, 1_500
OTHERS = {"Project", "For developers"}
REFERENCES = {f"reference/{name}.md" for name in ("cli", "policy", "python", "sql")} | {"cookbook.md"}


def pages(part: Any) -> Iterator[str]:
    """The pages of a part of the navigation."""
    if isinstance(part, str):
        yield part
    for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from pages(inner)


def for_users(root: Path) -> set[str]:
    nav = YAML().load((root / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    found = {page for part in nav if not (isinstance(part, dict) and set(part) & OTHERS) for page in pages(part)}
    return found | {f"reference/promises/{p.name}" for p in (root / "docs" / "reference" / "promises").glob("*.md")}


def words(text: str) -> int:
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    return sum(any(c.isalnum() for c in token) for token in prose.split())


def counted(root: Path) -> dict[str, int]:
    return {page: words((root / "docs" / page).read_text(encoding="utf-8")) for page in sorted(for_users(root))}


def test_all_pages_are_few_words(root: Path) -> None:
    assert len(counted(root)) > 50
    assert sum(counted(root).values()) <= IN_ALL


def test_no_page_is_long_but_references(root: Path) -> None:
    found = counted(root)
    assert {page for page, n in found.items() if n > EACH} <= REFERENCES <= set(found)


def test_every_page_of_docs_is_in_the_navigation(root: Path) -> None:
    """So that a new page counts, or is said to be for others."""
    nav = YAML().load((root / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    named = set(pages(nav)) | for_users(root)
    folders = (root / "docs" / folder for folder in ("howto", "reference", "explanation"))
    assert [p.name for folder in folders for p in folder.glob("*.md") if f"{folder.name}/{p.name}" not in named] == []


def test_what_is_counted() -> None:
    assert words("| `a` | two words: x |\n```sql\nSELECT 1\n```\n- **one** …") == 5
