"""Which rows of a growing table a scan reads: those whose date lies in some of its closed periods.

*Claim.* A scan that has them reads no row of another day, and no row without a day. *Why.* They are printed as the
condition of the innermost SELECT, below all that the query does (core/printing/relational_nodes.py); a comparison holds
for no NULL, and each span has a first day. *When it would be false.* If a statement read the table past its scan.
*Tested by* tests/deep/planner/test_regions_of_queries.py, tests/planner/test_growing.py.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Literal as OneOf

from dpsql.core.ir.expressions import Call, Column, Expr, Literal
from dpsql.core.ir.types import BOOLEAN, DATE
from dpsql.core.value_classes import value

Span = tuple[dt.date, dt.date | None]
"""First and last day, both included; None where the last one is not known yet."""
DAY = dt.timedelta(days=1)


@value(frozen=True, slots=True)
class ReadPeriods:
    """by: the column whose value says of which period a row is. days: whole periods, as `canonical` has them.

    reopened: how often any of these days was opened again, so that an answer of before is another one. every: how long
    a period is. missing: what the query asks for beside, and why it is not read, for messages alone.
    """

    by: str
    days: tuple[Span, ...]
    reopened: int = 0
    every: OneOf["day", "week", "month"] = "day"
    missing: tuple[str, ...] = field(default=(), compare=False)

    def condition(self, columns: Sequence[Column]) -> Expr:
        """What a row of the scan with these columns has to satisfy."""
        day = next(c for c in columns if c.name == self.by)
        found: list[Expr] = []
        for first, last in self.days:
            term: Expr = Call("ge", (day, Literal(first, DATE)), BOOLEAN)
            if last is not None:
                term = Call("and", (term, Call("le", (day, Literal(last, DATE)), BOOLEAN)), BOOLEAN)
            found.append(term)
        while len(found) > 1:  # as flat as can be
            pairs = [found[at : at + 2] for at in range(0, len(found), 2)]
            found = [Call("or", (pair[0], pair[1]), BOOLEAN) if len(pair) > 1 else pair[0] for pair in pairs]
        return found[0] if found else Literal(False, BOOLEAN)


def canonical(spans: Iterable[Span]) -> tuple[Span, ...]:
    """The same days in order, in as few spans as possible."""
    found: list[Span] = []
    for first, last in sorted(spans, key=lambda span: span[0]):
        if found and (found[-1][1] is None or first <= found[-1][1] + DAY):
            before = found[-1][1]
            found[-1] = (found[-1][0], None if before is None or last is None else max(before, last))
        else:
            found.append((first, last))
    return tuple(found)


def common(some: Sequence[Span], others: Sequence[Span]) -> tuple[Span, ...]:
    """The days that both have."""
    found, mine, its = list[Span](), canonical(some), canonical(others)
    i = j = 0
    while i < len(mine) and j < len(its):
        (first, last), (start, stop) = mine[i], its[j]
        low = max(first, start)
        high = last if stop is None else stop if last is None else min(last, stop)
        if high is None or low <= high:
            found.append((low, high))
        if last is None or (stop is not None and stop < last):
            j += 1
        else:
            i += 1
    return canonical(found)


def beside(spans: Sequence[Span], others: Sequence[Span]) -> tuple[Span, ...]:
    """The days that the first have and the second have not."""
    gaps, free = list[Span](), dt.date.min
    for first, last in canonical(others):
        if first > free:
            gaps.append((free, first - DAY))
        if last is None or last == dt.date.max:
            return common(spans, gaps)
        free = last + DAY
    return common(spans, [*gaps, (free, None)])


def covers(spans: Sequence[Span], others: Sequence[Span]) -> bool:
    """Whether the second have no day that the first have not."""
    return common(spans, others) == canonical(others)


def words(spans: Sequence[Span]) -> str:
    """Days as notes and messages say them."""
    return ", ".join(
        f"from {first}" if last is None else str(first) if first == last else f"{first} … {last}"
        for first, last in spans
    )


@value(frozen=True, slots=True)
class Closed:
    """What the ledger says of a growing table's periods. through: the last closed day; None: no period is closed.

    reopened: days that were opened again, once for each time.
    """

    through: dt.date | None = None
    reopened: tuple[Span, ...] = ()

    def times(self, spans: Sequence[Span]) -> int:
        """How often any of these days was opened again."""
        return sum(bool(common(spans, (each,))) for each in self.reopened)
