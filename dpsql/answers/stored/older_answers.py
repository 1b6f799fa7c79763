"""Answers that a dpsql of older rules stored: which these are, and what users are told of them, once each.

A number's address names the rules that measured it (`RULES`), so that no answer of older rules is given for a question
of today's. The first run of a dpsql with new rules stores a line; what stands before it is older. It is one line for
each version, so a later one finds both.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime

from dpsql.answers.stored.address import RULES
from dpsql.answers.stored.store.store import AnswerStore
from dpsql.diagnostics.errors import CannotOpen
from dpsql.diagnostics.note import Note, Rank

_NOW = f"rules {RULES}"


def begun(store: AnswerStore) -> None:
    """What is stored from now on is of today's rules. Raises CannotOpen."""
    store.mark(_NOW)


def told_once(store: AnswerStore, analyst: str, received: Callable[[], Collection[str]]) -> tuple[Note, ...]:
    """What an analyst is told at his first run under today's rules; nothing later, nor where all that he has is given.

    received: the ids of the answers that he has paid for. A store that cannot be written now tells another time.
    """
    try:
        begun(store)
        if not store.mark(f"{_NOW}, told {analyst}"):
            return ()
        of_all = store.before(_NOW)
        own = received() if of_all else ()
        older = [at for name, at in of_all.items() if name in own]
    except CannotOpen:
        return ()
    return (note(older),) if older else ()


def in_all(store: AnswerStore) -> tuple[Note, ...]:
    """What a custodian is told of all answers, whenever he looks; nothing before the first run under today's rules, nor
    of a store that cannot be read: a ledger is looked at without it.
    """
    try:
        older = list(store.before(_NOW).values())
    except CannotOpen:
        return ()
    return (note(older),) if older else ()


def to_come(store: AnswerStore) -> tuple[Note, ...]:
    """What a custodian is told before the first run under today's rules, of a store that has answers; then nothing."""
    try:
        older = list(store.before(_NOW, or_all=True).values())
        begun_already = bool(store.before(_NOW)) or not older
    except CannotOpen:
        return ()
    return () if begun_already else (note(older),)


def note(older: Collection[datetime]) -> Note:
    """Which answers are not given again, and which are. older: when each was made; not empty."""
    one = len(older) == 1
    return Note(
        f"{len(older)} stored {'answer' if one else 'answers'}, up to {max(older):%Y-%m-%d}, "
        f"{'was' if one else 'were'} measured by an older dpsql and {'is' if one else 'are'} not given again: who asks "
        "again pays again; those of this version are given again; what was spent stays spent",
        Rank.DANGER,
    )
