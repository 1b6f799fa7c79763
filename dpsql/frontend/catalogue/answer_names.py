"""The names that PostgreSQL gives to the columns of an answer."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot import exp

from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Rejected
from dpsql.frontend.bind.expressions.refusals import written_name
from dpsql.frontend.parse import parse
from dpsql.frontend.text.spans import span_of


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
        case exp.Interval():
            return "interval"
        case exp.Func() if not isinstance(node, exp.And | exp.Or):
            return str(node.sql_name()).lower()
    return "?column?"


def type_of_cast(node: exp.Cast) -> tuple[str, str]:
    """PostgreSQL's name of the type, and the name that an item of this cast bears (its short one)."""
    text = node.to.sql("postgres").lower().replace("pg_catalog.", "").replace('"char"', "char_")
    base = text.removesuffix("[]").split("(")[0]
    short = _SHORT.get(base, base)
    full = {
        "int": "integer", "int4": "integer", "int2": "smallint", "int8": "bigint", "bool": "boolean",
        "varchar": "character varying", "char_": '"char"',
    }.get(base, base)  # fmt: skip
    return (full + "[]", short) if text.endswith("[]") else (full, short)


_SHORT = {
    "int": "int4", "smallint": "int2", "bigint": "int8", "boolean": "bool", "char_": "char", "decimal": "numeric",
    "double precision": "float8", "real": "float4",
}  # fmt: skip
_PLAIN = re.compile(r"[^\W\d]\w*")


def shown_names(text: str, dialect: str, names: Sequence[str]) -> tuple[str, ...]:
    """The names of an answer's columns as PostgreSQL gives them: `count`, `sum`, `?column?` where none is written.

    names: those that dpsql gives, behind them `n_low` and `n_high` of a number whose interval is shown. A name that the
    query or the policy gives stays.
    """
    if all(map(_PLAIN.fullmatch, names)):
        return tuple(names)
    source = Source(text)
    try:
        items = _shown(parse(source, dialect).tree)
    except Rejected:
        return tuple(names)
    if len(items) > len(names) or any(item.is_star for item in items if not isinstance(item, exp.Alias)):
        return tuple(names)
    shown = [own if _is_given(item) else _written(item, source) for item, own in zip(items, names, strict=False)]
    called = {f"{own}{end}": f"{new}{end}" for own, new in zip(names, shown, strict=False) for end in _ENDS}
    rest = [called.get(name) for name in names[len(items) :]]
    return tuple(names) if None in rest else (*shown, *filter(None, rest))


def _is_given(item: exp.Expr) -> bool:
    """Whether the query or the policy names an item."""
    return isinstance(item, exp.Alias) or (isinstance(item, exp.Column) and not isinstance(item.this, exp.Star))


_ENDS = ("_low", "_high")


def _shown(tree: exp.Query) -> list[exp.Expr]:
    """The items of an answer: for `SELECT * FROM (SELECT …) AS t`, those within."""
    items = outputs(tree)
    while len(items) == 1 and isinstance(items[0], exp.Star) and not any(items[0].args.values()):
        select = items[0].find_ancestor(exp.Select)
        source = None if select is None or select.args.get("joins") else select.args.get("from_")
        inner = None if source is None else source.this
        if not isinstance(inner, exp.Subquery) or inner.alias_column_names or inner.args.get("joins"):
            break
        items = outputs(inner.this)
    return items


def _written(node: exp.Expr, source: Source) -> str:
    """A function by its name in the query, and a cast by its type there: the parser gives several one class."""
    if isinstance(node, exp.Filter | exp.WithinGroup | exp.Window | exp.Paren | exp.IgnoreNulls):
        return _written(node.this, source)
    if isinstance(node, exp.Cast):
        inner = _written(node.this, source)
        return inner if inner != "?column?" else type_of_cast(node)[1]
    if isinstance(node, exp.Mod) and re.match(r"mod\b", source.text[span_of(node, source.text).start :], re.IGNORECASE):
        return "mod"
    if isinstance(node, exp.Func) and not isinstance(node, exp.Anonymous | exp.Case | exp.And | exp.Or):
        return written_name(node, source)
    return output_name(node)
