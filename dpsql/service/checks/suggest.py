"""Limits and bounds for a policy that nobody has to know: the searches of its tables, run by themselves.

    targets ─ a question for each ─ its search alone, at its share of ε ─ charged, drawn, stored ─ what it found

Each question is one that an analyst could ask, so that whoever asks it later finds the numbers in the store. Bounds of
a column are those that its average needs, whose limit on rows is another question. What is found is noisy and paid for:
a custodian may write it into a policy that everybody reads, unlike what he sees in the data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from dpsql.core.ir.types import Kind
from dpsql.core.policy.policy import Policy
from dpsql.core.policy.tables import Column, Table
from dpsql.core.policy.units import IdUnit, PathUnit
from dpsql.core.printing.dialects.duckdb import quoted
from dpsql.core.privacy_loss import pure_to_rho
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.planner.plan import Charge, Plan
from dpsql.planner.postprocessing.searches.octaves import SearchResult
from dpsql.planner.searches.limits_to_search import SHARE, share_of
from dpsql.policy.issues import did_you_mean
from dpsql.service import pipeline
from dpsql.service.planning.planning import WrittenQuery
from dpsql.service.planning.searches import one_search, with_held_limits
from dpsql.service.privacy_settings import Asked, settled
from dpsql.service.session import Session


@dataclass(frozen=True, slots=True)
class Target:
    """What a policy may say: how many rows of one unit count (column: None), or the bounds of a column."""

    table: str
    column: str | None
    sql: str


@dataclass(frozen=True, slots=True)
class LimitSearch:
    """What finds it. plan: of the question, whose one search is run alone; None: `why` says what speaks against it.

    charge: what running it charges the account.
    """

    target: Target
    plan: Plan | None
    charge: Charge = field(default_factory=lambda: Charge({}))
    why: str = ""


def targets(policy: Policy, tables: Collection[str] = (), everything: bool = False) -> tuple[Target, ...]:
    """What a policy leaves open. tables: of these alone. everything: also what it declares.

    Raises Rejected DP903 for a table that the policy does not list, or that is public.
    """
    return tuple(target for table in _tables(policy, tables) for target in _targets(table, everything))


def _tables(policy: Policy, names: Collection[str]) -> Sequence[Table]:
    if not names:
        return [table for table in policy.tables.values() if not table.public]
    found = []
    for name in names:
        table = policy.table(name)
        if table is None:
            raise reject("DP903", f"the policy lists no table {name!r}{did_you_mean(name, policy.tables)}")
        if table.public:
            raise reject("DP903", f"{table.name} is public: nothing is bounded", help=["name private tables"])
        found.append(table)
    return found


def _targets(table: Table, everything: bool) -> Iterator[Target]:
    source = ".".join(map(quoted, table.name.split(".")))
    open_rows = table.search_rows or table.max_rows_per_unit is None
    if table.by_id and not _one_row(table) and (everything or open_rows):
        yield Target(table.name, None, f"SELECT COUNT(*) FROM {source}")
    names = _names_rows(table)
    for column in table.columns.values():
        open_bounds = column.search_bounds or column.bounds is None
        if _numeric(column) and column.name.casefold() not in names and (everything or open_bounds):
            yield Target(table.name, column.name, f"SELECT AVG({quoted(column.name)}) FROM {source}")


def _one_row(table: Table) -> bool:
    """Whether the unit is a key, so that nobody has a second row."""
    return isinstance(table.protection, IdUnit) and any(k.columns == (table.protection.column,) for k in table.keys)


def _names_rows(table: Table) -> set[str]:
    """Columns whose numbers are names: of units, rows and other tables' rows."""
    found = {name for key in table.keys for name in key.columns}
    found |= {name for key in table.foreign_keys for name in key.columns}
    match table.protection:
        case IdUnit(column=name):
            found.add(table.per or name)
        case PathUnit(path=(hop, *_)):
            found |= set(hop.columns)
    return {name.casefold() for name in found}


def _numeric(column: Column) -> bool:
    return column.sql_type is not None and column.sql_type.kind in (Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE)


def searches(session: Session, wanted: Sequence[Target], epsilon: Fraction) -> tuple[LimitSearch, ...]:
    """Their searches, which cost ε of each privacy unit if nothing is held: each an equal share. Nothing is spent.

    epsilon: in a ledger of ρ, that of the same noise. Raises CannotOpen.
    """

    def unit(target: Target) -> str | None:
        return session.policy.tables[target.table].unit

    possible = Counter(unit(target) for target in wanted if _planned(session, target, epsilon).plan is not None)
    return tuple(_planned(session, target, epsilon, max(1, possible[unit(target)])) for target in wanted)


def _planned(session: Session, target: Target, epsilon: Fraction, parts: int = 1) -> LimitSearch:
    """One of so many searches."""
    try:
        plan = _alone(session, target, epsilon, parts)
    except Rejected as refusal:
        first = refusal.diagnostics[0]
        return LimitSearch(target, None, why=f"{first.message} ({first.code})")
    if plan is None:
        return LimitSearch(
            target, None, why="few rows are proven" if target.column is None else "the policy declares them"
        )
    if session.has_ledger:
        plan = with_held_limits(session.service, plan, session.service.account(session.analyst))
    return (
        LimitSearch(target, plan)
        if plan.searches is None
        else LimitSearch(target, plan, session.charge(plan.searches.plan))
    )


def _alone(session: Session, target: Target, epsilon: Fraction, parts: int) -> Plan | None:
    """The plan of a question, of whose searches the one that is wanted is left, at this ε; None if it has none."""
    plan = _asked(session, target.sql, epsilon, 1 / (SHARE * parts))
    limits = () if plan.searches is None else tuple(s.limit for s in plan.searches.every)
    wanted = next((limit for limit in limits if limit.rule.of_values == (target.column is not None)), None)
    if wanted is None:
        return None
    share = share_of([limit.rule for limit in limits])
    if share != SHARE:
        plan = _asked(session, target.sql, epsilon, 1 / (share * parts))
    return one_search(session.service, plan, wanted.label)


def _asked(session: Session, sql: str, epsilon: Fraction, times: Fraction) -> Plan:
    """The plan of a question of which searches may find everything, at so many times the price. Raises Rejected."""
    asked: Asked = {"epsilon": epsilon * times, "limits": "search"}
    if session.policy.privacy.accountant == "zcdp":
        asked = {"rho": pure_to_rho(epsilon) * times, "limits": "search"}
    return pipeline.compile(session.service, WrittenQuery(sql), settled(asked, session.settings))


def found(session: Session, search: LimitSearch) -> SearchResult:
    """What a search finds; charged unless the account holds it. search: with a plan.

    Raises BudgetExceeded, CannotOpen, EngineError.
    """
    plan = search.plan
    assert plan is not None
    if plan.searches is None:
        return plan.found[0]
    answer = session.run(plan.searches.plan)
    return plan.searches.found(answer._noisy)[0]
