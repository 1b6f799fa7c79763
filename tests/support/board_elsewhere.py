"""A batch and a summary of the board's visits: numbers before noise, and answers, to compare places of data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dpsql
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.core.release.noisy import exact_totals
from tests.support.summary_board import HUGE

MEMBERS = (
    "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY ward",
    "SELECT COUNT(*) AS n FROM visits WHERE day >= DATE '2025-01-03' OR ward = 'a'",
)
CREATE = "CREATE DP SUMMARY v ON visits (ward, day)"


def exactly(policy: Path) -> list[Any]:
    """Of every marginal of both, before noise: what the integers of its cells are worth."""
    with dpsql.connect(policy, analyst="ana", ledger=":memory:") as con:
        plans = [con.batch(MEMBERS).plan(epsilon=1), *con.summary_of(CREATE).begun(epsilon=1).plans.values()]
        found = []
        for release in (release for plan in plans for release in plan.releases):
            (measured,) = release.measured.measurements
            cells: dict[Any, Any] = exact_totals(release, con.service.engine, 7)
            found.append({key: number * measured.unit for key, (number,) in cells.items()})
        return found


def answers(policy: Path) -> list[Any]:
    """At a huge ε, of the batch, and of its queries from the summary, for nothing."""
    with dpsql.connect(policy, analyst="ana") as con:
        batch = [None if each is None else each.rows for each in con.batch(MEMBERS).run(epsilon=HUGE)]
        con.execute(CREATE, epsilon=HUGE)
        told = [con.sql(sql).run(epsilon=0.001) for sql in MEMBERS]
        assert [each.spent for each in told] == [PrivacyLoss(), PrivacyLoss()]
        assert all(any(note.startswith("from summary v ") for note in each.notes) for each in told)
        return [batch, [list(each.rows) for each in told]]
