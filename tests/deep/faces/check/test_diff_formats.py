"""Comments of"""

from __future__ import annotations

from dpsql.faces.check.report.diff import Comparison
from dpsql.faces.check.report.diff_formats import as_markdown
from tests.faces.check.test_diff_formats import ABOUT, comparison


def test_a_comment_is_never_too_long() -> None:
    pairs = comparison("a" * 900).pairs * 100
    out = as_markdown(Comparison(pairs, False), ABOUT)
    assert 30_000 < len(out) < 65_000 and "more rows." in out
