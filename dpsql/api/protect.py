"""A frame under protection without a policy file: what a policy needs to say of one table, as arguments."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from dpsql.api.connection import Connection, connect
from dpsql.core.ir.types import Kind
from dpsql.core.policy.derived import Derived
from dpsql.diagnostics.errors import reject
from dpsql.engines.open import frame_types
from dpsql.policy.issues import did_you_mean, listed
from dpsql.policy.policy import Policy
from dpsql.service.privacy_settings import Amount

Bound = Any
"""A number or a date."""


def protect(
    frame: object,
    *,
    unit: str | int,
    budget: Amount | Mapping[str, Amount],
    bounds: Mapping[str, Sequence[Bound] | str] | None = None,
    groups: Mapping[str, Iterable[Any]] | None = None,
    computed: Mapping[str, tuple[str, str]] | None = None,
    lengths: Mapping[str, int] | None = None,
    max_rows: int | str = "search",
    table: str = "data",
    ledger: str | PathLike[str] | None = None,
    epsilon: Amount | None = None,
    delta: Amount | None = None,
) -> Connection:
    """Ask one pandas, polars or Arrow table under protection, without a policy file. The rows are copied.

    unit: the column with the id of those who are protected, all rows of an id together; or a number: so many rows.
    budget: how much may ever be learned about one unit: ε, or a mapping, {"epsilon": 3, "delta": 1e-6}. It holds for
        this connection alone: without a `ledger`, a new process starts anew, and each answer says so.
    bounds: column → (lower, upper), what its values may be; or "search": a part of each query's ε finds them.
    groups: column → the public list of its values, None among them where it may be a group. Those of other
        columns are private, which needs a δ.
    computed: name of a new column → its type, and the expression over others that it is of each row:
        ("double", "cents / 100"). It may be the unit, have bounds and be listed in groups as any other.
    lengths: column that holds lists → the most elements of one that UNNEST uses.
    max_rows: the most rows of one id that count; "search": a quarter of each query's ε finds the number.
    table: what queries call the rows. ledger: the path of a file that keeps what was spent. epsilon, delta: defaults of
        the queries.
    Times of a zone are read as its clocks show them, those of a mere offset in UTC. Columns of a type that nobody can
    ask, as STRUCT, are left out.
    Raises CannotOpen, Rejected DP903. `dpsql.connect` takes a policy, which may say more, of several tables.

    >>> import pyarrow
    >>> visits = pyarrow.table({"patient": [1, 1, 2, 3], "cost": [20.0, 30.0, 10.0, 99.0]})
    >>> con = dpsql.protect(visits, unit="patient", bounds={"cost": (0, 100)}, max_rows=10, budget=1)
    >>> con.sql("SELECT SUM(cost) AS total FROM data").cost(epsilon=0.5)
    PrivacyLoss(epsilon=0.5)
    """
    names = [*_columns(frame), *(computed or {})]
    columns: dict[str, dict[str, Any]] = {name: {} for name in names}
    asked = (*(bounds or {}), *(groups or {}), *(lengths or {}), *([unit] if isinstance(unit, str) else ()))
    for name in asked:
        if name not in columns:
            hint = did_you_mean(name, names) or f"; it has {listed(names)}"
            raise reject("DP903", f"the frame has no column `{name}`{hint}")
    clocks = set()
    for name, type in frame_types(frame).items():
        if type is not None and type.kind is Kind.TIMESTAMPTZ and name in columns:
            zone = _zone(frame, name)
            columns[name] = {"from": str(Derived(name, zone=zone)), "type": "timestamp"}
            clocks.add(name)
        elif type is None and name not in asked:
            columns.pop(name, None)
    for name, (type_, text) in (computed or {}).items():
        columns[name] = {"from": text, "type": type_}
    for name, most in (lengths or {}).items():
        columns[name]["max_length"] = most
    for name, ends in (bounds or {}).items():
        columns[name]["bounds"] = _plain(ends, _zone(frame, name) if name in clocks else "UTC")
    for name, listing in (groups or {}).items():
        values = _plain(listing)
        known = [v for v in values if v is not None] if isinstance(values, list) else values
        columns[name]["domain"] = {"values": known, "null": known != values}
    rows: dict[str, Any] = {"columns": columns}
    if isinstance(unit, str):
        called = unit.removesuffix("_id") or unit
        rows |= {"unit": {"column": unit, "of": called}, "max_rows_per_unit": max_rows}
    else:
        rows |= {"unit": {"rows": unit}}
    total = dict(budget) if isinstance(budget, Mapping) else {"epsilon": budget}
    document: dict[str, Any] = {
        "version": 1, "name": "protected", "search": "auto", "tables": {table: rows}, "budgets": {"total": total}
    }  # fmt: skip
    policy = Policy.from_dict(document)
    return connect(policy, frames={table: frame}, ledger=ledger or ":memory:", epsilon=epsilon, delta=delta)


def _columns(frame: object) -> list[str]:
    """The names of a frame's columns; a pandas index is none. Raises Rejected DP903."""
    found = getattr(frame, "column_names", None) or getattr(frame, "columns", None)
    try:
        return [str(name) for name in found]  # type: ignore[union-attr]
    except TypeError:
        raise reject(
            "DP903", f"a pandas, polars or Arrow table was expected, got {type(frame).__name__}",
            help=["of files and databases, write a policy:  dpsql policy init FILE"],
        ) from None  # fmt: skip


def _zone(frame: Any, name: str) -> str:
    """The time zone of a column, which stands in a frame's schema; UTC where that has no name."""
    types = getattr(frame, "schema", None) or frame.dtypes
    type = types.field(name).type if hasattr(types, "field") else types[name]
    type = getattr(type, "pyarrow_dtype", type)  # of pandas' columns that are Arrow's
    zone = str(getattr(type, "tz", None) or getattr(type, "time_zone", None) or "UTC")
    return zone if zone in available_timezones() else "UTC"


def _plain(value: Any, zone: str = "UTC") -> Any:
    """Values of numpy and their kin as Python's; what is no list as it is: the policy says what is wrong with it.

    Times with an offset become those that a zone's clocks show.
    """
    if isinstance(value, str | Mapping) or not isinstance(value, Iterable):
        return value
    found = [v.item() if hasattr(v, "item") else v for v in value]
    return [_clock(v, zone) if isinstance(v, dt.datetime) else v for v in found]


def _clock(time: dt.datetime, zone: str) -> dt.datetime:
    shown = time if time.tzinfo is None else time.astimezone(ZoneInfo(zone)).replace(tzinfo=None)
    return dt.datetime(*shown.timetuple()[:6], shown.microsecond)  # of pandas' own kind, too
