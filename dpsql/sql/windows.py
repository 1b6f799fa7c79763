"""Window functions over released values."""

from __future__ import annotations

from dpsql.plan.nodes import Frame, SortKey, WindowCall
from dpsql.sql.emit import Names, spell


def spell_window(call: WindowCall, names: Names) -> str:
    """A window call as SQL."""
    args = ", ".join(spell(a, names)[0] for a in call.args) or ("*" if call.function == "count" else "")
    parts = []
    if call.partition:
        parts.append(f"PARTITION BY {', '.join(spell(p, names)[0] for p in call.partition)}")
    if call.order:
        parts.append(f"ORDER BY {', '.join(_term(k, names) for k in call.order)}")
    if call.frame is not None:
        parts.append(_frame(call.frame))
    return f"CAST({call.function}({args}) OVER ({' '.join(parts)}) AS {call.column.type})"


def _term(key: SortKey, names: Names) -> str:
    down, first = " DESC" if key.descending else "", " NULLS FIRST" if key.nulls_first else " NULLS LAST"
    return f"{spell(key.expr, names)[0]}{down}{first}"


def _frame(frame: Frame) -> str:
    return f"{frame.unit} BETWEEN {_end(frame.start, 'PRECEDING')} AND {_end(frame.end, 'FOLLOWING')}"


def _end(offset: int | None, unbounded: str) -> str:
    if offset is None:
        return f"UNBOUNDED {unbounded}"
    if offset == 0:
        return "CURRENT ROW"
    return f"{abs(offset)} {'PRECEDING' if offset < 0 else 'FOLLOWING'}"
