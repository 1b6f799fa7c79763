"""First of an id (F7): which groups, values and rows are kept where only so many may be.

*Claim.* Which groups or values of an id are kept is a function of that id's own rows and of the ledger's salt; which
rows of a key, of that key's rows and the salt. *Why.* They are ordered by a hash of what they are, the id with it, and
then by what they are; rows by their text besides, where equal values can look different (0.0 and -0.0, 30 days and
1 month). Those that are still equal are the same. Equal values have one hash, on which the engine's GROUP BY rests as
well, so it does not matter in which of its forms a value arrived first. *When it would be false.* A hash that tells two
forms of a value apart; a value that is not in the order, so that the first to arrive is kept.
*Not proved:* that equal values have one hash is the engine's.
*Tested by*
tests/core/printing/test_kept_rows.py, tests/engines/test_engine_contract.py.

    ROW_NUMBER() OVER (PARTITION BY u ORDER BY hash(u, k0, :salt), k0) <= G        DuckDB
    ROW_NUMBER() OVER (PARTITION BY u ORDER BY md5(… || :salt), k0) <= G           PostgreSQL, Spark

*The id is in it*, or all ids keep the same groups and the others vanish.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpsql.core.ir.types import VARCHAR
from dpsql.core.printing.dialect import Dialect, Typed

SALT = "\0salt\0"
"""Stands for the ledger's secret number in printed SQL; a NUL cannot occur in any literal."""


def first(d: Dialect, most: int, of: str, what: Sequence[Typed], texts: bool = False, place: str = "ROW_NUMBER") -> str:
    """The condition on windows that keeps the first `most` of those that agree on the columns `of`.

    what: all that tells two of them apart, and the id they belong to, always in one order: it is part of the choice.
    texts: whether what compares equal may still differ, because it is rows. place: DENSE_RANK for rows of one group.
    """
    order = [d.order_hash(what, SALT), *(sql for sql, _ in what if sql != of)]
    order += [d.cast(sql, VARCHAR) for sql, type_ in what if texts and not type_.one_form]
    return f"{place}() OVER (PARTITION BY {of} ORDER BY {', '.join(order)}) <= {most}"
