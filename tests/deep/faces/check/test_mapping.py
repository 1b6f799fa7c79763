"""Long models"""

from __future__ import annotations

from dpsql.faces.check.documents.mapping import compared
from tests.faces.check.test_mapping import shown


def test_long_models_take_no_minutes() -> None:
    """4,000 lines of which many are the same: compared pair by pair, these were 40 s."""
    kinds = ["    )", "    , x{0} as y{0}", "  from {{{{ ref('m{1}') }}}}", "  where a = b and c = {1}"]
    raw = "\n".join(kinds[i % 4].format(i, i % 7) for i in range(4_000))
    made = raw.replace("{{ ref('m", "db.m").replace("') }}", "")
    back = compared(raw, made)
    assert shown(raw, back, made, "x2001 as y2001") == "x2001 as y2001" and len(back.pieces) < 10_000
