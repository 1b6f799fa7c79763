"""The benchmarks, in the order in which they run and are shown."""

from __future__ import annotations

from typing import Protocol

from benchmarks import (
    dashboards,
    growth,
    ledger,
    limits,
    memory,
    noise,
    planning,
    prepared,
    quantiles,
    queries,
    samplers,
    server,
    spark,
    tpch,
)
from benchmarks.frame import Figures, Settings
from benchmarks.peers import contest


class Part(Protocol):
    """What a benchmark's module offers."""

    TITLE: str

    def run(self, settings: Settings) -> Figures:
        """Measure."""
        ...

    def markdown(self, figures: Figures) -> str:
        """Show."""
        ...


PARTS: dict[str, Part] = {
    "queries": queries,
    "prepared": prepared,
    "planning": planning,
    "noise": noise,
    "samplers": samplers,
    "ledger": ledger,
    "growth": growth,
    "memory": memory,
    "tpch": tpch,
    "limits": limits,
    "quantiles": quantiles,
    "dashboards": dashboards,
    "server": server,
    "peers": contest,
}
ELSEWHERE: dict[str, Part] = {"spark": spark}
"""Run by itself, in an environment of its own; its figures are shown beside the others."""
