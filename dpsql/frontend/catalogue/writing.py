"""A question as DuckDB's SQL: relations, functions, casts and operators of PostgreSQL's in ours."""

from __future__ import annotations

from collections.abc import Sequence

import sqlglot
from sqlglot import exp

from dpsql.frontend.catalogue.answer_names import type_of_cast
from dpsql.frontend.catalogue.answer_types import sources
from dpsql.frontend.catalogue.known import BOOL, OID, KnownNames, NotListed, duckdb_type, unknown_result

_REG = ("regclass", "regtype", "regnamespace", "regproc", "regrole")


def as_duckdb(tree: exp.Query, known: KnownNames) -> str:
    tree = tree.copy()
    for node in reversed(list(tree.walk())):  # what a node holds before the node
        new = _rewritten(node, known)
        if new is not node:
            node.replace(new)
    return str(tree.sql(dialect="duckdb"))


def _rewritten(node: exp.Expr, known: KnownNames) -> exp.Expr:
    match node:
        case exp.Star() if not isinstance(node.parent, exp.Count) and _has_relation(node, known):
            return exp.Star(except_=[exp.column("tableoid")])  # which PostgreSQL does not show
        case exp.Table(this=exp.Identifier()) if node.db and known.is_missing((node.db, node.name)):
            return _without_rows(node)
        case exp.Table(this=exp.Identifier()) if node.db:
            node.set("this", exp.to_identifier(f"{node.db}.{node.name}", quoted=True))
            node.set("db", None)
        case exp.Table(this=exp.Anonymous() as call) if str(call.this) == "unnest":
            return exp.Subquery(this=exp.select(call), alias=node.args.get("alias"), joins=node.args.get("joins"))
        case exp.Table(this=exp.Anonymous() as call):
            if str(call.this).lower() not in known.table_functions:
                raise NotListed(f"{call.this} as a relation")
            node.set("this", exp.to_identifier(f"pg_catalog.{str(call.this).lower()}", quoted=True))
        case exp.Cast():
            return _cast(node, known)
        case exp.Collate():
            return _this(node)
        case exp.DPipe() if isinstance(node.expression, exp.Array):  # a NULL adds nothing to an array
            return exp.Anonymous(this="list_concat", expressions=[node.this, node.expression])
        case exp.DPipe() | exp.Concat() | exp.Replace():
            return _cut(node.copy())
        case exp.ByteString():
            return exp.Literal.string(node.name.replace("\\n", "\n").replace("\\\\", "\\"))
        case exp.Operator():
            return _operator(node)
        case exp.Like() | exp.ILike() if not isinstance(node.parent, exp.Escape):
            return exp.Escape(this=node.copy(), expression=exp.Literal.string("\\"))
        case exp.Any():
            return exp.Any(this=exp.paren(_array(node.this)))
        case exp.NEQ(expression=exp.Anonymous() as call) if (
            str(call.this).lower() == "all" and len(call.expressions) == 1
        ):
            return exp.Not(this=exp.EQ(this=node.this, expression=exp.Any(this=exp.paren(_array(call.expressions[0])))))
        case exp.EQ() | exp.NEQ() if _is_function_name(node.this, known) and node.expression.is_number:
            if node.expression.name != "0":
                raise NotListed("a function by its oid")
            node.set("expression", exp.Literal.string("-"))  # functions are held by their names, and none as this
        case exp.EQ() | exp.NEQ() if _is_function_name(node.this, known) != _is_function_name(node.expression, known):
            for side, other in (("this", node.expression), ("expression", node.this)):
                if isinstance(other, exp.Column) and _is_function_name(node.args[side], known):
                    node.set(side, _function("regproc_oid", [node.args[side]], known))
        case exp.Anonymous() if str(node.this).lower() == "all":
            pass
        case exp.Anonymous():
            return _call(node, known)
        case (
            exp.CurrentDatabase()
            | exp.CurrentUser()
            | exp.SessionUser()
            | exp.CurrentSchema()
            | exp.CurrentVersion()
            | exp.CurrentRole()
            | exp.CurrentCatalog()
        ):
            name = "version" if isinstance(node, exp.CurrentVersion) else str(node.sql_name()).lower()
            return _constant(name, known)
        case exp.CurrentSchemas():
            return exp.array(exp.Literal.string("pg_catalog"), exp.Literal.string("public"))
        case exp.ExplodingGenerateSeries():
            return _series(node)
        case exp.Bracket() if _zero_based(node.this, known):
            node.set(
                "expressions", [exp.Add(this=exp.paren(e), expression=exp.Literal.number(1)) for e in node.expressions]
            )
    return node


def _has_relation(star: exp.Star, known: KnownNames) -> bool:
    """Whether it stands for the columns of a relation of the catalogue, and not of subqueries alone."""
    select, of = star.find_ancestor(exp.Select), star.parent
    named = of.table.lower() if isinstance(of, exp.Column) else ""
    return any(
        isinstance(source, exp.Table)
        and tuple(source.name.split(".", 1)) in known.relations
        and named in ("", source.alias_or_name.lower())
        for source in ([] if select is None else sources(select))
    )


def _without_rows(table: exp.Table) -> exp.Expr:
    """A relation that is not known here: with the columns that are asked of it."""
    select, name = table.find_ancestor(exp.Select), table.alias_or_name
    assert select is not None
    alone = len(sources(select)) == 1
    asked = {
        c.name.lower(): c for c in select.find_all(exp.Column) if c.table.lower() == name or (alone and not c.table)
    }
    items = [exp.alias_(exp.null(), column, quoted=True) for column in asked if column] or [exp.null()]
    empty = exp.select(*items).where(exp.false())
    return exp.Subquery(this=empty, alias=table.args.get("alias"), joins=table.args.get("joins"))


def _this(node: exp.Expr) -> exp.Expr:
    inner = node.this
    assert isinstance(inner, exp.Expr)
    return inner


def _zero_based(node: exp.Expr, known: KnownNames) -> bool:
    return isinstance(node, exp.Column) and node.name.lower() in known.zero_based


def _types(node: exp.Expr, known: KnownNames) -> set[str]:
    """The types that columns of a name have in the catalogue's relations."""
    name = node.name.lower() if isinstance(node, exp.Column) else ""
    return {columns[name] for columns in known.relations.values() if name in columns}


def _is_function_name(node: exp.Expr, known: KnownNames) -> bool:
    """Whether a column is a regproc. No relation has another column of such a name."""
    return "regproc" in _types(node, known)


def _array_type(node: exp.Expr, known: KnownNames) -> str:
    """The type of a column, where all of its name are arrays alike; else ""."""
    found = _types(node, known)
    return found.pop() if len(found) == 1 else ""


def _operator(node: exp.Operator) -> exp.Expr:
    sign = str(node.args["operator"]).rpartition(".")[2]
    kinds = {"~": exp.RegexpLike, "=": exp.EQ, "<>": exp.NEQ}
    if sign in ("!~",):
        return exp.Not(this=exp.RegexpLike(this=node.this, expression=node.expression))
    if sign not in kinds:
        raise NotListed(f"the operator {sign}")
    return kinds[sign](this=node.this, expression=node.expression)


def _array(node: exp.Expr) -> exp.Expr:
    """A list: PostgreSQL also reads `'{r,p}'` as one."""
    inner = node.this if isinstance(node, exp.Paren) else node
    literal = inner.this if isinstance(inner, exp.Cast) else inner
    if isinstance(literal, exp.Literal) and literal.is_string:
        items = [i.strip('"') for i in literal.name.strip("{}").split(",") if i]
        made: exp.Expr = exp.array(*(exp.Literal.string(i) for i in items))
        return _as(made, type_of_cast(inner)[0]) if isinstance(inner, exp.Cast) else made
    return inner


def _cast(node: exp.Cast, known: KnownNames) -> exp.Expr:
    full, _ = type_of_cast(node)
    inner = node.this
    if _is_function_name(inner, known) and full in ("regproc", OID):
        return inner if full == "regproc" else _function("regproc_oid", [inner], known)
    if full in _REG:
        if (
            isinstance(inner, exp.Literal)
            and inner.name.isdecimal()
            and not isinstance(node.parent, exp.Cast | exp.Select | exp.Alias)
        ):
            return exp.Literal.number(inner.name)
        if isinstance(inner, exp.Literal) and inner.is_string and not inner.name.isdecimal():
            name = inner.name.removeprefix("pg_catalog.").strip('"')
            if full == "regproc":
                return exp.Literal.string(name)
            oid = known.oid_of(full, name)
            if oid is None:
                raise NotListed(f"the {full} {name!r}")
            return exp.Literal.number(oid)
        parent = node.parent
        if isinstance(parent, exp.Cast) and type_of_cast(parent)[0] == OID:
            return _this(node)
        if isinstance(parent, exp.EQ | exp.NEQ) and isinstance(inner, exp.Column):
            other = parent.expression if parent.this is node else parent.this
            if other.is_number or (isinstance(other, exp.Cast) and type_of_cast(other)[0] == full):
                return inner  # two oids
        return _function(f"{full}_name", [inner], known)
    if isinstance(inner, exp.Literal) and inner.is_string and full.endswith("[]"):
        return _array(node)
    if full in ("text", "character varying", "name") and isinstance(inner, exp.Column):
        return _as_text(inner, _array_type(inner, known), full)
    return _as(inner, full)


def _as_text(array: exp.Expr, kind: str, full: str) -> exp.Expr:
    """As PostgreSQL prints one: `1 2` of an int2vector, `{1,2}` of an array."""
    if not kind.endswith(("vector", "[]")):
        return _as(array, full)
    signs = (" ", "", "") if kind.endswith("vector") else (",", "{", "}")
    between, before, after = map(exp.Literal.string, signs)
    joined = exp.Anonymous(this="array_to_string", expressions=[array, between])
    return exp.paren(exp.DPipe(this=exp.DPipe(this=before, expression=joined), expression=after))


def _as(node: exp.Expr, type_: str) -> exp.Cast:
    return exp.Cast(this=node, to=exp.DataType.build(duckdb_type(type_), dialect="duckdb"))


def _function(name: str, arguments: Sequence[exp.Expr], known: KnownNames) -> exp.Expr:
    """A call of one of ours, each argument as the type that it takes."""
    kinds = known.arguments(name, len(arguments))
    return exp.Anonymous(
        this=f"{name}_{len(arguments)}", expressions=[_as(a, k) for a, k in zip(arguments, kinds, strict=True)]
    )


_LONGEST = 10_000
_MOST_JOINED = 2_000


def _cut(node: exp.Expr) -> exp.Expr:
    """The beginning of a text: DuckDB counts no text towards its limit of memory, and x || x doubles it each time."""
    ends = [exp.Literal.number(1), exp.Literal.number(_MOST_JOINED)]
    return exp.Anonymous(this="substr", expressions=[node, *ends])


def _series(node: exp.ExplodingGenerateSeries) -> exp.Expr:
    """Numbers from one to another, neither of which may make a question long."""
    ends = [node.args.get("start"), node.args.get("end")]
    for end in ends:
        called = isinstance(end, exp.Anonymous) and str(end.this).lower().startswith(("array_upper", "array_lower"))
        if not called and not (isinstance(end, exp.Literal) and end.name.isdecimal() and int(end.name) <= _LONGEST):
            raise NotListed("a generate_series of this length")
    series = exp.Anonymous(this="generate_series", expressions=[e for e in ends if e is not None])
    return exp.Anonymous(this="unnest", expressions=[series])


def _constant(name: str, known: KnownNames) -> exp.Expr:
    if name not in known.constants:
        raise NotListed(name)
    kind, value = known.constants[name]
    text: exp.Expr = exp.null() if value is None else exp.Literal.string(value)
    return _as(text, kind)


def _call(node: exp.Anonymous, known: KnownNames) -> exp.Expr:
    name, arguments = str(node.this).lower(), node.expressions
    if not arguments and name in known.constants:
        return _constant(name, known)
    if name in known.table_functions:
        return node
    if name == "generate_subscripts":
        first = 0 if _zero_based(arguments[0], known) else 1
        length = exp.Anonymous(this="len", expressions=[arguments[0].copy()])
        ends = [exp.Literal.number(first), exp.Add(this=length, expression=exp.Literal.number(first))]
        return exp.Anonymous(this="unnest", expressions=[exp.Anonymous(this="range", expressions=ends)])
    if name == "_pg_expandarray":
        pairs = sqlglot.parse_one("unnest([{'x': x, 'n': n} FOR x, n IN a])", read="duckdb")
        for place in [c for c in pairs.find_all(exp.Column) if c.name == "a"]:
            place.replace(arguments[0].copy())
        return pairs
    if name == "pg_partition_ancestors":
        return sqlglot.parse_one("unnest(CAST([] AS UINTEGER[]))", read="duckdb")
    if name == "current_schemas":
        return exp.array(exp.Literal.string("pg_catalog"), exp.Literal.string("public"))
    if name == "json_build_object":
        return _cut(exp.Anonymous(this="json_object", expressions=arguments))
    if len(arguments) not in known.functions.get(name, {}) and (result := unknown_result(name)) is not None:
        return exp.false() if result == BOOL else exp.null()
    return _function(name, arguments, known)
