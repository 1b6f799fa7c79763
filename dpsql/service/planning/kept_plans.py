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
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Final

from dpsql.core.ir.nodes import key_sources
from dpsql.core.policy.policy import Policy
from dpsql.planner.plan import Plan
from dpsql.planner.settings.query_settings import QuerySettings

MOST_PLANS: Final = 128
MOST_KEYS: Final = 2_000_000
"""Public group keys of all plans kept, one plan apart: what makes a plan large."""
_PLAIN: Final = frozenset({type(None), bool, int, float, str, bytes, Decimal, dt.date, dt.timedelta})
"""Types whose values are told apart by their repr."""

Question = tuple[object, ...]


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
        self._kept: OrderedDict[tuple[Question | None, int], _Kept] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, asked: Question | None, changes: int, policy: Policy, tables: EngineNames) -> Plan | None:
        """A plan that was made before. changes: of the public facts. tables: the engine's names of today."""
        kept = None if asked is None else self._kept.get((asked, changes))
        if kept is None or kept.policy is not policy or not _same(kept.names, tables):
            return None
        self._kept.move_to_end((asked, changes))
        return _copy(kept.plan)

    def keep(self, asked: Question | None, changes: int, policy: Policy, tables: EngineNames, plan: Plan) -> None:
        """Keep a plan that has been made. changes: what is measured now. tables: with the names that were asked for."""
        if asked is None:
            return
        self._kept[asked, changes] = _Kept(_copy(plan), policy, dict(tables.asked), _size(plan))
        while len(self._kept) > MOST_PLANS or (
            len(self._kept) > 1 and sum(k.size for k in self._kept.values()) > MOST_KEYS
        ):
            self._kept.popitem(last=False)


@dataclass(frozen=True, slots=True)
class EngineNames:
    """Policy table → the engine's name, and which of them were asked for."""

    of: Callable[[str], str]
    asked: dict[str, str] = field(default_factory=dict)

    def __call__(self, table: str) -> str:
        """The engine's name, as it is now."""
        name = self.asked[table] = self.of(table)
        return name


def question(text: str, settings: QuerySettings, parameters: Sequence[Any] | Mapping[str, Any]) -> Question | None:
    """What tells queries apart; None: nothing simple does."""
    values = _values(parameters)
    return None if values is None else (text, repr(settings), values)


def _same(names: Mapping[str, str], tables: EngineNames) -> bool:
    """Whether the engine still calls the tables so."""
    try:
        return all(tables.of(table) == name for table, name in names.items())
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
    basis = replace(plan.basis, public=dict(plan.basis.public), periods=dict(plan.basis.periods))
    return replace(plan, cost=dict(plan.cost), bid=bid, basis=basis)


def _size(plan: Plan) -> int:
    sources = [key_sources(r.measured.node) for r in plan.releases]
    return sum(len(s.keys) for found in sources for s in found or ())
