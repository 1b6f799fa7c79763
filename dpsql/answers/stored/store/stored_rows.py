"""Stored answers as rows of text, the same in every database; each with a hash of its own.

A damaged answer is refused, never shown, nor counted for less than it cost. The hash has no key, and keeps nobody from
writing: that an answer is paid for, the ledger says (core/ledger/paid.py).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from fractions import Fraction
from json.encoder import encode_basestring_ascii

from dpsql.answers.stored.store.refusals import DAMAGED, unusable
from dpsql.answers.stored.store.stored_text import (
    read_fraction,
    read_integers,
    read_losses,
    read_shown,
    write_integers,
    write_shown,
)
from dpsql.core.ledger.paid import write_losses
from dpsql.core.ledger.released import StoredAnswer

COLUMNS = "id, address, numbers, mechanism, parameter, losses, conversion, made_at, shown, hash"
"""A row's columns, in its order."""


def row_of(a: StoredAnswer) -> tuple[str, ...]:
    """An answer as it is stored."""
    row = (
        a.id,
        a.address,
        write_integers(a.values),
        a.mechanism,
        str(a.parameter),
        write_losses(a.losses, a.regions),
        str(a.conversion),
        a.made_at.isoformat(),
        write_shown(a.shown),
    )
    return (*row, hash_of(row))


MARKS = "mark: "
"""How the addresses of lines begin that are no answers; those of answers are hashes."""
BEHIND_ALL = 2**62
"""The number of no row: it is behind all of them."""


def row_of_mark(name: str) -> tuple[str, ...]:
    """A line that is no answer, and found by nobody who looks for one."""
    named = MARKS + name
    return row_of(StoredAnswer(named, named, (), "none", Fraction(0), {}, Fraction(0), datetime.now(UTC)))


def answer_of(row: Sequence[str], place: object) -> StoredAnswer:
    """The answer of a row that is stored at `place`. Raises CannotOpen (DP407): it is damaged."""
    name, address, numbers, mechanism, parameter, losses, conversion, made_at, shown, stored = row
    try:
        if stored != hash_of(row[:-1]):
            raise ValueError
        dearest, regions = read_losses(losses)
        return StoredAnswer(
            name, address, read_integers(numbers), mechanism, read_fraction(parameter), dearest,
            read_fraction(conversion), datetime.fromisoformat(made_at), read_shown(shown), regions,
        )  # fmt: skip
    except (ValueError, TypeError, KeyError, AttributeError, ArithmeticError, RecursionError):
        raise unusable(place, f"the answer {str(name)[:40]!r} is damaged", DAMAGED) from None


def hash_of(row: Sequence[str]) -> str:
    """The hash of a row: of its other columns, in their order. TypeError for one that is not text."""
    found = hashlib.sha256()
    for place, text in enumerate(row):  # of json.dumps(list(row)), without making it: an answer may have megabytes
        found.update(b", " if place else b"[")
        found.update(encode_basestring_ascii(text).encode("ascii"))
    found.update(b"]")
    return found.hexdigest()
