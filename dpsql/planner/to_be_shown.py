"""A query of which no group could be shown is refused before it is paid for, where nobody wants it all the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from dpsql.diagnostics.errors import Rejected
from dpsql.planner.plan import Plan
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.planner.stages.releasing import Releasing

ANYWAY: Final = "or run it all the same: /* dpsql: anyway=on */ SELECT …"


def to_be_shown(plan: Plan, settings: QuerySettings) -> Plan:
    """The plan, with what was thought of refusing as warnings. Raises Rejected DP305."""
    refused = [w for w in plan.warnings if w.severity == "error"]
    if not refused:
        return plan
    # Once limits were found it is paid for.
    if not (settings.anyway or settings.nominal or settings.found):
        raise Rejected([replace(w, help=(*w.help, ANYWAY)) for w in refused])
    return replace(plan, stages=tuple(s.as_warnings() if isinstance(s, Releasing) else s for s in plan.stages))
