"""What the audit refuses by name."""

from __future__ import annotations

import pytest

from dpsql.audit.run import audit
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Rejected
from dpsql.planner.settings import Settings
from tests.support.planning import policy

POLICY = policy(
    """
people:
  unit: {rows: 1}
  columns:
    kind: {type: varchar, domain: [a, b], nullable: false}
"""
)


def test_a_mode_is_not_audited() -> None:
    with pytest.raises(Rejected) as refused:
        audit(Source("SELECT COUNT(*) AS n, MODE(kind) AS m FROM people"), POLICY, Settings(epsilon=1))
    (found,) = refused.value.diagnostics
    assert found.code == "DP101" and found.message.startswith("MODE(kind) is not audited") and found.help
