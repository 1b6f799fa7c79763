"""Losses by period: what an answer costs the units of each period, as steps over the days.

A *region* is a sequence of spans in order, apart from each other, each with one loss above nothing; days outside lose
nothing. Two regions that say the same are equal. What is said of no period in particular is lost in every one, past and
future (`everywhere`).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Final

from dpsql.core.privacy_loss import NO_LOSS, PrivacyLoss, compose, largest, remaining

Days = tuple[dt.date | None, dt.date | None]
"""First and last day; None for an open end."""
ALWAYS: Final[Days] = (None, None)
BEGIN: Final = 0
END: Final = dt.date.max.toordinal() + 2
"""Open ends, as numbers of days: no date has them."""


@dataclass(frozen=True, slots=True)
class LossSpan:
    """The days from `first` to `last`, both included, and what each unit of any of them loses. None: no end.

    Raises ValueError: it ends before it begins.
    """

    first: dt.date | None
    last: dt.date | None
    loss: PrivacyLoss

    def __post_init__(self) -> None:
        if self.first is not None and self.last is not None and self.last < self.first:
            raise ValueError(f"a span from {self.first} to {self.last}")

    @property
    def bounds(self) -> tuple[int, int]:
        """Its first day, and the one behind its last, as numbers."""
        return bounds((self.first, self.last))


Region = tuple[LossSpan, ...]


def bounds(days: Days) -> tuple[int, int]:
    """The first day, and the one behind the last, as numbers."""
    first, last = days
    return BEGIN if first is None else first.toordinal(), END if last is None else last.toordinal() + 1


def everywhere(loss: PrivacyLoss) -> Region:
    """A loss that counts in every period."""
    return (LossSpan(None, None, loss),)


def between(start: int, stop: int, loss: PrivacyLoss) -> LossSpan:
    """A loss of the days from one number to before another."""
    first = None if start == BEGIN else dt.date.fromordinal(start)
    return LossSpan(first, None if stop == END else dt.date.fromordinal(stop - 1), loss)


def pointwise(combine: Callable[[Sequence[PrivacyLoss]], PrivacyLoss], regions: Sequence[Region]) -> Region:
    """On each day what `combine` makes of what each region loses there, for days on which any of them does."""
    if all(len(region) == 1 and region[0].first is region[0].last is None for region in regions):
        loss = combine([region[0].loss for region in regions])
        return () if loss == NO_LOSS else everywhere(loss)
    found: list[tuple[int, int, PrivacyLoss]] = []
    for start, stop, losses in _steps(regions):
        loss = combine(losses)
        if found and found[-1][1:] == (start, loss):
            found[-1] = (found[-1][0], stop, loss)
        elif loss != NO_LOSS:
            found.append((start, stop, loss))
    return tuple(between(*each) for each in found)


def summed(regions: Sequence[Region]) -> Region:
    """What is lost on each day by all of them together."""
    return pointwise(compose, regions)


def canonical(spans: Iterable[LossSpan]) -> Region:
    """The region of spans that may overlap: on each day the sum."""
    found = sorted(spans, key=lambda span: span.bounds)
    if all(before.bounds[1] <= after.bounds[0] for before, after in pairwise(found)):
        return pointwise(compose, [tuple(found)])  # none overlaps
    return pointwise(compose, [(span,) for span in found])


def of_days(days: Sequence[Days] | None, loss: PrivacyLoss) -> Region:
    """What each period loses where these days lose it, and no others do. days: None for all."""
    return everywhere(loss) if days is None else canonical(LossSpan(first, last, loss) for first, last in days)


def dearest(region: Region) -> PrivacyLoss:
    """The largest ε, δ and ρ that any day loses, each by itself."""
    return region[0].loss if len(region) == 1 else largest(span.loss for span in region)


def within(region: Region, limit: Region) -> bool:
    """Whether no day loses more than it does by `limit`."""
    return all(loss.within(most) for _, _, (loss, most) in _steps((region, limit)))


def beyond(region: Region, part: Region) -> Region:
    """What is lost on each day besides a part."""
    return pointwise(lambda losses: remaining(*losses), (region, part)) if part else region


def inside(region: Region, part: Region) -> Region:
    """What is lost on the days of a part."""
    return pointwise(lambda losses: losses[0] if losses[1] != NO_LOSS else NO_LOSS, (region, part))


def on_grid(region: Region) -> Region:
    """As `PrivacyLoss.on_grid`, on each day."""
    own = region if len(region) == 1 else canonical(region)
    return pointwise(lambda losses: losses[0].on_grid(), [own]) if own else ()


def words(days: Days) -> str:
    """Days as messages say them; nothing for every day."""
    first, last = days
    if first is None or last is None:
        return " ".join([*([f"from {first}"] if first else ()), *([f"until {last}"] if last else ())])
    return str(first) if first == last else f"{first} … {last}"


def _steps(regions: Sequence[Region]) -> Iterator[tuple[int, int, list[PrivacyLoss]]]:
    """Start and stop of each stretch of days on which no loss changes, with the loss of each region there."""
    placed = [[(*span.bounds, span.loss) for span in region] for region in regions]
    cuts = sorted({cut for spans in placed for start, stop, _ in spans for cut in (start, stop)})
    at = [0] * len(placed)
    for start, stop in pairwise(cuts):
        losses = []
        for n, spans in enumerate(placed):
            while at[n] < len(spans) and spans[at[n]][1] <= start:
                at[n] += 1
            begun = at[n] < len(spans) and spans[at[n]][0] <= start
            losses.append(spans[at[n]][2] if begun else NO_LOSS)
        yield start, stop, losses


# As text: [["2026-11-01", "2026-11-28", ["1/10", "0", "0"]]], null for an open end.


def write_loss(loss: PrivacyLoss) -> list[str]:
    """ε, δ and ρ, exactly."""
    return [str(Fraction(part)) for part in (loss.epsilon, loss.delta, loss.rho)]


def write(region: Region) -> list[list[object]]:
    """A region for JSON, in one way."""
    return [
        [None if day is None else day.isoformat() for day in (span.first, span.last)] + [write_loss(span.loss)]
        for span in region
    ]


@lru_cache(maxsize=256)
def read_loss(epsilon: str, delta: str, rho: str) -> PrivacyLoss:
    """What `write_loss` wrote. Raises ValueError, TypeError."""
    return PrivacyLoss(_read_fraction(epsilon), _read_fraction(delta), _read_fraction(rho))


def read(stored: Iterable[tuple[str | None, str | None, Sequence[str]]]) -> Region:
    """What `write` wrote. Raises ValueError, TypeError: it is none, or not in the one way."""
    region = tuple([LossSpan(_read_day(first), _read_day(last), read_loss(*parts)) for first, last, parts in stored])
    if not region or (len(region) > 1 and canonical(region) != region):
        raise ValueError("not a region")
    return region


@lru_cache(maxsize=4096)
def _read_day(text: str | None) -> dt.date | None:
    if text is None:
        return None
    day = dt.date.fromisoformat(text)
    if day.isoformat() != text:  # 2026-W48-7 is a date, too
        raise ValueError(text)
    return day


def _read_fraction(text: str) -> Fraction:
    """What `str` wrote of a Fraction. Any other form is refused: `1e999999999` would fill the memory."""
    above, slash, below = text.partition("/")
    return Fraction(int(above), int(below) if slash else 1)
