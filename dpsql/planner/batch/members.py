"""A member of a batch: `SELECT [keys,] COUNT(*) [FILTER (WHERE …)] … FROM one relation [WHERE …] [GROUP BY keys]`.

Beside COUNT(*) it may ask COUNT(x), SUM(x) and AVG(x), and COUNT(DISTINCT x) where x is a key of the relation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dpsql.core.ir.expressions import Column, Expr, walk
from dpsql.core.ir.nodes import Aggregate, AggregateCall, Filter, Node, Project, Sort, SortKey
from dpsql.core.policy.policy import Policy
from dpsql.diagnostics.diagnostic import Source, Span
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.frontend.bind.statement import bind
from dpsql.frontend.parse import parse
from dpsql.frontend.text.lexer import tokens
from dpsql.frontend.text.query_comments import refuse_settings

_BEHIND = frozenset({"WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "QUALIFY", "WINDOW", "OFFSET"})
_FORM = "write  SELECT keys, COUNT(*) FROM … WHERE … GROUP BY keys,  run it by itself, or leave it out (skip_refused)"


@dataclass(frozen=True, slots=True)
class Member:
    """A query of a batch, bound.

    relation: what its rows are, before WHERE. from_text: the same, as it is written. where: what has to be true of a
    row. keys: of its groups. calls: its numbers. filters: of each, what has to be true of a row that it counts. shown:
    for each column of the answer the place of a key, or of a number behind all keys. columns: their names and types.
    order: by which of them the answer is sorted. references: number of a column → how the text refers to it.
    """

    source: Source
    relation: Node
    from_text: str
    where: tuple[Expr, ...]
    keys: tuple[Expr, ...]
    filters: tuple[Expr | None, ...]
    shown: tuple[int, ...]
    columns: tuple[Column, ...]
    order: tuple[tuple[int, bool, bool], ...]
    references: Mapping[int, str]
    calls: tuple[AggregateCall, ...] = ()

    @property
    def expressions(self) -> Iterator[Expr]:
        """All that it evaluates for each row."""
        yield from (*self.keys, *self.where)
        yield from (expr for expr in self.filters if expr is not None)


def read_member(sql: str, parameters: Sequence[Any] | Mapping[str, Any], policy: Policy) -> Member:
    """Parse and bind one member. Raises Rejected: it is no query, or none that counts rows of one relation."""
    source = Source(sql)
    try:
        return _read(source, parameters, policy)
    except Rejected as refusal:
        refusal.diagnostics = tuple(d.at(source) for d in refusal.diagnostics)
        raise


def _read(source: Source, parameters: Sequence[Any] | Mapping[str, Any], policy: Policy) -> Member:
    why = "a comment within a batch sets nothing: a batch has one price"
    refuse_settings(source, why, "give ε to the batch:  run(epsilon=…),  --epsilon 0.5")
    parsed = parse(source)
    if next((token.upper for token in tokens(source.text)), "") != "SELECT":
        raise _other("it does not begin with SELECT", None)
    if parsed.clause is not None:
        raise reject(
            "DP101", "a member of a batch has no privacy clause", help=["give ε to the batch:  run(epsilon=…)"]
        )
    bound = bind(parsed, policy, parameters)
    root, sorting = bound.root, tuple[SortKey, ...]()
    items = tuple(item.expr for item in root.items) if isinstance(root, Project) else None
    if isinstance(root, Project):
        root = root.input
    if isinstance(root, Sort):
        sorting, root = root.keys, root.input
    if items is None or not isinstance(root, Aggregate) or root.inner:
        raise _other("it is not a GROUP BY, or a count, over one relation", None)
    for call in root.calls:
        _require_known(call)
    below: Node = root.input
    where: tuple[Expr, ...] = ()
    while isinstance(below, Filter):
        where = (*where, below.predicate)
        below = below.input
    places = {item.column.uid: i for i, item in enumerate(root.keys)}
    places |= {call.column.uid: len(root.keys) + i for i, call in enumerate(root.calls)}
    keys = tuple(item.expr for item in root.keys)
    filters = tuple(call.filter for call in root.calls)
    if not filters:
        raise _other("it counts and sums nothing", None)
    found = Member(
        source, below, _from_text(source.text), where, keys, filters, tuple(_place(e, places) for e in items),
        bound.columns, tuple((_place(k.expr, places), k.descending, k.nulls_first) for k in sorting), {}, root.calls,
    )  # fmt: skip
    return replace(
        found, references={c.uid: _text(c, source) for e in found.expressions for c in walk(e) if isinstance(c, Column)}
    )


def _require_known(call: AggregateCall) -> None:
    name = (call.written or call.function).upper()
    if call.function not in ("count", "sum", "avg"):
        raise _other(f"{name} is none of COUNT, SUM and AVG", call.span)
    if call.per_group is not None:
        raise _other(f"{name} has bounds per group: what an id adds would depend on the groups", call.span)
    if call.end:
        raise _other("ends of intervals come with the answer", call.span)
    if call.distinct and call.function != "count":
        raise _other(f"{name}(DISTINCT …) does not add up over groups of rows", call.span)


def _place(expr: Expr, places: Mapping[int, int]) -> int:
    if isinstance(expr, Column) and expr.uid in places:
        return places[expr.uid]
    raise _other("it computes something of its numbers", expr.span)


def _text(column: Column, source: Source) -> str:
    """How the query refers to a column: as text that means the same in another query over the same relation."""
    span = column.span
    return f'"{column.name}"' if span is None else source.text[span.start : span.end]


def _from_text(text: str) -> str:
    """What stands behind the outermost FROM, with one blank between its words."""
    found: list[str] = []
    depth, within = 0, False
    for token in tokens(text):
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if depth == 0 and token.upper in _BEHIND:
            within = False
        if within and token.kind != "comment" and token.text != ";":
            found.append(token.text)
        within = within or (depth == 0 and token.upper == "FROM")
    return " ".join(found)


def _other(what: str, span: Span | None) -> Rejected:
    return reject("DP101", f"a batch measures sums over rows: {what}", span=span, help=[_FORM])
