"""`from:` of any expression → the expression, bound in the scope of its table's own columns. Default deny, as a query.

It may read what stands in one row: other columns of the table, of the data or made of it, but none that is computed
itself. What reads more rows, the clock or a parameter is refused by name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final, TypeVar

from sqlglot import exp

from dpsql.core.analysis.context import Context
from dpsql.core.analysis.declared_columns import values_read
from dpsql.core.ir import step_count as steps
from dpsql.core.ir.expressions import Cast, Column, Expr, Literal, transform
from dpsql.core.ir.nodes import Project, Scan
from dpsql.core.ir.public_facts import PublicFacts
from dpsql.core.ir.types import Kind
from dpsql.core.policy.policy import Policy
from dpsql.core.policy.positions import Loc
from dpsql.core.policy.tables import Column as Declared
from dpsql.core.policy.tables import Table
from dpsql.core.printing.computed import computed_sql
from dpsql.core.printing.dialect import Dialect
from dpsql.diagnostics.diagnostic import Diagnostic, ForCustodian, Mark, Source, Span
from dpsql.diagnostics.errors import CannotOpen, Rejected, reject
from dpsql.frontend.bind.expressions.function_names import aggregate_name
from dpsql.frontend.bind.statement import bind
from dpsql.frontend.parse import parse
from dpsql.frontend.text.spans import query_span, span_of
from dpsql.functions.expression_values import evaluate
from dpsql.policy.issues import dotted

AnyPolicy = TypeVar("AnyPolicy", bound=Policy)

_BEFORE: Final = "SELECT "
_ONE_ROW: Final = "a column is computed of its own row; write that in the query"
_VIEW: Final = "make a view that has the column, and declare the view"
_TABLE: Final = "store the column in a table, and declare that table"
_UNCASTABLE: Final = (Kind.LIST, Kind.BLOB, Kind.INTERVAL)


def with_computed(policy: AnyPolicy, dialect: Dialect) -> AnyPolicy:
    """The policy with every `from:` understood that can be: as soon as its table's types are known.

    dialect: what they are to be printed in. Raises CannotOpen with every one that is none (DP003), or that the dialect
    cannot compute (DP105).
    """
    if not any(_waiting(table) for table in policy.tables.values()):
        return policy
    known: AnyPolicy | None = policy.worked_out.get((with_computed, dialect.name))
    if known is None:
        problems: list[Diagnostic] = []
        tables = {name: _with_computed(table, policy, dialect, problems) for name, table in policy.tables.items()}
        if problems:
            raise CannotOpen(sorted(problems, key=lambda d: (-1 if d.span is None else d.span.start, d.message)))
        known = policy.worked_out[with_computed, dialect.name] = replace(policy, tables=tables)
    return known


def _waiting(table: Table) -> bool:
    return any(c.computed is not None and c.computed.expr is None for c in table.all_columns)


def _with_computed(table: Table, policy: Policy, dialect: Dialect, problems: list[Diagnostic]) -> Table:
    own = {name: c for name, c in table.columns.items() if c.computed is None}
    if not _waiting(table) or any(c.sql_type is None for c in table.columns.values()):
        return table
    alone = replace(policy, tables={table.name: replace(table, columns=own, period_id=None)})
    places = {name: place for place, name in enumerate(table.columns)}
    columns = dict(table.columns)
    for name, column in table.columns.items():
        if column.computed is None:
            continue
        code = "DP003"
        steps.begin()
        try:
            expr = _bound(column, table, alone, places)
            columns[name] = replace(column, computed=replace(column.computed, expr=expr))
            code = "DP105"
            computed_sql(columns[name], table, alone, dialect)
        except Rejected as refusal:
            problems += _told(refusal, code, column, table, policy)
        finally:
            steps.end()
    if table.period_id is None or problems:
        return replace(table, columns=columns)
    try:
        hidden = _id_of_period(table.period_id, replace(table, columns=columns), policy, places)
        computed_sql(hidden, replace(table, columns=columns), alone, dialect)
    except Rejected as refusal:
        problems += _told(refusal, "DP105", table.columns[table.per or ""], table, policy)
        return table
    return replace(table, columns=columns, period_id=hidden)


def _id_of_period(hidden: Declared, table: Table, policy: Policy, places: dict[str, int]) -> Declared:
    """The hidden column of ids in one period: computed of what its id and its date are computed of, if they are."""
    plain = replace(table, columns={n: replace(c, computed=None) for n, c in table.columns.items()}, period_id=None)
    assert hidden.computed is not None
    expr = _bound(hidden, plain, replace(policy, tables={table.name: plain}), places)
    columns = tuple(table.columns.values())

    def made(e: Expr) -> Expr:
        own = columns[e.uid].computed if isinstance(e, Column) else None
        return e if own is None or own.expr is None else own.expr

    return replace(hidden, computed=replace(hidden.computed, expr=transform(expr, made)))


def _bound(column: Declared, table: Table, alone: Policy, places: dict[str, int]) -> Expr:
    """The expression, of the declared type; the number of a column in it is its place in the table."""
    assert column.computed is not None
    assert column.sql_type is not None
    text = column.computed.text
    name = table.name.rpartition(".")
    parts = ".".join('"' + part.replace('"', '""') + '"' for part in (name[0], name[2]) if part)
    source = Source(f"{_BEFORE}{text}\nFROM {parts}")
    parsed = parse(source)
    if parsed.clause is not None:
        raise reject("DP101", "a privacy clause", help=["write one expression"])
    found = next(_of_more_rows(parsed.tree, table, column, source), None)
    if found is not None:
        raise found
    # By UTC's clock: the policy's zone may be another one tomorrow, and with it the period that a row is of.
    bound = bind(parsed, replace(alone, zone="UTC"))
    match bound.root:
        case Project(input=Scan(columns=columns), items=(item,)) if not bound.notes:
            of = {c.uid: replace(c, uid=places[c.name]) for c in columns}
        case _ if bound.notes:
            raise reject(
                "DP114", f"it depends on when it is asked: {bound.notes[0].of or bound.notes[0]}",
                help=["compare with the clock in the query, or write the time itself"],
            )  # fmt: skip
        case _:
            raise reject("DP101", "it is more than one value of each row", help=["write one expression"])

    def placed(e: Expr) -> Expr:
        return replace(of[e.uid] if isinstance(e, Column) else e, span=None)

    expr = transform(item.expr, placed)
    if expr.type.kind is Kind.NULL:
        return Literal(None, column.sql_type)
    if expr.type == column.sql_type:
        return expr
    if Kind.LIST in (expr.type.kind, column.sql_type.kind) or column.sql_type.kind in _UNCASTABLE:
        own = expr.type.name.lower()
        raise reject("DP106", f"it is {own}, which is not converted to {column.type}", help=[f"type: {own}"])
    cast = Cast(expr, column.sql_type)
    evaluate(cast, values_read(cast, table, Context(alone, PublicFacts())))
    return cast


def _of_more_rows(tree: exp.Expr, table: Table, column: Declared, source: Source) -> Iterator[Rejected]:
    """Refusals of what is no function of a row of the data, in the words of whoever declares a column."""
    computed = {c.name.casefold() for c in table.columns.values() if c.computed is not None}
    own = ("", table.name.casefold().rpartition(".")[2])
    for node in tree.find_all(exp.Expr):
        at = span_of(node, source.text)
        if isinstance(node, exp.Window):
            yield reject("DP113", "a window reads other rows", span=at, help=[_ONE_ROW])
        elif isinstance(node, exp.Query) and node is not tree:
            yield reject("DP111", "a subquery reads other rows", span=query_span(node, source.text), help=[_ONE_ROW])
        elif isinstance(node, (exp.Explode, exp.Unnest)):
            yield reject("DP101", "UNNEST makes several rows of one", span=at, help=[_ONE_ROW])
        elif (aggregate := aggregate_name(node)) is not None:
            yield reject("DP108", f"{aggregate.upper()} is an aggregate, of several rows", span=at, help=[_ONE_ROW])
        elif isinstance(node, (exp.Placeholder, exp.Parameter)):
            yield reject("DP013", "a parameter has no value here", span=at, help=["write the value itself"])
        elif isinstance(node, exp.Alias) and node.parent is tree:
            yield reject("DP101", "AS names it", span=at, help=[f"leave AS out: it is called {column.name}"])
        elif isinstance(node, exp.Column) and node.table.casefold() in own and node.name.casefold() in computed:
            itself = node.name.casefold() == column.name.casefold()
            yield reject(
                "DP103", f"column {node.name} is computed itself", span=at,
                help=[
                    "call what is computed otherwise, and list the data's column beside it" if itself
                    else f"write out what {node.name} is made of"
                ],
            )  # fmt: skip


def _told(refusal: Rejected, code: str, column: Declared, table: Table, policy: Policy) -> Iterator[Diagnostic]:
    """The refusal where the policy has the expression; in the expression itself, where a policy has no text."""
    assert column.computed is not None
    text, loc = column.computed.text, ("tables", table.name, "columns", column.name, "from")
    for d in refusal.diagnostics:
        within = _within(d.span, text)
        source, span = _place(policy, loc, text, within)
        behind = d.code == "DP010" and d.span is not None and d.span.start > len(_BEFORE) + len(text)
        message = f"{dotted(loc)}: {'syntax error: it is not one expression' if behind else d.message}"
        yield Diagnostic(code, message, source, span, d.label, _helps(d, code, policy))


def _helps(d: Diagnostic, code: str, policy: Policy) -> tuple[str, ...]:
    """The repairs that are the custodian's, who reads them. A view can have what the policy's data is not asked for."""
    if code == "DP105" or (policy.server is not None and d.mark is Mark.DECLARABLE):
        return (_TABLE if policy.server is not None and policy.server.kind == "spark" else _VIEW,)
    return tuple(h.own if isinstance(h, ForCustodian) else h for h in d.help)


def _within(span: Span | None, text: str) -> Span:
    """Of what was parsed, the part of the expression."""
    if span is None:
        return Span(0, len(text))
    start = min(max(span.start - len(_BEFORE), 0), max(len(text) - 1, 0))
    return Span(start, max(min(span.end - len(_BEFORE), len(text)), start + 1))


def _place(policy: Policy, loc: Loc, text: str, within: Span) -> tuple[Source, Span]:
    """Where that part stands in the policy's text: the whole value where it is written with other signs."""
    place = policy.places.find(loc)
    if place is None:
        return Source(text, "<from>"), within
    source, span = place
    at = source.text.find(text, span.start, span.end)
    return source, span if at < 0 else within.moved(at)
