"""The functions that questions about the schema may call: what each gives, in Python, of what the policy says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dpsql.engines.policy_catalogue import CatalogueFunction
from dpsql.faces.server.catalogue import catalogue_rows as r
from dpsql.faces.server.catalogue.keys import quoted
from dpsql.faces.server.catalogue.postgres_types import format_type, postgres, postgres_settings, regtype_oid
from dpsql.frontend.catalogue.known import duckdb_type

Call = Callable[..., Any]
Form = tuple[tuple[str, ...], str, Call | None]
"""PostgreSQL's types of the arguments and of the result, and what it is; None where the SQL itself has it."""

SETTABLE = frozenset({"jit", "search_path", "statement_timeout", "application_name", "extra_float_digits"})
"""Settings that `set_config` says it has changed: none of them changes an answer."""

IN_SQL: Mapping[str, Mapping[int, Form]] = {
    name: {count: ((), result, None)}
    for name, count, result in (
        ("generate_subscripts", 2, "integer"), ("_pg_expandarray", 1, "record"), ("pg_get_keywords", 0, "record"),
        ("pg_partition_ancestors", 1, "regclass"), ("current_schemas", 1, "name[]"),
    )
}  # fmt: skip


def listed(schema: r.ClientSchema) -> Mapping[str, Mapping[int, Form]]:
    """Every function that a question may call, and no other: name → number of arguments → what it is."""
    found: dict[str, dict[int, Form]] = {name: dict(forms) for name, forms in IN_SQL.items()}
    for name, arguments, result, call in (*_of_keys(schema), *_of_names(schema), *_alike()):
        kinds = tuple(arguments.split())
        found.setdefault(name, {})[len(kinds)] = (kinds, result, call)
    return found


def python_functions(functions: Mapping[str, Mapping[int, Form]]) -> list[CatalogueFunction]:
    """Those of them that the database calls, each named after its number of arguments."""
    return [
        CatalogueFunction(
            f"{name}_{count}", tuple(map(duckdb_type, arguments)), duckdb_type(result), _of_arity(call, count)
        )
        for name, forms in functions.items()
        for count, (arguments, result, call) in forms.items()
        if call is not None
    ]


Line = tuple[str, str, str, Call]


def _of_keys(schema: r.ClientSchema) -> list[Line]:
    """What is said of constraints and indexes."""
    keys = {key.oid: key for key in schema.keys}
    indexes = {key.index: key for key in keys.values() if key.index}
    tables = dict(schema.tables)

    def definition(oid: int | None, *_: object) -> str | None:
        return keys[oid].definition if oid in keys else None

    def index(oid: int | None, column: int | None = 0, short: bool | None = False) -> str | None:
        key = indexes.get(oid or 0)
        if key is None:
            return None
        if column:
            return quoted(key.columns[column - 1]) if column <= len(key.columns) else None
        place = "" if short else "public."
        columns = ", ".join(map(quoted, key.columns))
        table = quoted(tables[key.table].name)
        return f"CREATE UNIQUE INDEX {quoted(key.name)} ON {place}{table} USING btree ({columns})"

    return [
        ("pg_get_constraintdef", "oid", "text", definition),
        ("pg_get_constraintdef", "oid boolean", "text", definition),
        ("pg_get_indexdef", "oid", "text", index),
        ("pg_get_indexdef", "oid integer boolean", "text", index),
    ]


def _of_names(schema: r.ClientSchema) -> list[Line]:
    """What is said of oids: the names of what bears them, and remarks on it."""
    tables = dict(schema.tables)
    users = {r.OWNER: r.OWNER_NAME, r.LOGIN: schema.login}
    schemas = {r.PG_CATALOG: "pg_catalog", r.PUBLIC: "public", r.INFORMATION_SCHEMA: "information_schema"}
    names = {oid: table.name for oid, table in tables.items()}
    names |= {key.index: key.name for key in schema.keys if key.index}
    names |= {oid: name for name, oid in postgres()["oids"].items()}
    procedures = {name: oid for oid, name, *_ in postgres()["procedures"]} | {"-": 0}

    def remark(oid: int | None, catalogue: str | None = "pg_class") -> str | None:
        if catalogue not in ("pg_class", "pg_namespace"):
            return None
        return "tables of the policy" if oid == r.PUBLIC else schema.comment(tables[oid]) if oid in tables else None

    def column_remark(oid: int | None, number: int | None) -> str | None:
        columns = list(tables[oid].columns.values()) if oid in tables else []
        return schema.comment_of(columns[number - 1]) or None if number and 0 < number <= len(columns) else None

    def named(oid: int | None) -> str | None:
        if oid is None:
            return None
        return quoted(names[oid]) if oid in names else "-" if oid == 0 else str(oid)

    return [
        ("pg_table_is_visible", "oid", "boolean", lambda oid: None if oid is None else oid in names),
        ("pg_get_userbyid", "oid", "name", lambda oid: users.get(oid, f"unknown (OID={oid})")),
        ("obj_description", "oid", "text", remark),
        ("obj_description", "oid name", "text", remark),
        ("col_description", "oid integer", "text", column_remark),
        ("regclass_name", "oid", "text", named),
        ("regproc_name", "oid", "text", named),
        ("regtype_name", "oid", "text", lambda oid: format_type(oid, None)),
        ("regnamespace_name", "oid", "text", lambda oid: None if oid is None else schemas.get(oid, str(oid))),
        ("regrole_name", "oid", "text", lambda oid: users.get(oid, str(oid))),
        ("format_type", "oid integer", "text", format_type),
        ("regproc_oid", "text", "oid", procedures.get),
        ("to_regtype", "text", "regtype", lambda name: None if name is None else regtype_oid(name)),
        ("quote_ident", "text", "text", lambda name: None if name is None else quoted(name)),
    ]


def _alike() -> list[Line]:
    """What is the same whatever the policy says. Sizes are not told; what there is none of has no text."""

    def joined(items: list[str | None] | None, between: str | None) -> str | None:
        return None if items is None else str(between).join(item for item in items if item is not None)

    def length(items: list[str] | None, _: int | None) -> int | None:
        return len(items) or None if items else None

    settings = {name.lower(): value for name, value in (*postgres_settings().items(), *r.SETTINGS.items())}

    def setting(name: str | None, *_: object) -> str | None:
        return settings.get((name or "").lower())

    kinds = ("type", "collation", "function", "opclass", "opfamily", "operator", "ts_dict")
    rights = [(f"has_{of}_privilege", "text " * n) for of in ("schema", "table", "database") for n in (2, 3)]
    nothing = [
        ("pg_get_expr", "text oid"), ("pg_get_expr", "text oid boolean"), ("pg_get_viewdef", "oid"),
        ("pg_get_viewdef", "oid boolean"), ("shobj_description", "oid name"),
        ("pg_get_serial_sequence", "text text"), ("pg_get_triggerdef", "oid"), ("pg_get_triggerdef", "oid boolean"),
        ("pg_get_function_result", "oid"), ("pg_get_function_arguments", "oid"), ("pg_size_pretty", "bigint"),
        ("pg_get_function_identity_arguments", "oid"), ("pg_get_statisticsobjdef_columns", "oid"),
    ]  # fmt: skip
    return [
        *((f"pg_{kind}_is_visible", "oid", "boolean", _always(True)) for kind in kinds),
        *((name, arguments, "boolean", _always(True)) for name, arguments in rights),
        *((name, arguments, "text", _always(None)) for name, arguments in nothing),
        *((f"pg_{of}_size", "oid", "bigint", _always(None)) for of in ("table", "relation", "total_relation")),
        ("array_to_string", "text[] text", "text", joined),
        ("array_upper", "text[] integer", "integer", length),
        ("array_length", "text[] integer", "integer", length),
        ("array_lower", "text[] integer", "integer", lambda items, _: 1 if items else None),
        ("pg_encoding_to_char", "integer", "name", lambda number: "UTF8" if number == 6 else ""),
        ("pg_tablespace_location", "oid", "text", _always("")),
        ("pg_relation_is_publishable", "oid", "boolean", _always(False)),
        ("pg_is_in_recovery", "", "boolean", _always(False)),
        ("pg_backend_pid", "", "integer", _always(0)),
        ("current_setting", "text", "text", setting),
        ("current_setting", "text boolean", "text", setting),
        ("set_config", "text text boolean", "text", lambda name, value, _: value if name in SETTABLE else None),
    ]


def _always(value: object) -> Call:
    return lambda *_: value


def _of_arity(call: Call, count: int) -> Call:
    """DuckDB asks a function of Python how many arguments it takes."""
    return (lambda: call(), lambda a: call(a), lambda a, b: call(a, b), lambda a, b, c: call(a, b, c))[count]
