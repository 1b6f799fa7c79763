"""The inner projection: what a SELECT reads several times is computed once, as a column of a subquery.

A clip reads its argument in every branch, and DuckDB computes it in each where no optimizer looks for repeated text
(engines/duckdb/optimizers.py): 1.8 times a query, measured. So the argument is a column, and the clip, which stands
above, reads it. What is written once, bare columns and constants stay where they are.

*Claim.* The integers are those of the SELECT without the projection. *Why.* A column of it is the very text that it
stands for, of the same row, and no row comes or goes. *When it would be false.* A column that stands for another text:
it is found by the expression itself, never by what looks like it. *Tested by* tests/core/printing/test_waist.py,
tests/deep/printing/test_every_shape.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from dpsql.core.functions.value import Value
from dpsql.core.ir.by_identity import ByIdentity
from dpsql.core.ir.expressions import Column, Expr, columns_of
from dpsql.core.printing.block import Block
from dpsql.core.printing.expressions import Names
from dpsql.core.values import replace

ALIAS = "e"


def waist(block: Block, read: Iterable[int], listed: Callable[[Names], list[str]]) -> tuple[list[str], Block]:
    """What a SELECT lists, and the block that it reads: with an inner projection if the list repeats an expression.

    read: the columns that are read by their names alone. listed: prints the list, and spells nothing but what it lists.
    """
    names = block.names
    if not names.dialect.computes_apart:
        return listed(names), block
    spelled = ByIdentity[Expr, tuple[str, Value]]()
    found = listed(replace(names, spelled=spelled))
    text, apart, columns = "\n".join(found), dict[str, str](), ByIdentity[Expr, tuple[str, Value]]()
    uids = set(read)
    for expr, (sql, known) in spelled.items():
        if isinstance(expr, Column) or known.is_constant or text.count(sql) < 2:
            uids |= columns_of(expr)
        else:
            columns[expr] = apart.setdefault(sql, f"{ALIAS}.a{len(apart)}"), known
    if not apart:
        return found, block
    items = [f"{names.sql[uid]} AS c{uid}" for uid in sorted(uids)]
    items += [f"{sql} AS {name.removeprefix(f'{ALIAS}.')}" for sql, name in apart.items()]
    outer = Names({uid: f"{ALIAS}.c{uid}" for uid in uids}, names.env, names.dialect, columns)
    return listed(outer), Block(f"(SELECT {', '.join(items)}\n{block.clause()}) AS {ALIAS}", (), outer)
