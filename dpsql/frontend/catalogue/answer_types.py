"""The types that PostgreSQL gives to the columns of an answer, and the syntax that a question may have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from dpsql.frontend.catalogue.answer_names import output_name, outputs, type_of_cast
from dpsql.frontend.catalogue.known import BOOL, INT4, OID, TEXT, KnownNames, NotListed, unknown_result

_RESULTS: Mapping[type[exp.Expr], str] = {
    exp.Count: "bigint", exp.RowNumber: "bigint", exp.Explode: "", exp.Min: "", exp.Max: "", exp.Coalesce: "",
    exp.GroupConcat: TEXT, exp.LogicalAnd: BOOL, exp.LogicalOr: BOOL, exp.Nullif: "", exp.Replace: TEXT, exp.Trim: TEXT,
    exp.Substring: TEXT, exp.Lower: TEXT, exp.Upper: TEXT, exp.Length: INT4, exp.Concat: TEXT,
    exp.ExplodingGenerateSeries: INT4, exp.DPipe: TEXT, exp.CurrentSchemas: "name[]",
}  # fmt: skip
LISTED: tuple[type[exp.Expr], ...] = (
    exp.Select, exp.SetOperation, exp.Subquery, exp.CTE, exp.With, exp.From, exp.Join, exp.Where, exp.Group, exp.Having,
    exp.Order, exp.Ordered, exp.Limit, exp.Offset, exp.Distinct, exp.Table, exp.TableAlias, exp.Alias, exp.Column,
    exp.Identifier, exp.Star, exp.Literal, exp.Null, exp.Boolean, exp.Paren, exp.Tuple, exp.Values, exp.Case, exp.If,
    exp.Cast, exp.DataType, exp.ObjectIdentifier, exp.DataTypeParam, exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.GT,
    exp.GTE, exp.LT, exp.LTE, exp.Is, exp.In, exp.Between, exp.Like, exp.ILike, exp.Escape, exp.RegexpLike,
    exp.RegexpILike, exp.Any, exp.All, exp.Exists, exp.Array, exp.ArrayAgg, exp.Bracket, exp.Dot, exp.Add, exp.Sub,
    exp.Mul, exp.Neg, exp.BitwiseAnd, exp.Window, exp.WindowSpec, exp.Parameter, exp.Placeholder, exp.Operator,
    exp.Collate, exp.ByteString, exp.Unnest, exp.Lateral, exp.Var, exp.Anonymous, exp.CurrentDatabase, exp.CurrentUser,
    exp.SessionUser, exp.CurrentSchema, exp.CurrentVersion, exp.CurrentRole, exp.CurrentCatalog, exp.NullSafeEQ,
    exp.NullSafeNEQ, *_RESULTS,
)  # fmt: skip


def type_of(node: exp.Expr | None, known: KnownNames, tree: exp.Expr) -> str:
    """PostgreSQL's type of an expression, as far as a client can tell: TEXT where nothing says otherwise."""
    match node:
        case exp.Alias() | exp.Paren() | exp.Collate() | exp.Window() | exp.Min() | exp.Max():
            return type_of(node.this, known, tree)
        case exp.Column():
            return _column_type(node, known, tree)
        case exp.Cast():
            return type_of_cast(node)[0]
        case exp.Literal():
            return TEXT if node.is_string else INT4
        case exp.Neg() | exp.Add() | exp.Sub() | exp.Mul() | exp.BitwiseAnd():
            return INT4
        case exp.Case():
            kinds = [
                type_of(i.args["true"], known, tree)
                for i in node.args["ifs"]
                if not isinstance(i.args["true"], exp.Null)
            ]
            default = node.args.get("default")
            kinds += [] if default is None or isinstance(default, exp.Null) else [type_of(default, known, tree)]
            return next((k for k in kinds if k != TEXT), TEXT) if kinds else TEXT
        case exp.Coalesce() | exp.Nullif():
            return type_of(node.this, known, tree)
        case exp.Subquery() | exp.Select():
            items = outputs(node)
            return type_of(items[0], known, node) if items else TEXT
        case exp.Array():
            inner = node.expressions[0] if node.expressions else None
            return type_of(inner, known, tree) + "[]"
        case exp.ArrayAgg():
            inner = node.this.this if isinstance(node.this, exp.Order) else node.this
            return type_of(inner, known, tree) + "[]"
        case exp.Explode():
            of = type_of(node.this, known, tree)
            return {"int2vector": "smallint", "oidvector": OID}.get(of, of.removesuffix("[]"))
        case exp.Dot() if isinstance(node.expression, exp.Anonymous):
            return type_of(node.expression, known, tree)
        case exp.Dot():
            return INT4
        case exp.Bracket():
            of = type_of(node.this, known, tree)
            return {"int2vector": "smallint", "oidvector": OID}.get(of, of.removesuffix("[]"))
        case exp.Anonymous():
            return result_of(str(node.this).lower(), len(node.expressions), known)
        case (
            exp.CurrentDatabase()
            | exp.CurrentUser()
            | exp.SessionUser()
            | exp.CurrentSchema()
            | exp.CurrentRole()
            | exp.CurrentCatalog()
        ):
            return "name"
        case exp.Null() | None:
            return TEXT
        case exp.Predicate() | exp.Connector() | exp.Not() | exp.Boolean() | exp.Operator() | exp.Exists():
            return BOOL
    return _RESULTS.get(type(node)) or TEXT


def result_of(name: str, arguments: int, known: KnownNames) -> str:
    if name in known.constants:
        return known.constants[name][0]
    if name == "json_build_object":
        return "json"
    found = known.functions.get(name, {}).get(arguments)
    result = unknown_result(name) if found is None else found[1]
    if result is None:
        raise NotListed(f"the function {name} with {arguments} arguments")
    return result


def _column_type(node: exp.Column, known: KnownNames, tree: exp.Expr) -> str:
    """The type of the column that a name leads to: of its own relation, through derived tables by their items."""
    select = node.find_ancestor(exp.Select) or (tree if isinstance(tree, exp.Select) else None)
    while select is not None:
        for source in sources(select):
            if node.table and source.alias_or_name.lower() != node.table.lower():
                continue
            found = _column_of(source, node.name.lower(), known, select)
            if found is not None:
                return found
        select = select.find_ancestor(exp.Select)
    return TEXT


def _column_of(source: exp.Expr, name: str, known: KnownNames, select: exp.Expr) -> str | None:
    if isinstance(source, exp.Table) and isinstance(source.this, exp.ExplodingGenerateSeries):
        return INT4 if name in [c.name.lower() for c in source.args["alias"].args.get("columns") or ()] else None
    if isinstance(source, exp.Table):
        columns = known.relations.get((source.db.lower(), source.name.lower()))
        if columns is not None:
            return columns.get(name)
        cte = next((c for c in ctes_around(select) if c.alias_or_name.lower() == source.name.lower()), None)
        inner: exp.Expr | None = None if cte is None else cte.this
    else:
        inner = source.this if isinstance(source, exp.Subquery) else None
    if not isinstance(inner, exp.Query):
        return None
    for item in outputs(inner):
        if output_name(item) == name:
            return type_of(item, known, inner)
        if output_name(item) == "*":
            first = inner.find(exp.Select)
            for below in [] if first is None else sources(first):
                found = _column_of(below, name, known, inner)
                if found is not None:
                    return found
    return None


def ctes_around(node: exp.Expr) -> list[exp.CTE]:
    found: list[exp.CTE] = []
    at: exp.Expr | None = node
    while at is not None:
        found += at.ctes if isinstance(at, exp.Query) else []
        at = at.parent
    return found


def sources(select: exp.Select) -> list[exp.Expr]:
    from_ = select.args.get("from_")
    outer = ([] if from_ is None else [from_.this]) + [join.this for join in select.args.get("joins") or ()]
    return [below for source in outer for below in _joined(source)]


def _joined(source: exp.Expr) -> list[exp.Expr]:
    """A relation, and those that are joined to it within its parentheses."""
    inner = source.this if isinstance(source, exp.Subquery | exp.Paren) else None
    if inner is not None and not isinstance(inner, exp.Select | exp.SetOperation):
        return _joined(inner) + [b for j in source.args.get("joins") or () for b in _joined(j.this)]
    return [source] + [b for j in source.args.get("joins") or () for b in _joined(j.this)]


def written_out(
    tree: exp.Query, names: Sequence[str], types: Sequence[str], known: KnownNames
) -> tuple[tuple[str, str], ...]:
    """The columns with each `*` written out."""
    if "*" not in names:
        return tuple(zip(names, types, strict=True))
    select = tree.find(exp.Select)
    found: list[tuple[str, str]] = []
    for name, type_, item in zip(names, types, outputs(tree), strict=True):
        if name != "*":
            found.append((name, type_))
            continue
        of = item.table.lower() if isinstance(item, exp.Column) else ""
        for source in [] if select is None else sources(select):
            if not of or source.alias_or_name.lower() == of:
                found += _all_columns(source, known, select)
    return tuple(found)


def _all_columns(source: exp.Expr, known: KnownNames, select: exp.Expr | None) -> list[tuple[str, str]]:
    if isinstance(source, exp.Unnest):
        of = type_of(source.expressions[0], known, source)
        return [("unnest", of.removesuffix("[]"))]
    cte = None
    if isinstance(source, exp.Table):
        columns = known.relations.get((source.db.lower(), source.name.lower()))
        if columns is not None:
            return list(columns.items())
        cte = (
            next((c for c in ctes_around(select) if c.alias_or_name.lower() == source.name.lower()), None)
            if select
            else None
        )
        inner = None if cte is None else cte.this
    else:
        inner = source.this if isinstance(source, exp.Subquery) else None
    if not isinstance(inner, exp.Query):
        raise NotListed("this `*`")
    items = outputs(inner)
    named = None if cte is None else [c.name.lower() for c in cte.args["alias"].args.get("columns") or ()]
    if named:
        return list(zip(named, [type_of(i, known, inner) for i in items], strict=True))
    return list(written_out(inner, [output_name(i) for i in items], [type_of(i, known, inner) for i in items], known))
