"""Long comments"""

from __future__ import annotations

from dpsql.faces.check.documents.check_comments import directives_in
from dpsql.faces.check.examine.ignores import read_ignores
from dpsql.frontend.text.split import split_text
from tests.faces.check.test_values import NAMED
from tests.support.checked_files import GOOD, found


def test_long_comments_and_many_are_read_at_once() -> None:
    """Each took time that grew with its square, which for these is minutes."""
    digits = "9" * 100_000
    assert "a constant of SQL" in found(f"-- dpsql: parameters({digits}x)\n{NAMED}")[0].diagnostic.message
    line = "-- dpsql: ignore[DP501]" + " " * 100_000 + "x\n"
    many = "-- dpsql: ignore[DP501] x\n" * 10_000
    for text in (line + GOOD, many + GOOD):
        parts = split_text(text)
        directives = directives_in(text, parts)
        assert {d.statement for d in directives} == {0}
        assert not any(remark.mistakes for remark in read_ignores(text, directives, parts))
