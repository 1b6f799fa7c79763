"""The policy in force, with every default filled in: as data (`describe`) and as text (`show_policy`)."""

from __future__ import annotations

from typing import Any

from dpsql.core.policy.period_ids import whose
from dpsql.core.policy.policy import Policy
from dpsql.core.policy.tables import Column, ForeignKey, Frequency, Key, RowLimit, Table, TableDomain, ValuesDomain
from dpsql.core.policy.units import IdUnit, PathUnit, RowUnit, unit_named
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.diagnostics.words import number
from dpsql.policy.issues import shown
from dpsql.policy.tools.assumptions import protection


def describe(policy: Policy) -> dict[str, Any]:
    """The effective policy as JSON-like data; exact numbers as decimal text."""
    caps = policy.caps_for(None)
    return {
        "name": policy.name,
        "hash": policy.hash,
        "data_version": policy.data_version,
        "database": None if policy.database is None else str(policy.server or policy.database_path),
        **({} if policy.prepared_at is None else {"prepared_at": policy.prepared_at}),
        "ledger": policy.ledger if policy.ledger_path is None else str(policy.ledger_path),
        "ledger_head": None if policy.ledger_head_path is None else str(policy.ledger_head_path),
        "noise": policy.noise,
        "search": policy.search,
        "neighbours": policy.privacy.neighbours,
        "accountant": policy.privacy.accountant,
        "units": {
            u.name: {"kind": u.kind, "neighbours": u.neighbours, "tables": list(u.tables)}
            for u in policy.units.values()
        },
        "former_units": dict(policy.former_units),
        "tables": {t.name: _table(t) for t in policy.tables.values()},
        "defaults": {
            "epsilon": None if policy.defaults.epsilon is None else number(policy.defaults.epsilon),
            "delta": None if policy.defaults.delta is None else number(policy.defaults.delta),
            "max_keys": policy.defaults.max_keys,
            "min_units": policy.defaults.min_units,
            "allow_dearer": policy.defaults.allow_dearer,
            "private_keys": policy.defaults.private_keys,
        },
        "budgets": {
            "total": {unit: loss_text(loss) for unit, loss in caps.total.items()},
            "analysts": {name: _analyst(policy, name) for name in policy.budgets.analysts},
        },
    }


def show_policy(policy: Policy, table: str | None = None) -> str:
    """The effective policy as text, or one table of it (an unknown name gives an empty text)."""
    if table is not None:
        found = policy.table(table)
        return "" if found is None else "\n".join(_table_lines(found))
    facts = describe(policy)
    lines = [f"policy {policy.name}   {policy.file}   hash {policy.hash[:12]}"]
    keys = (
        "data_version",
        "neighbours",
        "accountant",
        "noise",
        "search",
        "database",
        "prepared_at",
        "ledger",
        "ledger_head",
    )
    lines += [f"  {key:<12} {facts[key] if facts[key] not in (None, '') else '–'}" for key in keys if key in facts]
    lines += ["", "units"]
    lines += [
        f"  {u.name:<12} {_unit_text(u.kind)}, {u.neighbours}: {', '.join(u.tables) or '–'}"
        for u in policy.units.values()
    ]
    lines += [f"  {old:<12} formerly; {f'now {new}' if new else 'gone'}" for old, new in policy.former_units.items()]
    lines += [f"  someone's protection, {line}" for line in protection(policy)]
    lines += ["", "tables"]
    for t in policy.tables.values():
        lines += [f"  {line}" for line in _table_lines(t)]
    lines += ["", "defaults"]
    lines += [
        f"  {key:<12} {'none: a query must say' if value is None else str(value).lower()}"
        for key, value in facts["defaults"].items()
    ]
    lines += ["", "budgets"]
    lines += [f"  total of {unit:<12} {text}" for unit, text in facts["budgets"]["total"].items()]
    lines += [f"  {name:<12} {text}" for name, text in facts["budgets"]["analysts"].items()]
    if not policy.budgets.analysts:
        lines.append("  no limits per analyst: the totals alone hold")
    return "\n".join(lines)


def table_text(table: Table) -> str:
    """A table as those see it who ask: without the place of its files."""
    return "\n".join(_table_lines(table, place=False))


def loss_text(loss: PrivacyLoss) -> str:
    """`ε 10, δ 1e-6` with exact numbers."""
    main = f"ρ {number(loss.rho)}" if loss.rho else f"ε {number(loss.epsilon)}"
    return main if loss.delta in (0, 1) else f"{main}, δ {number(loss.delta)}"


def _analyst(policy: Policy, name: str) -> str:
    own = policy.budgets.analysts[name]
    limit = "" if own.per_query is None else f"; at most {loss_text(own.per_query)} in one query"
    none = "" if own.cap.delta or policy.budgets.total is None or not policy.budgets.total.delta else ", δ 0"
    return f"{loss_text(own.cap)}{none} of each unit{limit}" + ("; what needs a δ is refused" if none else "")


def _unit_text(kind: str) -> str:
    return "all rows of one id" if kind == "id" else "rows"


def whose_rows(table: Table) -> str:
    """Whose rows a table holds: `unit patient: all rows of one patient_id, add_remove`, or `public`."""
    match table.protection:
        case None:
            return "public"
        case RowUnit(name=name, rows=rows, neighbours=neighbours):
            return f"{unit_named(name)}: {rows} row{'s' if rows > 1 else ''}, {neighbours}"
        case IdUnit(name=name, column=column, neighbours=neighbours):
            one = column if table.per is None else whose(table)
            return f"{unit_named(name)}: all rows of one {one}, {neighbours}"
        case PathUnit(name=name, path=path, id_column=column, neighbours=neighbours):
            steps = " → ".join(f"{', '.join(h.columns)} = {h.table}({', '.join(h.references)})" for h in path)
            return f"{unit_named(name)}: {steps} → {column}, {neighbours}"


def promises(table: Table) -> list[str]:
    """What the policy says of keys and of how much one unit has in a table, and what is promised or enforced of it."""
    found = []
    if table.primary_key is not None:
        found.append(f"primary key {_key(table.primary_key, table)}")
    found += [f"unique {_key(key, table)}" for key in table.unique]
    found += [f"foreign key {_foreign(key)}" for key in table.foreign_keys]
    found += [f"at most {f.rows} rows per ({', '.join(f.columns)}) {_mode(f, table)}" for f in table.max_frequency]
    found += [f"each {column} is one {table.unit}'s own [promised]" for column in table.belongs_to_unit]
    if table.search_rows:
        found.append("rows per unit: searched" + (f", at most {table.at_most}" if table.at_most else ""))
    elif table.max_rows_per_unit is not None:
        found.append(f"at most {table.max_rows_per_unit.rows} rows per unit {_mode(table.max_rows_per_unit, table)}")
    if table.max_groups_per_unit is not None:
        found.append(f"at most {table.max_groups_per_unit} groups per unit [enforced]")
    if table.max_rows_per_group is not None:
        found.append(f"at most {table.max_rows_per_group} rows per unit and group [enforced]")
    if table.size is not None:
        found.append(f"exactly {table.size} rows [promised]")
    if table.grows is not None:
        kept = "" if table.grows.keep is None else f", the last {table.grows.keep} kept"
        found.append(
            f"grows by {table.grows.by}, closed by the {table.grows.every} from {table.grows.first} on{kept}; a row "
            "keeps its period [promised]"
        )
    return found


def _mode(promise: Key | Frequency | RowLimit, table: Table) -> str:
    if promise.assumed:
        return "[checked]" if table.public else "[promised]"
    return f"[enforced: {promise.enforce}]" if not isinstance(promise, RowLimit) else "[enforced]"


def _key(key: Key, table: Table) -> str:
    return f"({', '.join(key.columns)}) {_mode(key, table)}"


def _foreign(key: ForeignKey) -> str:
    return f"({', '.join(key.columns)}) → {key.table}({', '.join(key.references)}) [promised]"


def _table(table: Table) -> dict[str, Any]:
    return {
        "public": table.public,
        "unit": table.unit,
        "protection": whose_rows(table),
        "source": None if (place := table.source or table.stored) is None else str(place),
        "promises": promises(table),
        "columns": {c.name: _column(c) for c in table.columns.values()},
    }


def _column(column: Column) -> dict[str, Any]:
    bounds = column.bounds
    return {
        "type": None if column.sql_type is None else column.sql_type.name.lower(),
        "from": column.made_of or None,
        "nullable": column.is_nullable,
        "bounds": None if bounds is None else [None if end is None else shown(end) for end in bounds],
        "search_bounds": column.search_bounds,
        "resolution": None if column.resolution is None else number(column.resolution),
        "domain": _domain(column),
        "max_length": column.max_length,
    }


def _domain(column: Column) -> str | None:
    match column.domain:
        case None:
            return None
        case ValuesDomain(values=values, null=null):
            return shown(list(values), 200) + (" and NULL" if null else "")
        case TableDomain(table=table, column=name, null=null):
            return f"{table}.{name}" + (" and NULL" if null else "")


def _table_lines(table: Table, place: bool = True) -> list[str]:
    lines = [f"{table.name}: {whose_rows(table)}"]
    if place and (source := table.source or table.stored) is not None:
        lines.append(f"  from {source}")
    lines += [f"  {text}" for text in promises(table)]
    if not table.columns:
        lines.append("  columns: those of the data" if table.public else "  no columns: only COUNT(*) can be asked")
    width = max((len(name) for name in table.columns), default=0)
    for column in table.columns.values():
        type_ = "type from the data" if column.sql_type is None else column.sql_type.name.lower()
        null = [] if column.is_nullable else ["not null"]
        made = [f"from {column.made_of}"] if column.made_of else []
        lines.append(f"  {column.name:<{width}}  {', '.join([type_, *made, *null, *declared_of(column)])}")
    return lines


def declared_of(column: Column) -> list[str]:
    """What the policy says of a column's values besides its type, each in a few words."""
    facts, found = _column(column), []
    if facts["bounds"] is not None:
        low, high = facts["bounds"]
        within = "bounds searched within" if facts["search_bounds"] else "bounds"
        found.append(f"{within} [{low or 'open'}, {high or 'open'}]")
    elif facts["search_bounds"]:
        found.append("bounds searched")
    if facts["resolution"] is not None:
        found.append(f"resolution {facts['resolution']}")
    if facts["domain"] is not None:
        found.append(f"groups {facts['domain']}")
    if facts["max_length"] is not None:
        found.append(f"at most {facts['max_length']} elements")
    return found
