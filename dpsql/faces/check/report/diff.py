"""Two versions of a repository's queries, and of its policy, side by side: what the analysis says of each, and what is
worse now.

Queries are matched within their file by the name in a comment (`-- name: visits_by_ward`), then by their normalised
text, then by likeness and order; a file that was moved is found by its queries.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from dpsql.core.policy.policy import Policy
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.diagnostics.diagnostic import Span
from dpsql.faces.check.documents.document import Document
from dpsql.faces.check.documents.parameter_comments import given_in
from dpsql.faces.check.documents.parameter_values import Values, fingerprint
from dpsql.faces.check.examine.measures import ColumnMeasure, Measures, measures_of
from dpsql.frontend.text.split import split_text

Status = Literal["changed", "added", "removed", "newly refused", "newly accepted", "unchanged"]

_NAME = re.compile(r"(?:--|#|//|/\*)\s*name\s*:\s*([\w.-]+)", re.IGNORECASE)
_ALIKE, _ALIKE_ELSEWHERE = 0.5, 0.8
"""Least share of common words of two statements of a file, or of two files, that are taken for versions of one."""
_ROUNDING = 1 + 1e-9


@dataclass(frozen=True, slots=True)
class VersionedQuery:
    """One statement of one version. line: of the file, from 1. name: from its comment, or none. shape: see split.

    values: what it is checked with.
    """

    path: str
    line: int
    name: str
    text: str
    shape: str
    values: Values = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Side:
    """One version: its files by path, and the policy that they are checked against."""

    files: Mapping[str, Document]
    policy: Policy


@dataclass(frozen=True, slots=True)
class QueryPair:
    """A query in both versions, or in one; None: it is not there."""

    old: VersionedQuery | None
    new: VersionedQuery | None
    before: Measures | None
    after: Measures | None

    @property
    def query(self) -> VersionedQuery:
        """As it is now, else as it was."""
        found = self.new or self.old
        assert found is not None
        return found

    @property
    def status(self) -> Status:
        """What became of it."""
        if self.before is None:
            return "added"
        if self.after is None:
            return "removed"
        if self.before.refused != self.after.refused:
            return "newly refused" if self.after.refused else "newly accepted"
        return "unchanged" if self.before == self.after and not self.moved else "changed"

    @property
    def moved(self) -> bool:
        """Whether it is in another file now."""
        return self.old is not None and self.new is not None and self.old.path != self.new.path

    @property
    def worse(self) -> tuple[str, ...]:
        """What is worse now: that it is refused, or what of it has grown.

        A larger error counts only if the price has not fallen, which is what larger errors are the price of.
        """
        if self.after is None:
            return ()
        if self.after.refused:
            return () if self.before is not None and self.before.refused else ("refused",)
        if self.before is None or self.before.refused:
            return ()
        return tuple(dict.fromkeys(_grown(self.before, self.after)))


@dataclass(frozen=True, slots=True)
class Comparison:
    """Every query of both versions, in the order of files and lines. policy_changed: whether the policies differ."""

    pairs: tuple[QueryPair, ...]
    policy_changed: bool

    @property
    def shown(self) -> tuple[QueryPair, ...]:
        """Those of which something is to be said."""
        return tuple(pair for pair in self.pairs if pair.status != "unchanged")

    @property
    def worse(self) -> tuple[QueryPair, ...]:
        """Those that are worse now."""
        return tuple(pair for pair in self.pairs if pair.worse)


def compare(
    old: Side, new: Side, dialect: str = "duckdb", parameters: Values | None = None, search: bool | None = None
) -> Comparison:
    """Compare two versions. parameters: values beside those of comments, for both. search: whether limits are searched.

    Raises Rejected DP903 for an unknown dialect.
    """
    before, after = (list(_queries(side, dialect, parameters or {})) for side in (old, new))
    same_policy = old.policy == new.policy
    found = []
    for a, b in _matched(before, after):
        if a is not None and b is not None and same_policy and _same(a, b):
            found.append(QueryPair(a, b, _NOTHING, _NOTHING))
            continue
        left = None if a is None else measures_of(a.text, old.policy, dialect, a.values, search)
        right = None if b is None else measures_of(b.text, new.policy, dialect, b.values, search)
        found.append(QueryPair(a, b, left, right))
    found.sort(key=lambda pair: (pair.query.path, pair.query.line, pair.new is None))
    return Comparison(tuple(found), not same_policy)


_NOTHING = Measures()


def _same(one: VersionedQuery, other: VersionedQuery) -> bool:
    return one.text == other.text and fingerprint(one.values) == fingerprint(other.values)


def _queries(side: Side, dialect: str, parameters: Values) -> Iterator[VersionedQuery]:
    for path in sorted(side.files):
        document = side.files[path]
        parts = split_text(document.text, dialect)
        behind = 0
        given = given_in(document.text, parts, dialect, parameters)
        for part, values in zip(parts.statements, given.values, strict=True):
            names = [_NAME.match(c.text) for c in parts.comments if behind <= c.start < part.end]
            named = [match[1] for match in names if match is not None]
            line = document.source.position(document.placed(Span(part.start, part.end)).start)[0]
            yield VersionedQuery(path, line, named[0] if named else "", part.whole.text, part.shape, values)
            behind = part.end


# --- which query is which --------------------------------------------------------------------------------------------


def _matched(
    old: Sequence[VersionedQuery], new: Sequence[VersionedQuery]
) -> Iterator[tuple[VersionedQuery | None, VersionedQuery | None]]:
    """Each query of both sides once, beside its other version if it has one."""
    left, right = list(old), list(new)
    found: list[tuple[VersionedQuery, VersionedQuery]] = []

    def take(pairs: Iterable[tuple[VersionedQuery, VersionedQuery]]) -> None:
        for a, b in pairs:
            if any(a is x for x in left) and any(b is x for x in right):
                found.append((a, b))
                left[:] = [x for x in left if x is not a]
                right[:] = [x for x in right if x is not b]

    take(_equal(left, right, lambda q: (q.path, q.name) if q.name else None))
    take(_equal(left, right, lambda q: (q.path, q.shape)))
    take(_alike([q for q in left if not q.name], [q for q in right if not q.name], same_file=True))
    take(_alike(left, right, same_file=True))
    take(_equal(left, right, lambda q: q.name or None))
    take(_equal(left, right, lambda q: q.shape))
    gone, came = {q.path for q in old} - {q.path for q in new}, {q.path for q in new} - {q.path for q in old}
    take(_alike([q for q in left if q.path in gone], [q for q in right if q.path in came], same_file=False))
    yield from found
    yield from ((query, None) for query in left)
    yield from ((None, query) for query in right)


def _equal(
    left: Sequence[VersionedQuery], right: Sequence[VersionedQuery], key: Callable[[VersionedQuery], object]
) -> Iterator[tuple[VersionedQuery, VersionedQuery]]:
    """Pairs with the same key, in order; a key of None is none."""
    waiting: dict[object, list[VersionedQuery]] = {}
    for query in right:
        waiting.setdefault(key(query), []).append(query)
    for query in left:
        own = key(query)
        if own is not None and waiting.get(own):
            yield query, waiting[own].pop(0)


def _alike(
    left: Sequence[VersionedQuery], right: Sequence[VersionedQuery], same_file: bool
) -> Iterator[tuple[VersionedQuery, VersionedQuery]]:
    """Pairs that share most words, the most alike first; of equals those nearest in order."""
    rated, least = [], _ALIKE if same_file else _ALIKE_ELSEWHERE
    words = {id(q): re.findall(r"\w+|[^\w\s]", q.text.lower()) for q in (*left, *right)}
    for i, a in enumerate(left):
        for n, b in enumerate(right):
            if same_file and a.path != b.path:
                continue
            matcher = difflib.SequenceMatcher(None, words[id(a)], words[id(b)], autojunk=False)
            if matcher.real_quick_ratio() >= least and matcher.quick_ratio() >= least:
                ratio = matcher.ratio()
                if ratio >= least:
                    rated.append((-ratio, abs(i - n), i, n))
    taken_left: set[int] = set()
    taken_right: set[int] = set()
    for _, _, i, n in sorted(rated):
        if i not in taken_left and n not in taken_right:
            taken_left.add(i)
            taken_right.add(n)
            yield left[i], right[n]


# --- what has grown --------------------------------------------------------------------------------------------------


def _grown(before: Measures, after: Measures) -> Iterator[str]:
    for unit, loss in after.cost.items():
        if not loss.within(before.cost.get(unit, PrivacyLoss())):
            yield f"cost of each {unit}"
    for unit, rows in after.rows.items():
        if rows > before.rows.get(unit, rows if before.searched else 0):
            yield f"rows per {unit}"
    yield from (f"bias: limit on {what}" for what in lower_limits(before, after))
    yield from (f"bias: bounds of {what}" for what in narrower_clips(before, after))
    yield from (f"limit of {what}" for what in after.searched if what not in before.searched)
    cheaper = any(_less(after.cost.get(unit, PrivacyLoss()), loss) for unit, loss in before.cost.items())
    for name, (was, now) in columns_of(before, after).items():
        if was is None or now is None:
            continue
        if was.sensitivity is not None and now.sensitivity is not None and now.sensitivity > was.sensitivity:
            yield f"sensitivity of {name}"
        if not cheaper and was.error is not None and now.error is not None and now.error > was.error * _ROUNDING:
            yield f"expected error of {name}"


def lower_limits(before: Measures, after: Measures) -> list[str]:
    """What is limited now and was not, or less tightly: answers miss more. What was found before is not known."""
    unlimited = 0 if before.searched else 1
    return [what for what, most in after.limits.items() if most < before.limits.get(what, most + unlimited)]


def narrower_clips(before: Measures, after: Measures) -> list[str]:
    """What is clipped to ends within those of before."""
    both = ((what, before.clips[what], now) for what, now in after.clips.items() if what in before.clips)
    return [what for what, was, now in both if now[0] > was[0] or now[1] < was[1]]


def columns_of(before: Measures, after: Measures) -> dict[str, tuple[ColumnMeasure | None, ColumnMeasure | None]]:
    """Column → its measures before and after; in the order of what there is now."""
    names = dict.fromkeys([*after.columns, *before.columns])
    return {name: (before.columns.get(name), after.columns.get(name)) for name in names}


def _less(loss: PrivacyLoss, than: PrivacyLoss) -> bool:
    return loss.within(than) and loss != than
