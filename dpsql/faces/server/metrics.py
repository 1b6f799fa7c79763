"""What a server counts: connections, logins, statements, refusals, ε, restarts, and who waits. For the custodian.

*Claim.* No number depends on private data but through what was released and paid for. *Why.* Statements are counted by
the events of the audit log, when what they tell of has left; what is spent is the ledger's, and budgets are the
policy's; workers are free, or replaced, and statements wait, at the declared moments (`pace.py`); how many wait is told
in steps. There is no duration, no number of rows, and nothing of a worker's memory. *When it would be false.* If a run
were counted when it is ready. *Tested by* tests/faces/server/test_metrics.py, tests/deep/faces/server/test_serve.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from dpsql.faces.server.statements import AuditEvent, Recording

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
    """What a database's ledger says an account has spent of a unit; account "": of all accounts in total.

    what: "spent"; or "budget", what the policy allows it, or "left" of that.
    """

    unit: str
    account: str
    epsilon: float
    delta: float
    rho: float
    database: str = ""
    what: str = "spent"


def _nothing() -> Mapping[str, int]:
    return {}


@dataclass
class Metrics:
    """Implements `Recording`: counts what is recorded, once the audit log has it.

    connections, waiting, restarted, workers, free: of each database the front's and the pool's, asked when somebody
    looks. made_up: databases where nothing is charged. version: of dpsql. policies: of each database, its hash.
    """

    recording: Recording
    made_up: Collection[str] = ()
    connections: Callable[[], Mapping[str, int]] = _nothing
    waiting: Callable[[], Mapping[str, int]] = _nothing
    restarted: Callable[[], Mapping[str, int]] = _nothing
    workers: Callable[[], Mapping[str, int]] = _nothing
    free: Callable[[], Mapping[str, int]] = _nothing
    version: str = ""
    policies: Mapping[str, str] = field(default_factory=dict)
    _logins: Counter[Labels] = field(default_factory=Counter)
    _statements: Counter[Labels] = field(default_factory=Counter)
    _refusals: Counter[Labels] = field(default_factory=Counter)
    _charged: Counter[Labels] = field(default_factory=Counter)

    def require(self) -> None:
        """See Recording."""
        self.recording.require()

    def record(self, event: AuditEvent) -> None:
        """As `Recording.record`. Raises OSError: then nothing is counted."""
        self.recording.record(event)
        if event.price:
            self._charged[("database", event.database),] += 1
        match event.what, event.outcome:
            case "login" | "refused login", outcome:
                self._logins[("outcome", "ok" if outcome == "ok" else "refused"),] += 1
            case "statement", "ok":
                is_priced = event.kind == "query" and event.database not in self.made_up
                paid = "fresh" if event.price else "stored" if is_priced else "free"
                self._statements[("database", event.database), ("kind", event.kind), ("answer", paid)] += 1
            case "statement", code:
                self._refusals[("database", event.database), ("code", code)] += 1

    def families(self, spent: Sequence[Spent] | None = None) -> list[Family]:
        """All that is counted, as it is now. spent: what the ledger says; None where nobody could be asked."""
        waiting = {name: step(number) for name, number in self.waiting().items()}
        build: Mapping[Labels, float] = {
            (("database", name), ("version", self.version), ("policy", hash)): 1 for name, hash in self.policies.items()
        }
        found = [
            Family("dpsql_connections", "Clients that are logged in.", "gauge", _of_each(self.connections())),
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
                self._charged,
            ),
            Family("dpsql_build_info", "Version, and the policy of each database.", "gauge", build),
            Family("dpsql_workers", "Workers that run statements.", "gauge", _of_each(self.workers())),
            Family("dpsql_workers_free", "Those that wait for one.", "gauge", _of_each(self.free())),
            Family(
                "dpsql_workers_restarted_total", "Workers that were replaced.", "counter", _of_each(self.restarted())
            ),
            Family("dpsql_queue", "Statements that wait, at most: in steps.", "gauge", _of_each(waiting)),
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
    return (("database", spent.database), ("unit", spent.unit), *account, ("part", part))


def _of_each(numbers: Mapping[str, int]) -> Mapping[Labels, float]:
    return {(("database", name),): number for name, number in numbers.items()}


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
