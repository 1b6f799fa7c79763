"""What a server counts: by what the audit log was told, and never before; as Prometheus reads it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from dpsql.faces.server.metrics import STEPS, Metrics, Spent, exposition, step
from dpsql.faces.server.statements import AuditEvent
from tests.support.answering import Recorded
from tests.support.canary import MARKER

STATEMENT = {"what": "statement", "name": "ana", "address": "::1", "statement": MARKER, "database": "clinic"}
SPENT = [
    Spent("patient", "", 0.5, 1e-9, 0, "clinic"), Spent("patient", 'a"na\\\n', 0.25, 0, 0, "clinic"),
    Spent("patient", "", 3, 1e-6, 0, "clinic", "budget"), Spent("patient", "", 2.5, 1e-6, 0, "clinic", "left"),
]  # fmt: skip
EVENTS: list[dict[str, Any]] = [
    {**STATEMENT, "what": "login"},
    {**STATEMENT, "what": "refused login", "outcome": "28P01"},
    {**STATEMENT, "kind": "query", "price": "ε 0.1", "plan": "p", "entry": "e"},
    {**STATEMENT, "kind": "query", "price": "ε 0.2", "plan": "p", "entry": "e"},
    {**STATEMENT, "kind": "query", "plan": "p"},
    {**STATEMENT, "kind": "query", "plan": "p", "database": "clinic_made_up"},
    {**STATEMENT, "kind": "explain", "plan": "p"},
    {**STATEMENT, "kind": "catalogue"},
    {**STATEMENT, "outcome": "DP201"},
    {**STATEMENT, "outcome": "DP201"},
    {**STATEMENT, "outcome": "25006"},
    {**STATEMENT, "outcome": "DP415", "price": "ε 0.1", "entry": "e"},
    {**STATEMENT, "what": "charged", "outcome": "DP901", "price": "ε 0.1", "entry": "e"},
    {**STATEMENT, "what": "stop"},
    {**STATEMENT, "what": "end"},
]
SAMPLE = re.compile(r'([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\.)*",?)*)\})? (-?[0-9.e+-]+)')


def test_what_is_recorded_is_counted() -> None:
    log = Recorded()
    metrics = Metrics(
        log, {"clinic_made_up"}, connections=lambda: {"clinic": 3, "shop": 0}, waiting=lambda: {"clinic": 7},
        restarted=lambda: {"clinic": 2}, workers=lambda: {"clinic": 4}, free=lambda: {"clinic": 1}, version="1",
        policies={"clinic": "h"},
    )  # fmt: skip
    for event in EVENTS:
        metrics.record(AuditEvent(**event))
    assert len(log.events) == len(EVENTS)
    text = exposition(metrics.families(SPENT))
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert all(SAMPLE.fullmatch(line) for line in lines) and text.endswith("\n")
    assert set(lines) == {
        'dpsql_connections{database="clinic"} 3',
        'dpsql_connections{database="shop"} 0',
        'dpsql_logins_total{outcome="ok"} 1',
        'dpsql_logins_total{outcome="refused"} 1',
        'dpsql_statements_total{database="clinic",kind="query",answer="fresh"} 2',
        'dpsql_statements_total{database="clinic",kind="query",answer="stored"} 1',
        'dpsql_statements_total{database="clinic_made_up",kind="query",answer="free"} 1',
        'dpsql_statements_total{database="clinic",kind="explain",answer="free"} 1',
        'dpsql_statements_total{database="clinic",kind="catalogue",answer="free"} 1',
        'dpsql_refusals_total{database="clinic",code="DP201"} 2',
        'dpsql_refusals_total{database="clinic",code="25006"} 1',
        'dpsql_refusals_total{database="clinic",code="DP415"} 1',
        'dpsql_charged_total{database="clinic"} 4',
        'dpsql_build_info{database="clinic",version="1",policy="h"} 1',
        'dpsql_workers{database="clinic"} 4',
        'dpsql_workers_free{database="clinic"} 1',
        'dpsql_workers_restarted_total{database="clinic"} 2',
        'dpsql_queue{database="clinic"} 10',
        *(
            f'dpsql_spent{{database="clinic",unit="patient",account="a\\"na\\\\\\n",part="{part}"}} {x}'
            for part, x in (("epsilon", 0.25), ("delta", 0), ("rho", 0))
        ),
        *(
            f'dpsql_spent_in_total{{database="clinic",unit="patient",part="{part}"}} {x}'
            for part, x in (("epsilon", 0.5), ("delta", "1e-09"), ("rho", 0))
        ),
        *(
            f'dpsql_{what}_in_total{{database="clinic",unit="patient",part="{part}"}} {x}'
            for what, most in (("budget", 3), ("left", 2.5))
            for part, x in (("epsilon", most), ("delta", "1e-06"), ("rho", 0))
        ),
    }
    names = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
    assert len(names) == len(set(names)) and {line.split("{")[0].split()[0] for line in lines} <= set(names)
    assert MARKER not in text and "ε" not in text


def test_what_the_audit_log_does_not_have_is_not_counted() -> None:
    class Full:
        def record(self, event: AuditEvent) -> None:
            raise OSError

        def require(self) -> None:
            raise OSError

    metrics = Metrics(Full())
    with pytest.raises(OSError):
        metrics.record(AuditEvent(**EVENTS[2]))
    assert "statements_total{" not in exposition(metrics.families())


@pytest.mark.parametrize(("waiting", "told"), [(0, 0), (1, 1), (3, 5), (50, 50), (51, 100), (10_000, 100)])
def test_the_queue_is_told_in_steps(waiting: int, told: int) -> None:
    assert step(waiting) == told and told in STEPS
