"""A note: what the reader of an answer should know, in one line, with how much it weighs and what it is about.

Whoever shows notes shows their words; whoever has to choose among them asks for rank and topic, never for words.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, IntEnum
from typing import Final

from dpsql.diagnostics.layout import one_line


class Rank(IntEnum):
    """How much a note weighs: those of the first rank are shown first."""

    DANGER = 0
    """The answer is not what it seems: rows are left out, or nothing of it is real, or it will be forgotten."""
    BIAS = 1
    """What limits and bounds take away: first what has no interval, or one end of it alone."""
    SOURCE = 2
    """Where numbers come from, and how they are made."""
    REMARK = 3

    @property
    def word(self) -> str:
        """As data has it."""
        return self.name.lower()


class Topic(Enum):
    """What a note is about, where a program asks for it."""

    LIMIT = "how much one unit may contribute"
    TOTAL = "what one unit may add to one number"
    CLIP = "what is clipped; `of` is what, in no query's own words"
    THRESHOLD = "from which number of units on groups are shown"
    OTHER_KEYS = "rows whose group is not listed"
    OFF = "how far what is chosen may be off; `of` is the place of its release"
    NUMBERS = "anything else that is said of released numbers"
    CLOCK = "when the query is asked; `of` is what asks for it"
    NOTHING_RAN = "that nothing was run and nothing was spent"
    PRICE = "what an answer cost, and what is left"
    WIDTH = "the ± of a column"
    LATER = "what is known of a limit before it is found"
    GAP = "that numbers have no interval, because a limit cuts them"
    ENDS = "which ends of intervals limits take away, or up to where they hold"


OF_RELEASES = frozenset(
    {Topic.LIMIT, Topic.TOTAL, Topic.CLIP, Topic.THRESHOLD, Topic.OTHER_KEYS, Topic.OFF, Topic.NUMBERS}
)
"""What is said of releases: anew of those that were drawn, in place of those that were planned."""


class Note(str):
    """The words, in one line. rank: how much they weigh. topic, of: what they are about; None where nobody asks."""

    __slots__ = ("of", "rank", "topic")
    rank: Rank
    topic: Topic | None
    of: str | int | None

    def __new__(
        cls, text: str, rank: Rank = Rank.REMARK, topic: Topic | None = None, of: str | int | None = None
    ) -> Note:
        """text: names in it may be the analyst's."""
        self = super().__new__(cls, one_line(text))
        self.rank, self.topic, self.of = rank, topic, of
        return self

    def __getnewargs__(self) -> tuple[str, Rank, Topic | None, str | int | None]:  # type: ignore[override]
        return str(self), self.rank, self.topic, self.of


NOTHING_RAN: Final = Note("nothing was run and nothing was spent", topic=Topic.NOTHING_RAN)
"""Of a refusal that says so itself, where its code alone would not."""


BESIDE_NOTES: Final = frozenset({Topic.PRICE, Topic.WIDTH})
"""What is told of every answer, and is none of its notes."""
_FIRST: Final[dict[Topic | None, int]] = {Topic.GAP: 0, Topic.ENDS: 1}
"""Of one rank."""
MOST_TOLD: Final = 3
"""Lines beside an answer: more are read by nobody who did not ask for them."""


def in_order(notes: Iterable[Note]) -> tuple[Note, ...]:
    """Each once, dangers first; within a rank what is said of intervals, then as they are said."""
    return tuple(sorted(dict.fromkeys(notes), key=lambda note: (note.rank, _FIRST.get(note.topic, len(_FIRST)))))


def foremost(notes: Iterable[Note]) -> tuple[tuple[Note, ...], int]:
    """What is shown beside an answer, all dangers among it, and how many more there are."""
    found = in_order(notes)
    most = max(MOST_TOLD, sum(note.rank is Rank.DANGER for note in found))
    return found[:most], len(found[most:])


def note_records(notes: Iterable[Note]) -> list[dict[str, str]]:
    """As data has them: `{"rank": "danger", "text": …}`."""
    return [{"rank": note.rank.word, "text": str(note)} for note in notes]
