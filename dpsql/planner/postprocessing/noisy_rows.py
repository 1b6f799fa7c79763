"""Noisy rows: columns in their SQL types, and as they are written into a later release's statement, on any engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from dpsql.core.ir.expressions import LiteralValue
from dpsql.core.ir.recipes import Output
from dpsql.core.ir.types import SqlType
from dpsql.core.printing.dialect import Dialect
from dpsql.core.release.noisy import NoisyRelease
from dpsql.frontend.aggregates.formula import formula


def as_query(noisy: NoisyRelease, d: Dialect) -> str:
    """The released rows as a query in brackets, with columns c<number> of exactly the planned types."""
    node = noisy.planned.measured.node
    columns = [*node.keys, *(o.column for o in node.outputs)]
    listed = ", ".join(f"{d.cast(f'c{c.uid}', c.type)} AS c{c.uid}" for c in columns) or "c0"
    names = [f"c{c.uid}" for c in columns] or ["c0"]
    rows = [
        ", ".join(_printed(d, v, c.type) for v, c in zip(row, columns, strict=True)) for row in released_rows(noisy)
    ]
    nothing = ", ".join(["NULL"] * len(names))
    written = d.values([row or "NULL" for row in rows or [nothing]], names, "v")
    return f"(SELECT {listed} FROM {written}{'' if rows else ' WHERE FALSE'})"


def _printed(d: Dialect, value: LiteralValue, type_: SqlType) -> str:
    """A key may hold a NUL character, which no literal can: the data has it, and by now its noise is paid for."""
    if not isinstance(value, str) or "\0" not in value:
        return d.constant(value, type_)
    return d.text_with_nuls(value)


Known = Mapping[int, Sequence[object]]
"""Output of a release → its values, where they are known."""
_NOTHING: Final[Known] = MappingProxyType({})


def released_columns(
    noisy: NoisyRelease, drawn: NoisyRelease | None = None, known: Known = _NOTHING
) -> list[Sequence[object]]:
    """A column for each output of the release, in the SQL type of its column.

    drawn: the same as it was drawn, where totals were made the sums of their parts: what is no sum is made of that.
    """
    node = noisy.planned.measured.node

    def source(output: Output) -> NoisyRelease:
        return noisy if drawn is None or output.recipe.terms(node.components) is not None else drawn

    return [
        known[at] if at in known else formula(o).values(source(o), o.column.type) for at, o in enumerate(node.outputs)
    ]


def released_rows(noisy: NoisyRelease) -> list[tuple[Any, ...]]:
    """The rows of a release as later ones read them: group keys, then released columns."""
    columns = [*noisy.key_columns, *released_columns(noisy)]
    return list(zip(*columns, strict=True)) if columns else [()] * len(noisy.keys)
