"""The names that PostgreSQL gives to the columns of an answer."""

from __future__ import annotations

from sqlglot import exp


def outputs(tree: exp.Query) -> list[exp.Expr]:
    first: exp.Expr = tree
    while isinstance(first, exp.SetOperation | exp.Subquery):
        first = first.this
    return list(first.expressions) if isinstance(first, exp.Select) else []


def output_name(node: exp.Expr) -> str:
    """The name that PostgreSQL gives an item of a SELECT list."""
    match node:
        case exp.Alias():
            return str(node.alias) if node.args["alias"].args.get("quoted") else str(node.alias).lower()
        case exp.Column(this=exp.Identifier()):
            return node.name if node.this.args.get("quoted") else node.name.lower()
        case exp.Star() | exp.Column(this=exp.Star()):
            return "*"
        case exp.Paren() | exp.Bracket() | exp.Collate():
            return output_name(node.this)
        case exp.Dot():
            return output_name(node.expression) if not isinstance(node.expression, exp.Identifier) else node.name
        case exp.Cast():
            inner = output_name(node.this)
            return inner if inner != "?column?" else type_of_cast(node)[1]
        case exp.Case():
            default = node.args.get("default")
            inner = "?column?" if default is None else output_name(default)
            return inner if inner not in ("?column?", "") else "case"
        case exp.Subquery():
            items = outputs(node.this)
            return output_name(items[0]) if items else "?column?"
        case exp.Array():
            return "array"
        case exp.Exists():
            return "exists"
        case exp.Anonymous():
            return str(node.this).lower()
        case exp.CurrentVersion():
            return "version"
        case exp.LogicalAnd():
            return "bool_and"
        case exp.LogicalOr():
            return "bool_or"
        case exp.GroupConcat():
            return "string_agg"
        case exp.Explode():
            return "unnest"
        case exp.Window():
            return output_name(node.this)
        case exp.Boolean():
            return "bool"
        case exp.Func() if not isinstance(node, exp.And | exp.Or):
            return str(node.sql_name()).lower()
    return "?column?"


def type_of_cast(node: exp.Cast) -> tuple[str, str]:
    """PostgreSQL's name of the type, and the name that an item of this cast bears (its short one)."""
    text = node.to.sql("postgres").lower().replace("pg_catalog.", "").replace('"char"', "char_")
    base = text.removesuffix("[]").split("(")[0]
    short = {"int": "int4", "smallint": "int2", "bigint": "int8", "boolean": "bool", "char_": "char"}.get(base, base)
    full = {
        "int": "integer", "int4": "integer", "int2": "smallint", "int8": "bigint", "bool": "boolean",
        "varchar": "character varying", "char_": '"char"',
    }.get(base, base)  # fmt: skip
    return (full + "[]", short) if text.endswith("[]") else (full, short)
