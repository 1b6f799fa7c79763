"""Parts of texts that a projection would compute several times: columns of projections below it, for engines that
compute columns apart (`Dialect.computes_apart`).

A guard reads its argument twice, slices read theirs in every condition, and DuckDB computes each anew: 1.3 times a sum
of logarithms, 1.6 a pivot of ten (measured).

*Claim.* The columns are those of the texts without marks. *Why.* A part is printed as a mark, which no literal can
hold. A mark is written as its part where that is read once; else it names the column that is the part, of the same row;
no row comes or goes, and whatever is printed may be computed of every row, for it is total. *When it would be false.* A
mark of two parts; a part that reads a column which its projection does not hand on. *Tested by*
tests/core/printing/test_waist.py, tests/deep/core/printing/test_every_shape.py. Example: `SELECT ln(CASE WHEN o.a0 > 0
THEN o.a0 END) AS a0 FROM (SELECT x + 1 AS a0 FROM t) AS o`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from dpsql.core.ir.step_count import take
from dpsql.core.printing.expressions import Block

MARK = re.compile("(\0p\\d+\0)")
"""A NUL cannot occur in any literal."""
ALIAS = "o"


class RepeatedParts(dict[int, str]):
    """Columns of a block by their marks, and the parts that are printed of them, in the order of printing."""

    def __init__(self, columns: Mapping[int, str]) -> None:
        super().__init__()
        self._columns = columns
        self._bare = set[str]()
        self._marks: dict[str, str] = {}
        self._texts: dict[str, str] = {}
        self._lengths: dict[str, int] = {}
        self._kept = set[str]()

    def __missing__(self, uid: int) -> str:
        sql = self._columns[uid]  # of a block: there is no mark in it
        found = self[uid] = self._marks.setdefault(sql, f"\0p{len(self._marks)}\0")
        self._texts.setdefault(found, sql)
        self._lengths.setdefault(found, len(sql) - len(found))
        self._bare.add(found)
        return found

    def mark(self, sql: str) -> str:
        """What stands for a part until it is known how often it is read."""
        mark = self._marks.get(sql)
        if mark is None:
            mark = self._marks[sql] = f"\0p{len(self._marks)}\0"
            self._texts[mark] = sql
            self._lengths[mark] = len(sql) + sum(map(self._lengths.__getitem__, MARK.findall(sql))) - len(mark)
        return mark

    def keep(self, mark: str) -> None:
        """Make a column of a part, even if it is read once."""
        self._kept.add(mark)

    def length(self, sql: str) -> int:
        """How long it would be if each mark were written as its part."""
        return len(sql) + sum(map(self._lengths.__getitem__, MARK.findall(sql)))

    def placed(self, texts: list[str], block: Block) -> tuple[list[str], Block]:
        """The texts without marks, and the block that they read: its rows, with the columns that the texts ask for."""
        if len(self._bare) == len(self._texts):
            return [_with(sql, self._texts) for sql in texts], block
        level = self._levels(texts)
        written: dict[str, str] = {}
        for mark, sql in self._texts.items():  # a part comes after those that it is made of
            written[mark] = mark if mark in level or mark in self._bare else _with(sql, written)
        lists, names = [[_with(sql, written) for sql in texts]], []
        for at in range(1, max(level.values(), default=0) + 1):
            shown: dict[str, str] = {}
            lists[-1] = [_named(sql, shown) for sql in lists[-1]]
            lists.append([_with(self._texts[m], written) if level.get(m) == at else m for m in shown])
            names.append(shown)
        lists[-1] = [_with(sql, self._texts) for sql in lists[-1]]
        for shown, found in zip(reversed(names), reversed(lists), strict=False):
            take(1 + sum(map(len, found)) // 64)
            columns = ", ".join(f"{sql} AS {name}" for sql, name in zip(found, shown.values(), strict=True))
            block = Block(f"(SELECT {columns}\n{block.clause()}) AS {ALIAS}", (), block.names)
        return lists[0], block

    def _levels(self, texts: list[str]) -> dict[str, int]:
        """The parts that are columns, and which projection each is in: below all that read it."""
        read, above = Counter[str](), dict[str, int]()
        found: dict[str, int] = {}

        def reads(sql: str, at: int) -> None:
            for mark in MARK.findall(sql):
                read[mark] += 1
                above[mark] = max(at, above.get(mark, 0))

        for sql in texts:
            reads(sql, 0)
        for mark in reversed(self._texts):
            if read[mark] and mark not in self._bare:
                at = above[mark]
                if read[mark] > 1 or mark in self._kept:
                    at = found[mark] = at + 1
                reads(self._texts[mark], at)
        return found


def _with(sql: str, texts: Mapping[str, str]) -> str:
    pieces = MARK.split(sql)
    pieces[1::2] = map(texts.__getitem__, pieces[1::2])
    return "".join(pieces)


def _named(sql: str, shown: dict[str, str]) -> str:
    """With the name of a column for each mark, which becomes one of those shown."""
    pieces = MARK.split(sql)
    for i in range(1, len(pieces), 2):
        pieces[i] = f"{ALIAS}.{shown.setdefault(pieces[i], f'a{len(shown)}')}"
    return "".join(pieces)
