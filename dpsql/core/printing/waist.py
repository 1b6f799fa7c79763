"""Inner projections: what a SELECT reads several times is computed once, as a column of a subquery.

A clip reads its argument in every branch, slices read theirs in every FILTER, and DuckDB computes each anew where no
optimizer looks for repeated text (engines/duckdb/locked/optimizers.py): 1.8 times a query, measured. So the argument is
a column, and the clip stands above and reads it. Of a square the clipped integer is a column, over one of its argument.
What is written once, bare columns and constants stay where they are.

*Claim.* The integers are those of the SELECT without the projections. *Why.* A column is the text that it stands for,
of the same row, and no row comes or goes; whatever is printed may be computed of every row, for it is total. *When it
would be false.* A column that stands for another text: it is found by the expression itself, never by what looks like
it. *Tested by* tests/core/printing/test_waist.py, tests/deep/core/printing/test_every_shape.py.
"""

from __future__ import annotations

from collections.abc import Callable

from dpsql.core.ir.step_count import take
from dpsql.core.printing.block import Block
from dpsql.core.printing.expressions import Kept, Names
from dpsql.core.value_classes import replace

LEVELS = "ei"
"""Names of the subqueries, from the outermost on: one of repeated expressions, and one of what these repeat."""

Listed = Callable[[Names], list[str]]


def waist(block: Block, listed: Listed, levels: str = LEVELS) -> tuple[list[str], Block]:
    """What a SELECT lists, and the block that it reads: a subquery, if the list repeats an expression.

    listed: prints the list over these names, each time by the same expressions.
    """
    names = block.names
    if not levels or not names.dialect.computes_apart:
        return listed(names), block
    kept: dict[object, Kept] = {}
    found = listed(replace(names, kept=kept))
    apart = _repeated("\n".join(found), kept)
    if not apart:
        return found, block
    alias, columns = levels[0], {key: f"a{place}" for place, keys in enumerate(apart) for key in keys}
    read = ReadColumns(alias)
    known = {key: replace(kept[key], sql=f"{alias}.{name}") for key, name in columns.items()}
    outer = Names(read, names.env, names.dialect, known)
    items = listed(outer)
    uids, again = sorted(read), [kept[keys[0]].again for keys in apart]

    def below(inner: Names) -> list[str]:
        own = [f"{inner.sql[uid]} AS {column_name(uid)}" for uid in uids]
        return [*own, *(f"{print_(inner)} AS a{place}" for place, print_ in enumerate(again))]

    computed, source = waist(block, below, levels[1:])
    return items, Block(f"(SELECT {', '.join(computed)}\n{source.clause()}) AS {alias}", (), outer)


def _repeated(text: str, kept: dict[object, Kept]) -> list[list[object]]:
    """The keys of each text that is written more than once, the longest first, and not only within a longer one."""
    keys: dict[str, list[object]] = {}
    for key, each in kept.items():
        if each.known is None or not each.known.is_constant:
            keys.setdefault(each.sql, []).append(key)
    found = []
    for sql in sorted(keys, key=len, reverse=True):
        take(1 + len(text) // 1024)
        if text.count(sql) > 1:
            found.append(keys[sql])
            text = text.replace(sql, "\0")
    return found


class ReadColumns(dict[int, str]):
    """How the columns of a subquery are printed; knows of which it was asked."""

    def __init__(self, alias: str) -> None:
        super().__init__()
        self._alias = alias

    def __missing__(self, uid: int) -> str:
        found = self[uid] = f"{self._alias}.{column_name(uid)}"
        return found


def column_name(uid: int) -> str:
    """How a subquery calls a column; below 0 are the numbers of slices (`shapes/sliced.py`)."""
    return f"c{uid}" if uid >= 0 else f"s{-uid - 1}"
