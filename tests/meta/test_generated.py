"""Generated files are what `make generate` would write now."""

from __future__ import annotations

import re
from pathlib import Path

from docs import generate
from dpsql.diagnostics.codes import CODES


def test_generated_files_are_fresh() -> None:
    assert generate.stale() == [], "run `make generate`"


def test_the_index_of_diagnostics_lists_every_code_once_with_a_link_that_leads_somewhere(root: Path) -> None:
    text = generate.diagnostics_index()
    links = re.findall(r"\[(DP\d{3})\]\(([^)]+)\)", text)
    assert [code for code, _ in links] == list(CODES)
    assert all((root / "docs" / target).exists() for _, target in links)


def test_links_between_documents_lead_somewhere(root: Path) -> None:
    documents = [*(root / "docs").glob("*.md"), *root.glob("*.md")]
    broken = {
        f"{document.relative_to(root)}: {target}"
        for document in documents
        for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", document.read_text(encoding="utf-8"))
        if "://" not in target and not target.startswith("mailto:") and not (document.parent / target).exists()
    }
    assert documents and broken == set()
