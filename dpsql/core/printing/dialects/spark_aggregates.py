"""How Spark spells aggregates and window functions of public or released rows, and extremes of private ones."""

from __future__ import annotations

from collections.abc import Sequence

from dpsql.core.ir.nodes import Frame
from dpsql.core.ir.types import DOUBLE, INTEGER, Kind, SqlType, decimal
from dpsql.core.printing.dialect import CannotSpell, Dialect, Typed

_PLACES = frozenset({"row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead"})
"""Window functions that need an order, and take no frame."""
_COUNTED = {"lag": 1, "lead": 1, "nth_value": 1, "ntile": 0}
"""Window function → the place of an argument that must have 32 bits."""


def aggregate(d: Dialect, function: str, sql: str, type_: SqlType, where: str = "", distinct: bool = False) -> str:
    """See `Dialect.aggregate`."""
    called = f"({'DISTINCT ' * distinct}{sql}){where}"
    match function:
        case "count":
            return f"count{called}"
        case "min" | "max":
            if type_.kind in (Kind.LIST, Kind.BLOB, Kind.UUID, Kind.NULL):
                raise CannotSpell(f"of {type_}")
            return f"{function}{called}"
        case "sum" if type_.kind in (Kind.INTEGER, Kind.DECIMAL):
            return d.total(sql, type_, where, distinct)
        case "avg" if type_.kind in (Kind.INTEGER, Kind.DECIMAL):
            total = d.cast(d.total(sql, type_, where, distinct), DOUBLE)
            return f"({total} / NULLIF(count{called}, 0))"
        case _:
            raise CannotSpell(f"of {type_}")


def window(d: Dialect, function: str, args: Sequence[Typed], ignore_nulls: bool) -> str:
    """See `Dialect.window`."""
    if not args:
        return f"{function}({'*' if function == 'count' else ''})"
    if function == "sum":  # one sum, as OVER asks for
        sql, type_ = args[0]
        if type_.kind not in (Kind.INTEGER, Kind.DECIMAL):
            raise CannotSpell(f"of {type_}")
        return f"sum({d.cast(sql, decimal(38, type_.scale))})"
    if function in ("count", "min", "max"):
        return aggregate(d, function, args[0][0], args[0][1])
    if function in ("avg", "var_pop", "var_samp", "stddev_pop", "stddev_samp"):
        raise CannotSpell("the last digit may differ")
    at = _COUNTED.get(function)
    listed = [d.cast(sql, INTEGER) if i == at else sql for i, (sql, _) in enumerate(args)]
    if function in ("lag", "lead") and len(args) == 3:
        listed[2] = d.cast(listed[2], args[0][1])
    return f"{function}({', '.join(listed)}){' IGNORE NULLS' if ignore_nulls else ''}"


def over(function: str, order: Sequence[str], frame: Frame | None) -> tuple[Sequence[str], Frame | None]:
    """See `Dialect.over`. The ends of a RANGE are computed, and an end that no number holds is an error."""
    if frame is not None and function in _PLACES:
        raise CannotSpell("it takes no frame")
    if frame is not None and frame.unit == "GROUPS":
        raise CannotSpell("there are no frames of GROUPS")
    if frame is not None and frame.unit == "RANGE" and (frame.start or frame.end):
        raise CannotSpell("a RANGE may end where no number is; use ROWS")
    return (order or ["NULL"] if function in _PLACES else order), frame
