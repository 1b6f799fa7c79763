"""select, ignore and per-file-ignores: what they hide, and what nothing hides."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpsql.diagnostics.codes import CODES
from dpsql.faces.check.examine.examine_text import TextOptions
from dpsql.faces.check.examine.selection import CodeSelection, is_protected, selection, wrong_codes
from tests.support.checked_files import NO_BOUNDS, NO_KEY, codes

PROTECTED = sorted(code for code in CODES if code[:3] in ("DP0", "DP1", "DP2"))


def test_what_nothing_hides() -> None:
    everything = CodeSelection(("DP5",), tuple(CODES), (("*", tuple(CODES)),))
    hidden = everything.hidden_in("any.sql")
    assert [code for code in PROTECTED if not everything.shows(code, hidden)] == []
    assert all(is_protected(code) for code in PROTECTED)
    assert not everything.shows("DP301", hidden) and not everything.shows("DP501", hidden)


@pytest.mark.parametrize(
    "code", ["DP", "DP0", "DP1", "DP2", "DP201", "DP110", "DP9", "DP904", "dp5", "X", "DP777", "DP3011", ""]
)
def test_codes_that_cannot_be_ignored(code: str) -> None:
    assert wrong_codes([code], ignored=True) is not None


@pytest.mark.parametrize("code", ["DP3", "DP301", "DP4", "DP5", "DP412", "DP902"])
def test_codes_that_can(code: str) -> None:
    assert wrong_codes([code], ignored=True) is None and wrong_codes([code], ignored=False) is None


def test_select_and_ignore(tmp_path: Path) -> None:
    def with_(select: list[str], ignore: list[str], per_file: dict[str, list[str]] | None = None) -> TextOptions:
        return TextOptions(selection=selection(select, ignore, per_file or {}, str(tmp_path)))

    name = str(tmp_path / "legacy" / "old" / "q.sql")
    both = f"{NO_KEY};\n{NO_BOUNDS}"
    assert codes(both, with_([], []), name) == ["DP301", "DP201"]
    assert codes(both, with_(["DP5"], []), name) == ["DP201"]
    assert codes(both, with_(["DP301"], []), name) == ["DP301", "DP201"]
    assert codes(both, with_([], ["DP3"]), name) == ["DP201"]
    assert codes(both, with_(["DP3"], ["DP301"]), name) == ["DP201"]  # ignore wins
    for pattern, expected in [
        ("legacy/", ["DP201"]),
        ("old/*.sql", ["DP301", "DP201"]),  # a slash inside: from the configuration's folder on
        ("**/old/*.sql", ["DP201"]),
        ("q.sql", ["DP201"]),
        ("other/", ["DP301", "DP201"]),
    ]:
        assert codes(both, with_([], [], {pattern: ["DP301"]}), name) == expected, pattern
