"""Noisy rows written into the statement of a later release: public numbers, whatever the engine."""

from __future__ import annotations

from dpsql.core.ir.expressions import LiteralValue
from dpsql.core.ir.types import SqlType
from dpsql.core.printing.dialect import Dialect
from dpsql.core.release.noisy import NoisyRelease
from dpsql.planner.postprocessing.released_columns import released_columns


def as_query(noisy: NoisyRelease, d: Dialect) -> str:
    """The released rows as a query in brackets, with columns c<number> of exactly the planned types."""
    node = noisy.planned.measured.node
    columns = [*node.keys, *(o.column for o in node.outputs)]
    listed = ", ".join(f"{d.cast(f'c{c.uid}', c.type)} AS c{c.uid}" for c in columns) or "c0"
    names = [f"c{c.uid}" for c in columns] or ["c0"]
    values = [*noisy.key_columns, *released_columns(noisy)]
    rows = [
        ", ".join(_printed(d, v, c.type) for v, c in zip(row, columns, strict=True))
        for row in (zip(*values, strict=True) if values else [()] * len(noisy.keys))
    ]
    nothing = ", ".join(["NULL"] * len(names))
    written = d.values([row or "NULL" for row in rows or [nothing]], names, "v")
    return f"(SELECT {listed} FROM {written}{'' if rows else ' WHERE FALSE'})"


def _printed(d: Dialect, value: LiteralValue, type_: SqlType) -> str:
    """A key may hold a NUL character, which no literal can: the data has it, and by now its noise is paid for."""
    if not isinstance(value, str) or "\0" not in value:
        return d.constant(value, type_)
    return d.text_with_nuls(value)
