"""What a server counts: connections, logins, statements, refusals, ε, restarts, and who waits. For the custodian.

*Claim.* No number depends on private data but through what was released and paid for. *Why.* Statements are counted by
the events of the audit log, when what they tell of has left; what is spent is the ledger's, and budgets are the
policy's; workers are free, or replaced, and statements wait, at the declared moments (`pace.py`); how many wait is told
in steps. There is no duration, no number of rows, and nothing of a worker's memory. *When it would be false.* If a run
were counted when it is ready. *Tested by* tests/server/test_metrics.py, tests/deep/server/test_serve.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from dpsql.server.statements import Event, Recording

Labels = tuple[tuple[str, str], ...]
STEPS: Final = (0, 1, 2, 5, 10, 20, 50, 100)
"""What the length of the queue is told as: the least of these that is not below it, else the last."""


_PARTS: Final = ("epsilon", "delta", "rho")


@dataclass(frozen=True, slots=True)
class Family:
    """All samples of one name: labels → number. kind: "counter" only grows while the server runs."""

    name: str
    help: str
    kind: Literal["counter", "gauge"]
    samples: Mapping[Labels, float]


@dataclass(frozen=True, slots=True)
class Spent:
    """What the ledger says an account has spent of a unit; account "": of all accounts in total.

    what: "spent"; or "budget", what the policy allows it, or "left" of that.
    """

    unit: str
    account: str
    epsilon: float
    delta: float
    rho: float
    what: str = "spent"


@dataclass
class Metrics:
    """Implements `Recording`: counts what is recorded, once the audit log has it.

    connections, waiting, restarted, workers, free: of the front and the pool, asked when somebody looks. build: version
    and policy.
    """

    recording: Recording
    connections: Callable[[], int] = lambda: 0
    waiting: Callable[[], int] = lambda: 0
    restarted: Callable[[], int] = lambda: 0
    workers: Callable[[], int] = lambda: 0
    free: Callable[[], int] = lambda: 0
    build: Labels = ()
    _logins: Counter[Labels] = field(default_factory=Counter)
    _statements: Counter[Labels] = field(default_factory=Counter)
    _refusals: Counter[Labels] = field(default_factory=Counter)
    _charged: int = 0

    def require(self) -> None:
        """See Recording."""
        self.recording.require()

    def record(self, event: Event) -> None:
        """As `Recording.record`. Raises OSError: then nothing is counted."""
        self.recording.record(event)
        self._charged += bool(event.price)
        match event.what, event.outcome:
            case "login" | "refused login", outcome:
                self._logins[("outcome", "ok" if outcome == "ok" else "refused"),] += 1
            case "statement", "ok":
                paid = "fresh" if event.price else "stored" if event.kind == "query" else "free"
                self._statements[("kind", event.kind), ("answer", paid)] += 1
            case "statement", code:
                self._refusals[("code", code),] += 1

    def families(self, spent: Sequence[Spent] | None = None) -> list[Family]:
        """All that is counted, as it is now. spent: what the ledger says; None where nobody could be asked."""
        one: Labels = ()
        found = [
            Family("dpsql_connections", "Clients that are logged in.", "gauge", {one: self.connections()}),
            Family("dpsql_logins_total", "Logins, and those that were refused.", "counter", self._logins),
            Family(
                "dpsql_statements_total",
                "Statements that were answered. fresh: charged; stored: queries that cost nothing.",
                "counter",
                self._statements,
            ),
            Family("dpsql_refusals_total", "Statements that were refused, by code.", "counter", self._refusals),
            Family(
                "dpsql_charged_total",
                "Statements that were charged, answered or not: lines of the audit log that have a price.",
                "counter",
                {one: self._charged},
            ),
            Family("dpsql_build_info", "Version and policy.", "gauge", {self.build: 1}),
            Family("dpsql_workers", "Workers that run statements.", "gauge", {one: self.workers()}),
            Family("dpsql_workers_free", "Those that wait for one.", "gauge", {one: self.free()}),
            Family("dpsql_workers_restarted_total", "Workers that were replaced.", "counter", {one: self.restarted()}),
            Family("dpsql_queue", "Statements that wait, at most: in steps.", "gauge", {one: step(self.waiting())}),
        ]
        if spent is not None:
            for what, said in _SAID.items():
                own = {_labels(s, p): getattr(s, p) for s in spent if s.what == what and s.account for p in _PARTS}
                whole = {
                    _labels(s, p): getattr(s, p) for s in spent if s.what == what and not s.account for p in _PARTS
                }
                found += [
                    Family(f"dpsql_{what}", f"What an account {said}.", "gauge", own),
                    Family(f"dpsql_{what}_in_total", f"What all accounts together {said}.", "gauge", whole),
                ]
        return found


_SAID: Final = {
    "spent": "spent, by the ledger",
    "budget": "may spend, by the policy",
    "left": "may still spend, of that",
}


def _labels(spent: Spent, part: str) -> Labels:
    account = (("account", spent.account),) if spent.account else ()
    return (("unit", spent.unit), *account, ("part", part))


def step(waiting: int) -> int:
    """How many wait, in steps."""
    return next((step for step in STEPS if waiting <= step), STEPS[-1])


def exposition(families: Sequence[Family]) -> str:
    """As Prometheus reads it: its text format, 0.0.4."""
    lines: list[str] = []
    for family in families:
        lines += [f"# HELP {family.name} {family.help}", f"# TYPE {family.name} {family.kind}"]
        for labels, number in family.samples.items():
            shown = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels)
            lines.append(f"{family.name}{{{shown}}} {number!r}" if shown else f"{family.name} {number!r}")
    return "\n".join([*lines, ""])


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
