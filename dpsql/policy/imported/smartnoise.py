"""SmartNoise SQL's metadata: `{collection: {schema: {table: {private id, limits, columns}}}}`, beside it `engine:`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dpsql.core.policy.positions import Loc
from dpsql.policy.file.yaml_text import YamlDocument
from dpsql.policy.imported.set_up import Imported, ImportedTable, NotUnderstood

_TYPES = {"int": "bigint", "float": "double", "string": "varchar", "boolean": "boolean", "datetime": "timestamp"}
_OF_TABLES = frozenset({
    "rows", "rows_exact", "row_privacy", "max_ids", "sample_max_ids", "clamp_counts", "clamp_columns", "use_dpsu",
    "censor_dims",
})  # fmt: skip


def of_smartnoise(document: YamlDocument) -> Imported:
    """Raises NotUnderstood."""
    said = _mapping(document.value, ())
    names = [name for name in said if name != "engine"]
    if len(names) != 1:
        raise NotUnderstood(f"SmartNoise's metadata names one collection, and this names {len(names)}")
    found = Imported("SmartNoise SQL", str(names[0]))
    found.changes += [
        "ε was for each measured column of a query; here it is for the query, and the budget outlives the process.",
        "Rows above max_ids were drawn by chance; here all of an id's rows count, each for less.",
        "Noise is exact, and no analyst is trusted: what cannot be bounded is refused.",
    ]
    for schema, tables in _mapping(said[names[0]], (names[0],)).items():
        for name, table in _mapping(tables, (names[0], schema)).items():
            if str(name) in found.tables:
                raise NotUnderstood(f"two schemas have a table {name}: give each a file of its own")
            _table(found, str(name), _mapping(table, (names[0], schema, name)))
            if str(schema):
                found.changes.append(f"Queries name {schema}.{name} as {name}.")
    found.open.append("all that may ever be learned. SmartNoise had no total; 1 is careful, 3 is usual, 10 is much")
    return found


def _mapping(value: Any, where: Loc) -> Mapping[Any, Any]:
    if not isinstance(value, Mapping):
        raise NotUnderstood(f"{'.'.join(map(str, where)) or 'the file'} has to be a mapping")
    return value


def _table(found: Imported, name: str, said: Mapping[Any, Any]) -> None:
    table = found.table(name)
    ids = []
    for column, facts in said.items():
        if column in _OF_TABLES:
            continue
        facts = _mapping(facts, (name, column))
        type_ = str(facts.get("type", "unknown"))
        if type_ not in _TYPES:
            if type_ != "unknown":
                raise NotUnderstood(f"{name}.{column} has the type {type_}, which SmartNoise does not have")
            continue
        known = table.column(str(column))
        known.type = _TYPES[type_]
        lower, upper = facts.get("lower"), facts.get("upper")
        if lower is not None and upper is not None:
            known.bounds = (_number(lower, type_), _number(upper, type_))
        known.nullable = bool(facts.get("nullable", True)) and "missing_value" not in facts
        if "missing_value" in facts:
            known.nullable, told = True, facts["missing_value"]
            found.changes.append(f"NULL in {name}.{column} counted as {told}; here write COALESCE({column}, {told!r}).")
        if "sensitivity" in facts:
            found.changes.append(
                f"The sensitivity of {name}.{column} is derived from its bounds, not taken from the file."
            )
        if facts.get("private_id"):
            ids.append(str(column))
    table.open.extend(_unit(found, table, ids, said))
    if said.get("clamp_counts"):
        found.changes.append(f"Counts of {name} below 0 were shown as 0; here write GREATEST(COUNT(*), 0).")
    if not said.get("censor_dims", True):
        found.changes.append(
            f"All groups of {name} were shown; here a group is shown that a domain lists, or behind a threshold."
        )
    if "rows_exact" in said:
        found.changes.append(f"The exact number of rows of {name} is not taken as public.")


def _unit(found: Imported, table: ImportedTable, ids: list[str], said: Mapping[Any, Any]) -> Iterator[str]:
    if said.get("row_privacy"):
        table.unit = ("rows", "1")
        yield "is a row alone protected, as SmartNoise's row_privacy had it? If a person has several: {column: id}"
        return
    if len(ids) != 1:
        raise NotUnderstood(f"{table.name} has {len(ids)} columns with private_id, and no row_privacy")
    table.unit, table.of = ("column", ids[0]), ids[0]
    table.limits["max_rows_per_unit"] = int(said.get("max_ids", 1))
    if not said.get("sample_max_ids", True):
        found.changes.append(f"max_ids of {table.name} was believed; here it is enforced.")


def _number(value: Any, type_: str) -> str:
    return str(int(value)) if type_ == "int" else str(value)
