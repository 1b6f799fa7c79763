"""Answers that an account was given before, for when it asks again: a tool that draws a page asks the same each time.

*Claim.* What is given again is what answering anew would give. *Why.* The plan is made and the ledger and the stored
answers are read for every statement; only what follows, arithmetic on a plan and on numbers that the account holds, is
left out, where both are equal to those of the answer that is kept. No answer that depends on a table's rows is kept.
*When it would be false.* If that arithmetic looked at anything else; if equal plans could be post-processed in two
ways. What is kept depends on the account's own statements alone: how fast it is tells nobody else of them. *Tested by*
tests/faces/server/test_kept_answers.py.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from dpsql.answers.stored.resolve import Resolution
from dpsql.faces.server.statements import Answer, StatementSettings

MOST_ANSWERS: Final = 128
MOST_CELLS: Final = 200_000
"""Values of all answers kept, one answer apart."""

_Key = tuple[str, str, StatementSettings]


@dataclass(frozen=True, slots=True)
class _Kept:
    found: Resolution
    answer: Answer
    cells: int


class KeptAnswers:
    """The answers given last, a bounded number of them."""

    def __init__(self) -> None:
        self._kept: OrderedDict[_Key, _Kept] = OrderedDict()
        self._cells = 0

    def get(self, account: str, found: Resolution, settings: StatementSettings) -> Answer | None:
        """The answer to what was looked up for an account, with these settings; None if it has to be made."""
        key = (account, found.plan.hash, settings)
        kept = self._kept.get(key)
        if kept is None or found.reads_tables or not kept.found.gives_the_same(found):
            return None
        self._kept.move_to_end(key)
        return kept.answer

    def keep(self, account: str, found: Resolution, settings: StatementSettings, answer: Answer) -> None:
        """Keep an answer, in place of an older one to the same."""
        if found.reads_tables or found.account is None:
            return
        key = (account, found.plan.hash, settings)
        cells = len(answer.columns) * len(answer.rows)
        self._forget(key)
        self._kept[key] = _Kept(found, answer, cells)
        self._cells += cells
        while len(self._kept) > MOST_ANSWERS or (len(self._kept) > 1 and self._cells > MOST_CELLS):
            self._forget(next(iter(self._kept)))

    def _forget(self, key: _Key) -> None:
        kept = self._kept.pop(key, None)
        self._cells -= 0 if kept is None else kept.cells
