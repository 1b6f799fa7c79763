"""Answers whose limits were found: they list what the limits were read from.

ε is so large that a noisy count differs from the true one with a probability below 1e-12.
"""

from __future__ import annotations

from dpsql.api.connection import Connection
from dpsql.planner.postprocessing.searches.told import Octave

ASKED = "SELECT COUNT(*) AS n FROM visits"


def test_bounds_and_coverage(shared: Connection) -> None:
    """Each of 1,000 members has 5 visits, and the policy lets 4 count."""
    answer = shared.sql(ASKED).run(epsilon=400, limits="search", fresh=True)
    (found,) = answer.bounds
    assert (found.what, found.unit, found.limit, found.beyond) == ("COUNT(*)", "member", 4, (1000, 0))
    assert found.octaves[:4] == (Octave(0, 1, 0, 0), Octave(1, 2, 0, 0), Octave(2, 4, 0, 0), Octave(4, 8, 1000, 0))
    assert len(found.octaves) == 63, "also those beyond the declared limit"
    assert [cell.number for cell in answer.coverage[0].cells] == [1000, 0]
    assert abs(answer.rows[0][0] - 4000) < 1
    assert "limit of COUNT(*) found: 4 per member (search ε 100, kept for later queries)" in answer.notes
    assert "about 1,000 ± 0 member units lie above the limit of COUNT(*) and were cut" in answer.notes
    (row,) = shared.sql("SELECT COUNT(DISTINCT hours) AS n FROM visits").run(epsilon=400, limits="search").bounds
    assert row.what == "COUNT(DISTINCT hours)"
    (age,) = shared.sql("SELECT SUM(age) AS s FROM members").run(epsilon=400).bounds or [None]
    assert age is None, "nothing was searched"
