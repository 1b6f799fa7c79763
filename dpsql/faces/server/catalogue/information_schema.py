"""The rows of information_schema: what SQL's standard says of the same tables, columns and keys."""

from __future__ import annotations

from dpsql.core.ir.types import Kind, SqlType
from dpsql.faces.server.catalogue.catalogue_rows import OWNER_NAME, ClientSchema
from dpsql.faces.server.catalogue.postgres_types import Row, type_name, types


def rows(schema: ClientSchema) -> dict[str, list[Row]]:
    """The rows of each relation that has some; a column that is left out is NULL."""
    at = {"table_catalog": schema.database, "table_schema": "public"}
    of = {"constraint_catalog": schema.database, "constraint_schema": "public"}
    words = {"p": "PRIMARY KEY", "u": "UNIQUE", "f": "FOREIGN KEY"}
    named = {oid: table.name for oid, table in schema.tables}
    keys = schema.keys
    unique = {(k.table, k.columns): k.name for k in keys if k.index}
    return {
        "schemata": [
            {"catalog_name": schema.database, "schema_name": name, "schema_owner": OWNER_NAME}
            for name in ("pg_catalog", "public", "information_schema")
        ],
        "tables": [
            {**at, "table_name": t.name, "table_type": "BASE TABLE", "is_insertable_into": "NO", "is_typed": "NO"}
            for _, t in schema.tables
        ],
        "columns": [
            {**at, "table_name": t.name, "column_name": c.name, "ordinal_position": i, "dtd_identifier": str(i),
             "is_nullable": "YES" if c.is_nullable else "NO", **_type(type_name(c.sql_type), c.sql_type),
             "udt_catalog": schema.database, "is_self_referencing": "NO", "is_identity": "NO", "identity_cycle": "NO",
             "is_generated": "NEVER", "is_updatable": "NO"}
            for _, t in schema.tables
            for i, c in enumerate(t.columns.values(), 1)
        ],
        "table_constraints": [
            {**of, **at, "constraint_name": k.name, "table_name": named[k.table], "constraint_type": words[k.kind],
             "is_deferrable": "NO", "initially_deferred": "NO", "enforced": "YES"}
            for k in keys
        ],
        "key_column_usage": [
            {**of, **at, "constraint_name": k.name, "table_name": named[k.table], "column_name": column,
             "ordinal_position": i, "position_in_unique_constraint": i if k.to else None}
            for k in keys
            for i, column in enumerate(k.columns, 1)
        ],
        "constraint_column_usage": [
            {**of, **at, "constraint_name": k.name, "table_name": named[k.to or k.table], "column_name": column}
            for k in keys
            for column in k.to_columns or k.columns
        ],
        "referential_constraints": [
            {**of, "constraint_name": k.name, "unique_constraint_name": unique.get((k.to, k.to_columns)),
             "unique_constraint_catalog": schema.database, "unique_constraint_schema": "public",
             "match_option": "NONE", "update_rule": "NO ACTION", "delete_rule": "NO ACTION"}
            for k in keys
            if k.to
        ],
    }  # fmt: skip


def _type(name: str, type_: SqlType | None) -> Row:
    """A column's type, with precision and scale."""
    said = {"udt_schema": "pg_catalog", "udt_name": name}
    if name.startswith("_"):
        return {**said, "data_type": "ARRAY"}
    said["data_type"] = types()[name]["format"]
    bits = {"int2": 16, "int4": 32, "int8": 64, "float4": 24, "float8": 53}
    if name in bits:
        scale = 0 if name.startswith("int") else None
        return {**said, "numeric_precision": bits[name], "numeric_precision_radix": 2, "numeric_scale": scale}
    if type_ is not None and type_.kind is Kind.DECIMAL:
        digits = {"numeric_precision": type_.precision, "numeric_scale": type_.scale}
        return {**said, "numeric_precision_radix": 10, **digits}
    if name == "varchar":
        return {**said, "character_octet_length": 1073741824}
    if name in ("timestamp", "timestamptz", "time", "date"):
        return {**said, "datetime_precision": 0 if name == "date" else 6}
    return dict(said)
