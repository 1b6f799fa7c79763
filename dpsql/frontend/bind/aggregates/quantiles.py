"""Quantiles in all their spellings: of what, at which p, and with which bounds.

    MEDIAN(x)   QUANTILE_CONT(x, 0.9)   PERCENTILE_DISC(0.9) WITHIN GROUP (ORDER BY x DESC)
    QUANTILE(x, 0.9)   APPROX_QUANTILE(x, 0.9)   PERCENTILE_CONT(x, 0.9)   APPROX_QUANTILES(x, 10)[OFFSET(9)]

The share p of the values lies at or below the quantile; behind ORDER BY x DESC at or above it, which is 1 - p.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from sqlglot import exp

from dpsql.core.ir.expressions import Expr, Literal
from dpsql.core.ir.types import BIGINT, DOUBLE, Kind
from dpsql.diagnostics.diagnostic import Span
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.diagnostics.words import number
from dpsql.frontend.bind.expressions.expressions import ExprBinder
from dpsql.frontend.bind.expressions.refusals import written_name
from dpsql.frontend.bind.expressions.syntax_arguments import checked
from dpsql.frontend.bind.expressions.unknown_values import taken_as
from dpsql.frontend.text.written_again import written_again

FINEST = 10**6
"""Largest denominator of p, and most parts of APPROX_QUANTILES."""
_MOST_LISTED = 9
"""Most columns that a repair writes out."""
_INDEX = {"OFFSET": 0, "SAFE_OFFSET": 0, "ORDINAL": 1, "SAFE_ORDINAL": 1}
"""GoogleSQL's words for an index, and from where they count."""


@dataclass(frozen=True, slots=True)
class WrittenQuantile:
    """A quantile as it was read.

    name: as written, in capitals. p: the share at or below it; descending: 1 - p was written. call: the node that
    bounds may have been written in.
    """

    name: str
    arg: exp.Expr
    p: Fraction
    call: exp.Expr
    descending: bool = False


def quantile(node: exp.Expr, binder: ExprBinder) -> WrittenQuantile:
    """The quantile at a node that `function_names.QUANTILE_NODES` names. Raises Rejected."""
    match node:
        case exp.WithinGroup():
            return _ordered(node, binder)
        case exp.Bracket():
            return _indexed(node, binder)
        case exp.ApproxQuantiles():
            raise _without_index(node, binder)
        case exp.Median():
            arg = _value(checked(node, binder.source, "this")["this"], "MEDIAN", binder)
            return WrittenQuantile("MEDIAN", arg, Fraction(1, 2), node)
        case _:
            return _called(node, binder)


def require_ordered(arg: Expr, name: str, span: Span) -> None:
    """Refuse (DP203) what is neither a number nor a date or timestamp."""
    if arg.type.numeric or arg.type.temporal:
        return
    advice = {
        Kind.BOOLEAN: "the share for which it holds:  AVG(CASE WHEN … THEN 1.0 ELSE 0.0 END)",
        Kind.VARCHAR: "count the rows of each text with GROUP BY",
    }.get(arg.type.kind, "compute a number, a date or a timestamp from it first")
    raise reject(
        "DP203", f"{name} needs a number, a date or a timestamp, not {arg.type}", span=arg.span or span, help=[advice]
    )


# --- spellings -----------------------------------------------------------------------------------------------------


def _called(node: exp.Expr, binder: ExprBinder) -> WrittenQuantile:
    """QUANTILE_CONT(x, p) and all that are written like it."""
    name = written_name(node, binder.source).upper()
    if isinstance(node, exp.Anonymous):
        given = checked(node, binder.source, "this", "expressions").get("expressions", [])
    else:
        args = checked(node, binder.source, "this", "expression", "quantile")
        given = [args[part] for part in ("this", "expression", "quantile") if part in args]
    if len(given) != 2:
        ordered = f"{name}(0.5) WITHIN GROUP (ORDER BY x)" if name.startswith("PERCENTILE") else f"{name}(x, 0.5)"
        raise reject("DP106", f"{name} needs a value and a p", span=binder.span(node), help=[f"as in  {ordered}"])
    arg = _value(given[0], name, binder)
    text = shown(arg, binder)
    return WrittenQuantile(name, arg, _share(given[1], name, binder, lambda p: f"{name}({text}, {p})"), node)


def _ordered(node: exp.WithinGroup, binder: ExprBinder) -> WrittenQuantile:
    """PERCENTILE_CONT(p) WITHIN GROUP (ORDER BY x [DESC]): NULLs leave, wherever they are sorted."""
    args = checked(node, binder.source, "this", "expression")
    call = args["this"]
    name = written_name(call, binder.source).upper()
    parts = checked(call, binder.source, "this", "expression")
    terms = checked(args["expression"], binder.source, "expressions")["expressions"]
    if "expression" in parts or len(terms) != 1:
        raise reject(
            "DP106", f"{name} takes one p and one ORDER BY expression", span=binder.span(node),
            help=[f"as in  {name}(0.5) WITHIN GROUP (ORDER BY x)"],
        )  # fmt: skip
    term = checked(terms[0], binder.source, "this", "desc", "nulls_first")
    arg, descending = _value(term["this"], name, binder), bool(term.get("desc"))
    order = f"ORDER BY {shown(arg, binder)}{' DESC' * descending}"
    p = _share(parts["this"], name, binder, lambda p: f"{name}({p}) WITHIN GROUP ({order})")
    return WrittenQuantile(name, arg, 1 - p if descending else p, call, descending)


def _indexed(node: exp.Bracket, binder: ExprBinder) -> WrittenQuantile:
    """APPROX_QUANTILES(x, n)[OFFSET(i)], at i / n."""
    args = checked(node, binder.source, "this", "expressions", "offset", "safe")
    call, arg, n = _parts(args["this"], binder)
    text = shown(arg, binder)
    indices, start = _indices(node, binder)
    if start is None or len(indices) != 1:
        raise reject(
            "DP101", f"{_APPROX} takes one index, which says from where it counts", span=binder.span(node),
            help=[f"write  {_APPROX}({text}, {n})[OFFSET({n // 2})]"],
        )  # fmt: skip
    i = _whole(indices[0], "the index", binder) - start
    if not 0 <= i <= n:
        raise reject(
            "DP106", f"{_APPROX}(…, {n}) has {n + 1} values", span=binder.span(indices[0]),
            help=[f"write  {_APPROX}({text}, {n})[OFFSET({n // 2})]"],
        )  # fmt: skip
    if i in (0, n):
        raise _end(_APPROX, Fraction(i, n), binder.span(node), f"{_APPROX}({text}, 100)[OFFSET({99 if i else 1})]")
    return WrittenQuantile(_APPROX, arg, Fraction(i, n), call)


def _indices(node: exp.Bracket, binder: ExprBinder) -> tuple[list[exp.Expr], int | None]:
    """What stands between brackets, and from where it counts, where that is said."""
    indices, start = checked(node, binder.source, "this", "expressions", "offset", "safe")["expressions"], None
    start = node.args.get("offset")
    if len(indices) == 1 and isinstance(indices[0], exp.Anonymous):  # where sqlglot knows no OFFSET
        start = _INDEX.get(str(indices[0].this).upper())
        indices = checked(indices[0], binder.source, "this", "expressions").get("expressions", [])
    return indices, start


def position(node: exp.Bracket, listed: int, binder: ExprBinder) -> int:
    """Which one of a list of quantiles is read: [1] is the first. Raises Rejected."""
    indices, start = _indices(node, binder)
    if len(indices) != 1:
        raise reject(
            "DP101", "one quantile of a list is read by one index", span=binder.span(node),
            help=["as in  QUANTILE_CONT(x, [0.25, 0.75])[1]"],
        )  # fmt: skip
    i = _whole(indices[0], "the index", binder) - (1 if start is None else start)
    if not 0 <= i < listed:
        raise reject(
            "DP106", f"the list has {listed} quantiles, counted from 1", span=binder.span(indices[0]),
            help=[f"the last is  [{listed}]"],
        )  # fmt: skip
    return i


_APPROX = "APPROX_QUANTILES"


def _parts(call: exp.Expr, binder: ExprBinder) -> tuple[exp.Expr, exp.Expr, int]:
    """The call APPROX_QUANTILES(x, n), its x and its n."""
    args = checked(call, binder.source, "this", "expression")
    arg = _value(args["this"], _APPROX, binder)
    n = _whole(args["expression"], f"the number of parts of {_APPROX}", binder)
    if not 2 <= n <= FINEST:
        raise reject(
            "DP106", f"{_APPROX} takes from 2 to {FINEST:,} parts", span=binder.span(args["expression"]),
            help=[f"the median is  {_APPROX}({shown(arg, binder)}, 2)[OFFSET(1)]"],
        )  # fmt: skip
    return call, arg, n


def _without_index(node: exp.Expr, binder: ExprBinder) -> Rejected:
    _, arg, n = _parts(node, binder)
    places = range(1, n) if n <= _MOST_LISTED + 1 else (n // 4, n // 2, n - n // 4)
    listed = ", ".join(number(Fraction(i, n)) for i in places)
    return reject(
        "DP101", f"{_APPROX} without an index begins with the least value and ends with the greatest",
        span=binder.span(node), label="one person decides these",
        help=[
            f"those between:  QUANTILE_DISC({shown(arg, binder)}, [{listed}])",
            f"one of them:  {_APPROX}({shown(arg, binder)}, {n})[OFFSET({places[len(places) // 2]})]",
        ],
    )  # fmt: skip


# --- their parts ---------------------------------------------------------------------------------------------------


def _value(node: exp.Expr, name: str, binder: ExprBinder) -> exp.Expr:
    """What is ordered."""
    if isinstance(node, exp.Distinct):
        raise reject(
            "DP101", f"{name}(DISTINCT …) is not supported", span=binder.span(node),
            help=["leave DISTINCT out: then every row counts"],
        )  # fmt: skip
    return node


def _share(node: exp.Expr, name: str, binder: ExprBinder, written: Callable[[str], str]) -> Fraction:
    """p, exactly. written: the call at another p. Raises Rejected."""
    if isinstance(node, exp.Array):  # in a list of lists, or over a window
        shares = [shown(e, binder) for e in node.expressions[:_MOST_LISTED]] or ["0.5"]
        raise _list(name, node, binder, [written(p) for p in shares])
    if isinstance(node, exp.Order):
        raise reject(
            "DP101", f"ORDER BY cannot stand in {name}", span=binder.span(node),
            help=[f"write  {written(shown(node.this, binder))}  or  PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x)"],
        )  # fmt: skip
    bound = taken_as(binder.bind(node), DOUBLE)
    value = bound.value if isinstance(bound, Literal) and bound.type.numeric else None
    if value is None:
        raise reject(
            "DP115", f"the p of {name} must be a literal number", span=binder.span(node),
            label="would depend on the data",
            help=[f"write  {written('0.5')}  or pass p as a parameter"],
        )  # fmt: skip
    p = Fraction(str(value))  # a DOUBLE stands for the shortest decimal that is read as it
    if 1 < p < 100:
        raise _end(name, p, binder.span(node), written(number(p / 100)), percent=True)
    if not 0 < p < 1:
        raise _end(name, p, binder.span(node), written("0.99" if p > 0 else "0.01"))
    if p.denominator > FINEST:
        near = min(max(Fraction(round(p * FINEST), FINEST), Fraction(1, FINEST)), 1 - Fraction(1, FINEST))
        raise reject(
            "DP106", f"the p of {name} has at most six decimal places", span=binder.span(node),
            help=[f"write  {written(number(near))}"],
        )  # fmt: skip
    return p


def _whole(node: exp.Expr, what: str, binder: ExprBinder) -> int:
    bound = taken_as(binder.bind(node), BIGINT)
    value = bound.value if isinstance(bound, Literal) else None
    if isinstance(value, bool) or not isinstance(value, int):
        raise reject(
            "DP115", f"{what} must be a whole number that stands in the query", span=binder.span(node),
            help=[f"as in  {_APPROX}(x, 4)[OFFSET(3)],  or pass it as a parameter"],
        )  # fmt: skip
    return value


def shown(node: exp.Expr, binder: ExprBinder) -> str:
    """An argument as it is written, for repairs."""
    return written_again(node, binder.source)


def _end(name: str, p: Fraction, span: Span, repair: str, percent: bool = False) -> Rejected:
    """The refusal of what would be the least or the greatest value."""
    advice = f"p is a share:  {repair}" if percent else f"close to the {'greatest' if p > 0 else 'least'}:  {repair}"
    return reject(
        "DP101", f"{name} takes a p above 0 and below 1", span=span,
        label="" if percent else "one person decides the answer", help=[advice],
    )  # fmt: skip


def _list(name: str, node: exp.Expr, binder: ExprBinder, columns: list[str]) -> Rejected:
    return reject(
        "DP101", f"{name} with several values in one column is not supported", span=binder.span(node),
        help=[f"a column for each:  {', '.join(columns)}"],
    )  # fmt: skip
