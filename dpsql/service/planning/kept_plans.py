"""Plans that were made before by a service, for a query that is asked again.

*Claim.* A plan that is given again is the one that compiling anew would make. *Why.* A plan depends on the query's
text, the values of its parameters (constants of the plan: other values are another query), its settings, the policy,
the measured public facts and the engine's names of the tables; it is kept under all of the first five, and each name is
asked for again. Public facts are checked once more within the run, whatever made the plan. *When it would be false.*
If compiling looked at anything else; that it does not change between two calls is tested on every fixture. What is
kept depends on no private row, and on queries of this service alone; to whom it is given it tells, by how fast, that
somebody has asked the same, and nothing else. *Tested by* tests/service/test_kept_plans.py.
"""

from __future__ import annotations

import datetime as dt
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final

from dpsql.core.ir.nodes import key_sources
from dpsql.core.policy.policy import Policy
from dpsql.planner.plan import Plan
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.service.planning.public_facts import FactStore

MOST_PLANS: Final = 128
MOST_KEYS: Final = 2_000_000
"""Public group keys of all plans kept, one plan apart: what makes a plan large."""
_PLAIN: Final = frozenset({type(None), bool, int, float, str, bytes, Decimal, dt.date, dt.timedelta})
"""Types whose values are told apart by their repr."""

Key = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class _Kept:
    """names: policy table → the engine's name when the plan was made. size: how many public group keys it holds."""

    plan: Plan
    policy: Policy
    names: Mapping[str, str]
    size: int


class Plans:
    """The plans used last, a bounded number of them."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Key, _Kept] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def get(
        self,
        policy: Policy,
        text: str,
        settings: QuerySettings,
        parameters: Sequence[Any] | Mapping[str, Any],
        facts: FactStore,
        tables: Callable[[str], str],
        make: Callable[[Callable[[str], str]], Plan],
    ) -> Plan:
        """The plan of a query: one made before, else what `make` makes with a way to name tables, which is kept.

        facts: the public facts measured so far; `make` may measure more of them. tables:
        policy table → the engine's name. Raises what `make` raises; refusals are not kept.
        """
        values = _values(parameters)
        asked: Key = (text, repr(settings), values)
        key = (*asked, facts.changes)
        kept = self._kept.get(key) if values is not None else None
        if kept is not None and kept.policy is policy and _same(kept.names, tables):
            self._kept.move_to_end(key)
            return _copy(kept.plan)
        names: dict[str, str] = {}

        def named(table: str) -> str:
            names[table] = tables(table)
            return names[table]

        plan = make(named)
        if values is not None:
            self._kept[(*asked, facts.changes)] = _Kept(_copy(plan), policy, names, _size(plan))
            while len(self._kept) > MOST_PLANS or (
                len(self._kept) > 1 and sum(k.size for k in self._kept.values()) > MOST_KEYS
            ):
                self._kept.popitem(last=False)
        return plan


def _same(names: Mapping[str, str], tables: Callable[[str], str]) -> bool:
    """Whether the engine still calls the tables so."""
    try:
        return all(tables(table) == name for table, name in names.items())
    except Exception:  # compiling meets it again, and says where
        return False


def _values(parameters: Sequence[Any] | Mapping[str, Any]) -> object:
    """What tells parameters apart; None for values that nothing simple tells apart."""
    named = isinstance(parameters, Mapping)
    values = list(parameters.items()) if isinstance(parameters, Mapping) else list(enumerate(parameters))
    if any(type(name) not in (str, int) or not _simple(value) for name, value in values):
        return None
    try:
        return named, tuple((name, type(value), repr(value)) for name, value in values)
    except ValueError:  # a whole number with more digits than Python prints
        return None


def _simple(value: object) -> bool:
    return type(value) in _PLAIN or (type(value) is dt.datetime and value.tzinfo is None)


def _copy(plan: Plan) -> Plan:
    """The plan with dicts of its own: what a caller does to those that he holds must not change what is kept."""
    bid = replace(plan.bid, max_error=dict(plan.bid.max_error))
    basis = replace(plan.basis, public=dict(plan.basis.public))
    return replace(plan, cost=dict(plan.cost), bid=bid, basis=basis)


def _size(plan: Plan) -> int:
    sources = [key_sources(r.measured.node) for r in plan.releases]
    return sum(len(s.keys) for found in sources for s in found or ())
