"""What a search tells beside the limit: its octaves, and how much lies above the limit.

All of it is computed from released counts. How sure it is rests on one event, whose probability is at least the level:
no sum of counts from any key upwards is off by more than w. (Lévy's inequality: for independent symmetric Zᵢ,
P(some |Z_j + … + Z_n| > w) ≤ 2·P(|Z_1 + … + Z_n| > w).) Since it speaks of all keys at once, the limit may be chosen
by the same counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from dpsql.core.numbers.confidence import LEVEL
from dpsql.core.privacy_loss import NO_LOSS
from dpsql.diagnostics.layout import one_line
from dpsql.diagnostics.note import Note, Rank, Topic
from dpsql.planner.postprocessing.coverage import Covered, Units
from dpsql.planner.postprocessing.searches.octaves import Octaves, SearchResult, cut_part, what_is_cut

Number = int | float


@dataclass(frozen=True, slots=True)
class Octave:
    """Units whose total is above low and at most high (of negative values the other way round), as SQL has them.

    number: of units, noisy, so that it may be negative. width: its ± at 95 % confidence.
    """

    low: Number
    high: Number
    number: int
    width: int


@dataclass(frozen=True, slots=True)
class FoundLimit:
    """A limit that was found, and what it was read from.

    what: the SQL whose totals per unit, or the expression whose values, have the limit. unit: the privacy unit.
    limit: as SQL has it; (low, high) of values; None if nothing was found. beyond: about how many units lie beyond it,
    with ±; None where they were not counted apart. octaves: all that were counted, from the lowest.
    """

    what: str
    unit: str
    limit: Number | tuple[Number, Number] | None
    beyond: tuple[int, int] | None
    octaves: tuple[Octave, ...]


def bounds(found: Sequence[SearchResult], level: Fraction = LEVEL) -> tuple[FoundLimit, ...]:
    """The limits of an answer that were found, search by search. level: of each ±."""
    return tuple(_bound(f, level) for f in distinct(found))


def distinct(found: Sequence[SearchResult]) -> Sequence[SearchResult]:
    """Of searches that count the same and found the same, as those of an average and of a count may, one."""
    return tuple({(f.octaves.what, f.octaves.counts, f.limit): f for f in found}.values())


def search_notes(found: Sequence[SearchResult]) -> Iterator[Note]:
    """The same in plain words."""
    for f in distinct(found):
        yield from _notes(f)


def _notes(f: SearchResult) -> Iterator[Note]:
    o, what, unit = f.octaves, one_line(f.octaves.what), one_line(f.octaves.unit)
    paid = "" if f.loss == NO_LOSS else f" (search {f.loss}, kept for later queries)"
    match f.limit:
        case None:
            yield Note(f"no limit of {what} found{paid}", Rank.SOURCE)
            return
        case (low, high):
            yield Note(f"bounds of {what} found: {_shown(low, o)} to {_shown(high, o)}{paid}", Rank.SOURCE)
            where = f"outside the bounds of {what}" + ": they count as the nearest one" * o.ordered
        case limit:
            yield Note(f"limit of {what} found: {_shown(limit, o)} per {unit}{paid}", Rank.SOURCE)
            where = f"above the limit of {what}"
    number = beyond(o, f.limit)
    if not o.seen:
        wide = not isinstance(f.limit, int) and f.limit[1] - f.limit[0] > 1
        is_declared = f.by is None and (wide or f.limit == o.at_most)
        stands = "the declared limit stands" if is_declared else "the least one stands, whatever it cuts"
        stands = stands if f.by is None else f"that of {one_line(f.by.octaves.what)} stands"
        fewer = "" if is_declared else "; more ε sees fewer, more rows show more"
        told = f"{what}: no octave holds the {_units(o)} that the search can see; {stands}{fewer}"
        yield Note(told, Rank.BIAS if is_declared else Rank.DANGER)
    elif number is None:
        yield Note(f"how many {unit} units lie above the declared limit of {what} is not known", Rank.BIAS)
    else:
        cut_or_not = "" if o.ordered else " and were cut"
        yield Note(f"about {number[0]:,} ± {number[1]:,} {unit} units lie {where}{cut_or_not}", Rank.BIAS)
    if isinstance(f.limit, int) and not o.roots and any(cut := cut_part(o, f.limit)):
        # What is larger than the last octave's end was counted with it.
        most = "or more" if o.keys[-1] in o.seen else f"to {_shown(cut[1], o)}"
        told = f"about {_shown(cut[0], o)} {most} of {what} lies above the limit in total: it is not in the answer"
        yield Note(told, Rank.BIAS)


def reach_notes(found: Sequence[SearchResult]) -> Iterator[Note]:
    """Up to where intervals of what has these limits hold; or that they have no end to the side of what is cut."""
    reached: dict[str, list[str]] = {}
    for f in distinct(found):
        what, unit = one_line(f.octaves.what), one_line(f.octaves.unit)
        told = what_is_cut(f)
        if told is None:
            slowly = ", as large totals become rare only slowly" if f.octaves.goes_on else ""
            one = f"how much the limit of {what} cuts is unknown{slowly}: its interval has an end to one side only"
            yield Note(one, Rank.BIAS, Topic.ENDS)
        else:
            reached.setdefault(unit, []).append(f"{_shown(told.reach, told.octaves)} of {what}")
    for unit, amounts in reached.items():
        who = f"some {unit} has more than {' or '.join(amounts)} in all groups together"
        told_once = f"intervals are 95 % sure unless {who}, which no private answer can rule out"
        yield Note(told_once, Rank.BIAS, Topic.ENDS)


def found_coverage(found: Sequence[SearchResult]) -> Iterator[Covered]:
    """How many units lie above each limit that was found, for nothing."""
    for f in distinct(found):
        number = None if f.limit is None else beyond(f.octaves, f.limit)
        if number is None or not isinstance(f.limit, int):
            continue
        within = _rounded(sum(f.octaves.counts), f.octaves) - _rounded(_beyond(f.octaves, f.limit), f.octaves)
        words = f"a total of {one_line(f.octaves.what)} above {_shown(f.limit, f.octaves)}"
        cells = ((True,), number[0]), ((False,), within)
        yield Covered(f.octaves.unit, (words,), tuple(Units(k, n, (n - number[1], n + number[1])) for k, n in cells))


def beyond(octaves: Octaves, limit: int | tuple[int, int], level: Fraction = LEVEL) -> tuple[int, int] | None:
    """(number, ±) of units in octaves beyond a limit; None where it is the last one's end, and what lies above it was
    counted with it. Below 0 there is nothing: then the number is 0, and its ± holds what it held.
    """
    if isinstance(limit, int) and limit >= octaves.ends(octaves.keys[-1])[1]:
        return None
    # Of values both sides are outside, and each is a sum from one end.
    sides = 2 if octaves.signed else 1
    width = sides * _off(octaves, 1 - (1 - level) / sides)
    # Within an octave that the limit lies in, nobody knows: half of it, ± the other half.
    least, most = _beyond(octaves, limit), _beyond(octaves, limit, partly=True)
    return max(0, _rounded((least + most) // 2, octaves)), -(-(width + abs(most - least)) // octaves.weight)


def in_sql(number: int, octaves: Octaves) -> Number:
    """Integer units as a number of SQL."""
    worth = number * octaves.grid
    return worth.numerator if worth.denominator == 1 else float(worth)


def _bound(f: SearchResult, level: Fraction) -> FoundLimit:
    o = f.octaves
    width = -(-o.noise.half_width(level) // o.weight)
    cells = []
    for key, count in zip(o.keys, o.counts, strict=True):
        low, high = o.ends(key)
        cells.append(Octave(in_sql(low, o), in_sql(high, o), _rounded(count, o), width))
    limit = f.limit
    if limit is None:
        return FoundLimit(o.what, o.unit, None, None, tuple(cells))
    shown = in_sql(limit, o) if isinstance(limit, int) else (in_sql(limit[0], o), in_sql(limit[1], o))
    return FoundLimit(o.what, o.unit, shown, beyond(o, limit, level), tuple(cells))


def _beyond(octaves: Octaves, limit: int | tuple[int, int], partly: bool = False) -> int:
    """The counts of all octaves that lie beyond. partly: or whose high end does."""
    found = 0
    for key, count in zip(octaves.keys, octaves.counts, strict=True):
        low, high = octaves.ends(key)
        if isinstance(limit, int):
            outside = (high > limit) if partly else low >= limit
        else:
            outside = (high <= limit[0] and low < limit[0]) or (low >= limit[1] and high > limit[1])
        found += count if outside else 0
    return found


def _off(octaves: Octaves, level: Fraction) -> int:
    """w: what no sum of counts from any key upwards is off by more than."""
    return octaves.noise.half_width_of_sum(len(octaves.counts), 1 - (1 - level) / 2)


def _rounded(count: int, octaves: Octaves) -> int:
    return round(Fraction(count, octaves.weight))


def _units(octaves: Octaves) -> str:
    """How many units an octave must hold to be taken for real."""
    number = -(-octaves.threshold // octaves.weight)
    return f"{number:,} {one_line(octaves.unit)} unit{'s' * (number != 1)}"


def _shown(number: int, octaves: Octaves) -> str:
    found = in_sql(number, octaves)
    return f"{found:,}" if isinstance(found, int) else f"{found:,.6g}"
