"""Numbers of EXPLAIN that are multiples of a limit which is not found yet: `2^k`, in text and in JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dpsql.core.ir.nodes import key_sources
from dpsql.core.measures.all_measures import rule
from dpsql.core.noise.measurement import MeasuredRelease
from dpsql.planner.costs.expected_error import amount_of, expected_error
from dpsql.planner.plan import Plan
from dpsql.planner.searches.limits_to_search import Rule, SearchedLimit

EXAMPLES = (9, 12)
"""Octaves whose ± is shown, above that of 1."""


@dataclass(frozen=True, slots=True)
class Multiples:
    """How numbers are shown that a component has: as they are, or as multiples of a limit. limit: None: as they are.
    place: of the release that finds it.

    any_bounds: whether it is a quantile of values whose bounds are not found yet.
    """

    limit: SearchedLimit | None = None
    place: int = 0
    symbol: str = ""
    any_bounds: bool = False

    @classmethod
    def of(cls, plan: Plan, release: int, component: int) -> Multiples:
        """Of a component of a plan."""
        limits = () if plan.searches is None else plan.searches.every
        own = [limit for limit in limits if (release, component) in limit.follow]
        found = [limit for limit in own if limit.limit.rule is not Rule.QUANTILE]
        symbol = "·".join(symbol_of(plan, limit) for limit in found)
        place = plan.searches.places[found[-1].limit.label] if found and plan.searches else 0
        return cls(found[-1] if found else None, place, symbol, any_bounds=len(found) < len(own))

    def error(self, measured: MeasuredRelease, place: int) -> float | None:
        """± at 95 %, of what stands for a limit of 1; None of a choice among no rows, which is NULL."""
        return expected_error(measured, place, any_bounds=self.any_bounds)

    def text(self, shown: str) -> str:
        """A number, as text, of what stands for a limit of 1."""
        if self.limit is None:
            return shown
        return self.symbol if shown == "1" else f"{shown}·{self.symbol}"

    def json(self, number: Any) -> Any:
        """A number of what stands for a limit of 1."""
        if self.limit is None:
            return number
        return {"limit": "found", "factor": number, "search": f"s{self.place}"}

    def examples(self, name: str, measured: MeasuredRelease, place: int) -> Iterator[str]:
        """What some limits would mean for a component."""
        error = self.error(measured, place)
        if self.limit is None or "R" in self.symbol or error is None:
            return
        own = measured.measurements[place].component
        most, rows = self.limit.limit.at_most, f" {own.counted}s" * rule(own).chosen
        one = int(1 / self.limit.limit.grid).bit_length() - 1 if self.limit.limit.grid < 1 else 0
        tops = [k + one for k in EXAMPLES if k + one <= self.limit.largest and (most is None or 1 << k + one <= most)]
        if tops:
            k = self.symbol.removeprefix("2^")
            yield f"{name}: " + "; ".join(f"{k} = {at}: ± {amount_of(error * 2**at)}{rows}" for at in tops)
        if most is not None:
            yield f"{name}: at the declared limit {most:,}: ± {amount_of(error * most)}{rows}, the most"


def symbol_of(plan: Plan, limit: SearchedLimit) -> str:
    """`2^k`, or where there are several limits `2^k0`, by their numbers."""
    assert plan.searches is not None
    if limit.limit.rule.of_values:
        return f"R{plan.searches.every.index(limit)}"
    if len(plan.searches.every) == 1:
        return "2^k"
    return f"2^k{plan.searches.every.index(limit)}"


def searched_by(plan: Plan, release: int) -> str:
    """What a release of the searches finds, e.g. `search of the limit of SUM(amount)`."""
    assert plan.searches is not None
    places = plan.searches.places
    found = [each for each in plan.searches.every if places[each.limit.label] == release]
    if not found:
        return "drawn for a search: its rows depend on it"
    what = " and of ".join(dict.fromkeys(each.limit.words for each in found))
    (keys,) = key_sources(plan.searches.asked[release].measured.node) or ()
    return f"search of the limit of {what} · keys: {keys.origin}"


def limits_from(plan: Plan, release: int) -> str:
    """Where the limits of a release come from, e.g. `limit 2^k from release 0`; empty where they are known."""
    if plan.searches is None:
        return ""
    places, before = plan.searches.places, 0 if plan.keys_first is None else len(plan.keys_first.releases)
    own = (each for each in plan.searches.every if any(at == release for at, _ in each.follow))
    return ", ".join(
        f"limit {symbol_of(plan, each)} from release {before + places[each.limit.label] + 1}" for each in own
    )
