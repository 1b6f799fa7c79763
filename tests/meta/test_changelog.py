"""The changelog is for users: privacy first, entries that can be scanned, no version that is not there."""

from __future__ import annotations

import re
from pathlib import Path

import dpsql

LONGEST = 320
"""Characters of an entry: two lines and a half."""


def problems(text: str) -> list[str]:
    """What is wrong with a changelog."""
    wrong = []
    parts = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)[1:]
    versions = dict(zip(parts[::2], parts[1::2], strict=True))
    for name, body in versions.items():
        if name != "Unreleased" and not re.fullmatch(r"\d+\.\d+\.\d+ \(\d{4}-\d\d-\d\d\)", name):
            wrong.append(f"{name}: neither Unreleased nor a version with its day")
        topics = re.findall(r"^### (.+)$", body, re.MULTILINE)
        if topics[:1] != ["Privacy"] and "Privacy" in topics:
            wrong.append(f"{name}: Privacy comes first")
        if len(set(topics)) < len(topics):
            wrong.append(f"{name}: a topic stands there twice")
        entries = re.findall(r"^- (.+(?:\n  .+)*)", body, re.MULTILINE)
        wrong += [f"{name}: long: {entry[:40]}…" for entry in entries if len(" ".join(entry.split())) > LONGEST]
    return wrong


def test_the_changelog_can_be_scanned(root: Path) -> None:
    text = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    assert "\n## Unreleased\n" in text or f"\n## {dpsql.__version__} (" in text
    assert problems(text) == []


def test_a_changelog_that_cannot_is_noticed() -> None:
    diary = "## 0.2.0\n### Added\n- x\n### Privacy\n- y\n### Added\n- " + "and then " * 50 + "\n"
    assert [p.partition(": ")[2][:20] for p in problems(diary)] == [
        "neither Unreleased n", "Privacy comes first", "a topic stands there", "long: and then and t",
    ]  # fmt: skip
