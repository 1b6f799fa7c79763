"""`\\d+`: a table with what may be asked of each column, and what the account's own searches have found.

What may be asked is tried, not described: the planner is given a query of each kind for each column, for nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Final, Literal

from dpsql.core.ir.types import Kind
from dpsql.core.policy.tables import Column, Table
from dpsql.core.printing.dialects.duckdb import quoted
from dpsql.core.privacy_loss import left_text, pure_to_rho, show_spent
from dpsql.diagnostics.errors import Error
from dpsql.planner.plan import Plan
from dpsql.planner.postprocessing.searches.octaves import SearchResult
from dpsql.planner.postprocessing.searches.told import FoundLimit, bounds, distinct
from dpsql.service.planning.planning import WrittenQuery
from dpsql.service.privacy_settings import Asked

if TYPE_CHECKING:
    from dpsql import Connection

_AGGREGATES: Final = ("SUM", "AVG", "MEDIAN", "MODE")
_ONE: Final = Fraction(1)
_LEAST: Final = Fraction(1, 10**9)
"""An ε at which whatever is held is at least as accurate as what is asked."""


def asked_of(connection: Connection, table: Table, column: Column) -> str:
    """What may be asked of a column as it is: `SUM, AVG, MEDIAN; GROUP BY`. Nothing is spent."""
    source, name = _source(table), quoted(column.name)
    names = {n for key in table.keys for n in key.columns} | {n for key in table.foreign_keys for n in key.columns}
    is_key = not table.public and (column is table.id_column or column.name in names)  # of which no sum means anything
    found = [a for a in _AGGREGATES if not is_key and _planned(connection, f"SELECT {a}({name}) FROM {source}")]
    parts = [", ".join(found)] if found else []
    if not (found or table.public or is_key) and _is_number(column):
        clipped = _planned(connection, f"SELECT SUM(CLIP({name}, 0, 1)) FROM {source}")
        parts += ["SUM(CLIP(…))"] if clipped is not None else []
    grouped = _planned(connection, f"SELECT {name}, COUNT(*) FROM {source} GROUP BY {name}")
    if grouped is not None:
        shown = any(r.measured.threshold is not None for r in (*grouped.first.releases, *grouped.releases))
        parts.append("GROUP BY above a threshold, for δ" if shown else "GROUP BY")
    if _planned(connection, f"SELECT COUNT(DISTINCT {name}) FROM {source}") is not None:
        parts.append("COUNT(DISTINCT)")
    return "; ".join(parts) or "COUNT, WHERE"


def limits_of(connection: Connection, table: Table) -> Iterator[str]:
    """What a query of the table costs if it says nothing, and what may be spent; what was searched, and found."""
    policy = connection.policy
    if table.unit is not None:
        caps = policy.caps_for(None if connection.analyst == "*" else connection.analyst)
        in_rho = policy.privacy.accountant == "zcdp"
        if caps.per_query is not None:
            yield f"one query: at most {left_text(caps.per_query, in_rho=bool(caps.per_query.rho))}"
        budget = connection.budget if connection.has_ledger else {}
        now = budget.get(table.unit)
        left = now.remaining if now is not None else caps.analyst.get(table.unit)
        if left is not None:
            yield f"left for you, of each {table.unit}: {left_text(left, in_rho=in_rho)}"
    yield from held(connection, table)


def held(connection: Connection, table: Table) -> Iterator[str]:
    """What searches have found of a table and the account holds: told again for nothing, as long as it is held."""
    if table.public or not connection.has_ledger or connection.policy.search == "refuse":
        return
    source = _source(table)
    questions = [f"SELECT COUNT(*) FROM {source}"]
    for column in table.columns.values():
        if _is_number(column):
            questions += [f"SELECT {a}({quoted(column.name)}) FROM {source}" for a in ("SUM", "AVG")]
    usual = connection.settings.epsilon or connection.policy.defaults.epsilon or _ONE
    for sql in questions:
        for epsilon in (usual, usual / 10, _LEAST):  # what was bought for less is held for less
            plan = _planned(connection, sql, epsilon, limits="search")
            if plan is not None and plan.found:
                found = distinct(plan.found)
                yield from (_told(*each, epsilon) for each in zip(bounds(found), found, strict=True))
                break


def _told(bound: FoundLimit, found: SearchResult, epsilon: Fraction) -> str:
    """A limit that was found, and how many units have totals of which size: octaves that are no noise."""
    match bound.limit:
        case None:
            said = "nothing"
        case (low, high):
            said = f"{low:,} to {high:,}"
        case limit:
            said = f"at most {limit:,}"
    counts = zip(bound.octaves, found.octaves.counts, strict=True)
    counted = [octave for octave, count in counts if count >= found.octaves.threshold]
    sizes = ", ".join(f"{o.number:,} from {o.low:,} to {o.high:,}" for o in counted)
    told = (
        f"you hold the octaves of {bound.what}: a query at ε {show_spent(epsilon, 3)} takes {said} of one {bound.unit}"
    )
    return f"{told}; about so many: {sizes}" if sizes else told


def _planned(
    connection: Connection, sql: str, epsilon: Fraction = _ONE, limits: Literal["search", "auto"] = "auto"
) -> Plan | None:
    """The plan of a question at a nominal ε; None where it is refused."""
    asked: Asked = {"limits": limits}
    if connection.policy.privacy.accountant == "zcdp":
        asked["rho"] = pure_to_rho(epsilon)
    else:
        asked["epsilon"] = epsilon
    try:
        return connection.previewed(WrittenQuery(sql), asked)
    except Error:
        return None


def _is_number(column: Column) -> bool:
    return column.sql_type is not None and column.sql_type.kind in (Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE)


def _source(table: Table) -> str:
    return ".".join(map(quoted, table.name.split(".")))
