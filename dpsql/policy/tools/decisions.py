"""Decisions that a draft leaves open. Until a person has made each of them, nothing is answered from true data.

*Claim.* Under a policy with an open decision no number leaves that depends on a row. *Why.* Whatever answers stands on
a `Service`, which asks here before it takes true data; only one over made-up rows does not ask. `draft: true` is
content, which no tool that drops comments takes out. *When it would be false.* If something answered from true data
without a Service. *Tested by* tests/faces/cli/test_open_decisions.py.
"""

from __future__ import annotations

import re
from typing import Literal, TypeVar

from dpsql.core.policy.policy import Policy
from dpsql.core.policy.units import RowUnit
from dpsql.diagnostics.diagnostic import Diagnostic, Span
from dpsql.diagnostics.errors import CannotOpen
from dpsql.policy.issues import listed

AnyPolicy = TypeVar("AnyPolicy", bound=Policy)

_DECIDE = re.compile(r"#.*\bDECIDE\b")
"""A line that waits for somebody to decide."""


def undecided(policy: Policy, severity: Literal["error", "warning"] = "error") -> tuple[Diagnostic, ...]:
    """DP016 where a decision is open; empty where none is."""
    source = policy.places.source
    spans = [] if source is None else [Span(m.start(), m.end()) for m in _DECIDE.finditer(source.text)]
    if not spans and not policy.draft:
        return ()
    help: tuple[str, ...] = ("or ask made-up rows meanwhile, for nothing:  --draft,  in Python  draft=True",)
    if spans and source is not None:
        lines = [str(source.position(span.start)[0]) for span in spans]
        shown = ", ".join(lines[:8]) + (f" and {len(lines) - 8} more" if len(lines) > 8 else "")
        is_open = f"{len(spans)} decisions are open (lines {shown})" if spans[1:] else f"line {shown} is not decided"
        what = "decide each, and take out its DECIDE"
        help = (f"{what}; then the line  draft: true" if policy.draft else what, *help)
    else:
        is_open, help = "it says  draft: true", ("if all is decided, take out the line  draft: true", *help)
        place = policy.place("draft")
        source, spans = (None, []) if place is None else (place[0], [place[1]])
    rows = [t.name for t in policy.tables.values() if isinstance(t.protection, RowUnit)]
    who = f"; a single row would be protected in {listed(rows)}, not a person" if rows else ""
    message = f"the policy is a draft, from which nobody is answered: {is_open}{who}"
    span = spans[0] if spans else None
    return (Diagnostic("DP016", message, source, span, help=help, severity=severity),)


def decided(policy: AnyPolicy) -> AnyPolicy:
    """The policy itself. Raises CannotOpen DP016 where a decision is open."""
    if found := undecided(policy):
        raise CannotOpen(found)
    return policy
