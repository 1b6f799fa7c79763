"""Window functions among the rows of one id: the latest row of each person, the row before, counts up to a row.

Claim: ID, with the bare id in each PARTITION BY: still only that id's rows differ, and each stays one row. A row number
    is unique within its partition, if that is by stored columns, and 1 or more.
Why: a partition holds rows of one id alone, and what a function gives beside a row is decided by the rows of its
    partition: where their order counts it is made total (`private_order`), and rows that are equal in everything can be
    exchanged. Sums are of integers that fit, so that their order does not count.
When it would be false: an order that is not total; a sum of DOUBLEs; a function of which the engine may take other rows
    of equal order (LAST_VALUE over peers), or that fails for some value (RANGE with a distance overflows); a partition
    by an expression of the id, which two ids may share; MIN and MAX of equal values in two forms.
Proved by: Ops.by_key_disjoint, Freq.windows_most, Sound.derive_sound. Not proved: row numbers as a key
Tested by: tests/deep/core/analysis/test_windows_of_units.py, tests/core/analysis/test_window_of_unit.py

Example:
    >>> facts("SELECT * FROM visits QUALIFY ROW_NUMBER() OVER (PARTITION BY patient ORDER BY cost) = 1", "keys")
    filter row_number = 1     stability patient=1 id · key (patient) · key (visit)
    └─ window row_number(…)   stability patient=1 id · key (patient, row_number) · key (visit)
       └─ scan visits         stability patient=1 id · key (visit)
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from dpsql.core.analysis.facts import ColumnFact, Facts, Hint
from dpsql.core.analysis.stored_columns import stored_columns
from dpsql.core.ir.expressions import Column
from dpsql.core.ir.nodes import Frame, Window, WindowCall
from dpsql.core.ir.types import Kind
from dpsql.core.numbers.interval import Interval, everything
from dpsql.core.values.meaning import evaluate
from dpsql.core.values.value import Value, type_range
from dpsql.diagnostics.errors import Rejected, reject

_PLACES = frozenset({"row_number", "rank", "dense_rank", "ntile"})
_VALUES = frozenset({"lag", "lead", "first_value"})
_AGGREGATES = frozenset({"count", "sum", "min", "max"})


def of_one_unit(node: Window, below: Facts) -> bool:
    """Whether each function looks at the rows of one id alone."""
    return all(any(isinstance(e, Column) and e.uid in below.ids for e in call.partition) for call in node.calls)


def window_of_unit(node: Window, below: Facts) -> Facts:
    """Facts of an id's rows with window functions beside them. Raises Rejected DP113 for those without a rule."""
    columns, keys, stored = dict(below.columns), set(below.keys), stored_columns(node.input)
    for call in node.calls:
        _require_rule(call, below)
        columns[call.column.uid] = ColumnFact(_value(call, below), _hint(call, below))
        if call.function == "row_number" and all(isinstance(e, Column) and e.uid in stored for e in call.partition):
            keys.add(frozenset({*(e.uid for e in call.partition if isinstance(e, Column)), call.column.uid}))
    return Facts(
        columns, stability=below.stability, ids=below.ids, keys=frozenset(keys), frequency=below.frequency,
        by_id=below.by_id, hops=below.hops, promised_keys=below.promised_keys, replaced=below.replaced,
        rule="window within the privacy unit",
    )  # fmt: skip


def _require_rule(call: WindowCall, below: Facts) -> None:
    name, _, _ = call.function.partition(" ")
    for e in (*call.args, *call.partition, *(k.expr for k in call.order)):
        below.value(e)
    if name not in _PLACES | _VALUES | _AGGREGATES:
        raise _refused(call, "has no rule over private rows", "use ROW_NUMBER, RANK, LAG, LEAD, FIRST_VALUE, COUNT, …")
    if not _frame_allowed(name, call.frame):
        raise _refused(call, "has a frame without a rule over private rows", "write  ROWS BETWEEN … AND …")
    if name == "sum" and not _exact(below.value(call.args[0])):
        raise _refused(
            call, "adds numbers whose order would count, or that may overflow", "add whole numbers: CAST(x AS INTEGER)"
        )
    if name in ("min", "max") and not (call.args[0].type.one_form or call.args[0].type.kind is Kind.DOUBLE):
        raise _refused(call, f"cannot compare {call.args[0].type}", "take MIN or MAX of a number, text or date")


def _frame_allowed(name: str, frame: Frame | None) -> bool:
    """ROWS of an order that is total; peers, all of them, where only which rows they are counts."""
    if frame is None or frame.unit == "ROWS":
        return True
    return name in _AGGREGATES and {frame.start, frame.end} <= {None, 0}


def _exact(value: Value) -> bool:
    """Whether fewer than 2⁶³ of them add up exactly, in 128 bits."""
    match value.type.kind:
        case Kind.INTEGER:
            top = value.range.magnitude
            return top is not None and top <= 2**64
        case Kind.DECIMAL:
            return value.type.precision <= 18
        case _:
            return False


def _value(call: WindowCall, below: Facts) -> Value:
    name, _, _ = call.function.partition(" ")
    type_ = call.column.type
    if name in _PLACES or name == "count":
        least = 0 if name == "count" else 1
        return Value(type_, Interval(Fraction(least), None), type_range(type_), nullable=False)
    if name == "sum":
        return Value(type_, everything(), type_range(type_))
    arg = below.value(call.args[0])
    if len(call.args) > 2 or arg.type != type_:  # the default of LAG may be anything
        return Value(type_, everything(), type_range(type_), finite=False)
    keys = evaluate(call.args[0], below.key_env).domain  # one of the argument's own values, or NULL
    domain = None if keys is None else replace(keys, null=True)
    return Value(type_, arg.interval, arg.range, True, arg.finite, domain)


def _hint(call: WindowCall, below: Facts) -> Hint | None:
    """How far one of a column's own values is worth clipping."""
    match call.function.partition(" ")[0], call.args:
        case (("lag" | "lead" | "first_value" | "min" | "max"), (Column(uid=uid), *_)):
            known = below.columns[uid].hint
            own = Hint("", call.column.name, False, call.column.uid, known.bounds) if known is not None else None
            return own if call.column.type == below.columns[uid].value.type else None
        case _:
            return None


def _refused(call: WindowCall, why: str, help: str) -> Rejected:
    name = call.function.upper()
    return reject("DP113", f"{name} over a window {why}", span=call.span, help=[help])
