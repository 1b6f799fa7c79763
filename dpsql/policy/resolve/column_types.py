"""Of which type a column is, and what of the data it is made of: `type`, `from`, and `as` of the unit."""

from __future__ import annotations

from dpsql.core.ir.types import BOOLEAN, SqlType, parse_type
from dpsql.core.policy.computed import Computed
from dpsql.core.policy.derived import Derived, DerivedError, NoFormError, parse_derived
from dpsql.core.policy.positions import Loc
from dpsql.core.policy.server_address import names_server
from dpsql.policy.file.file_format import ColumnFile, TableFile
from dpsql.policy.issues import did_you_mean
from dpsql.policy.resolve.policy_names import PolicyScope

_TYPE_NAMES = (
    "boolean", "tinyint", "smallint", "integer", "bigint", "hugeint", "utinyint", "usmallint", "uinteger", "ubigint",
    "float", "double", "decimal(18,2)", "varchar", "date", "timestamp", "timestamptz", "time", "uuid", "blob",
)  # fmt: skip


def made_of(
    scope: PolicyScope, loc: Loc, table: TableFile, name: str, column: ColumnFile
) -> tuple[ColumnFile, Derived | Computed | None]:
    """What a column is made of, by its `from`, or by the `as` of the unit whose id it is, which is its type then.

    Another type beside `as` is that of the data, as the schema has it and a draft wrote it down.
    """
    where: Loc = (*loc, "columns", name)
    unit, derived = table.unit, None if column.from_ is None else _made(scope, (*where, "from"), column.from_)
    if column.from_ is not None:
        if column.type is None:
            scope.issues.add((*where, "type"), "is missing: what is made of another column needs it", "type: varchar")
        elif isinstance(derived, Derived) and derived.texts and parse_type(column.type) not in (BOOLEAN, None):
            scope.issues.add((*where, "type"), "must be boolean: it is made by comparing", "type: boolean")
    if unit is None or unit.as_ is None or (unit.column or "").casefold() != name.casefold():
        return column, derived
    if column.type is not None:
        known_type(scope, (*where, "type"), column.type)
    if isinstance(derived, Computed):
        scope.issues.add(
            (*loc, "unit", "as"), f"stands beside the expression that `{name}` is made of, which has a type of its own",
            f"leave  as  out, and say  type: {unit.as_}  at the column",
        )  # fmt: skip
    elif known_type(scope, (*loc, "unit", "as"), unit.as_) is not None:
        return column.model_copy(update={"type": unit.as_}), derived or Derived(name)
    return column, derived


def _made(scope: PolicyScope, where: Loc, text: str) -> Derived | Computed | None:
    """What a `from` says. What a reader of the data can make is made by it; a server's data are read by the server."""
    if names_server(scope.file.database):
        return Computed(text)
    try:
        return parse_derived(text)
    except NoFormError:
        return Computed(text)
    except DerivedError as error:
        scope.issues.add(where, str(error))
        return None


def known_type(scope: PolicyScope, loc: Loc, text: str | None) -> SqlType | None:
    """The type of this name; None, and a mistake, if nobody knows it."""
    if text is None:
        return None
    found = parse_type(text) if len(text) <= 200 else None
    if found is None:
        hint = did_you_mean(text, _TYPE_NAMES) or "; a column of another type cannot be used: leave it out"
        scope.issues.add(loc, f"`{text[:60]}` is not known{hint}")
    return found
