"""Domains as lists of keys that are not written out."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Iterator, Sequence
from functools import cached_property
from hashlib import sha256
from itertools import chain, islice
from operator import eq
from typing import Any

from dpsql.core.ir.expressions import LiteralValue
from dpsql.core.ir.public_facts import Keys
from dpsql.core.values.value import Domain


class LazyKeys(Sequence[tuple[LiteralValue, ...]]):
    """A domain as one-column keys, without writing it out."""

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self.worked_out: dict[str, Any] = {}
        """What follows from this very object's keys, kept with them: those of an equal one may be TRUE for 1."""

    def __len__(self) -> int:
        return min(self.domain.size, sys.maxsize)  # far above any cap on keys

    def __getitem__(self, at):  # type: ignore[no-untyped-def]
        if isinstance(at, slice):
            return tuple(islice(self, *at.indices(len(self))))
        if at < 0:
            at += len(self)
        return (None,) if self.domain.null and at == len(self.domain.values) else (self.domain.values[at],)

    def __iter__(self) -> Iterator[tuple[LiteralValue, ...]]:
        # As the items one by one would be, a million of them in no time.
        return chain(zip(self.domain.values), ((None,),) if self.domain.null else ())

    @cached_property
    def run(self) -> tuple[LiteralValue, LiteralValue] | None:
        """The first and the last of consecutive integers or days, at least four; None of other keys."""
        return run_of(self.domain.values)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the repr of the keys as a tuple of tuples, without making those."""
        texts = list(map(repr, self.domain.keys()))
        # A tuple of one ends with a comma, and so does each key.
        written = "()" if not texts else f"(({texts[0]},),)" if len(texts) == 1 else f"(({',), ('.join(texts)},))"
        return sha256(written.encode()).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LazyKeys) and self.domain == other.domain

    def __hash__(self) -> int:
        return hash((len(self), self.domain.null))

    def __repr__(self) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:
        return f"LazyKeys({self.domain!r})"


class ListedKeys(tuple[LiteralValue, ...]):
    """The values of a measured list, one object for all plans over it: what follows from them is worked out once.

    *Claim.* What is kept for a plan is what this plan's own list gives. *Why.* It is kept with the very tuple, which
    never changes, and goes with it. *When it would be false.* Lists that are equal are not the same: 1 equals TRUE.
    *Tested by* tests/core/values/test_key_lists.py.
    """

    @classmethod
    def of(cls, keys: Sequence[tuple[LiteralValue, ...]]) -> ListedKeys:
        """Those of keys of one column, without NULL."""
        held = keys.worked_out if isinstance(keys, Keys) else {}
        found: ListedKeys | None = held.get("listed")
        if found is None:
            found = held["listed"] = cls([value for (value,) in keys if value is not None])
        return found

    @cached_property
    def lazy(self) -> dict[bool, LazyKeys]:
        """The list as keys, by whether NULL is one of them."""
        return {null: LazyKeys(Domain(self, null)) for null in (False, True)}


def lazy_keys(domain: Domain) -> LazyKeys:
    """A domain as keys: of a measured list the very same object each time."""
    return domain.values.lazy[domain.null] if isinstance(domain.values, ListedKeys) else LazyKeys(domain)


def run_of(values: Sequence[LiteralValue]) -> tuple[LiteralValue, LiteralValue] | None:
    """The first and the last of consecutive integers or days, at least four; None of other values."""
    if len(values) < 4:
        return None
    first, last = values[0], values[-1]
    if type(first) is int and type(last) is int and last - first + 1 == len(values):
        consecutive = set(map(type, values)) == {int} and all(map(eq, values, range(first, last + 1)))
    elif type(first) is dt.date and type(last) is dt.date and (last - first).days + 1 == len(values):
        days = range(first.toordinal(), last.toordinal() + 1)
        consecutive = all(type(v) is dt.date and v.toordinal() == day for v, day in zip(values, days, strict=True))
    else:
        return None
    return (first, last) if consecutive else None
