"""What a reader of the result should know: what was clipped, what was bounded, which keys may be missing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Final

from dpsql.core.analysis.facts import Contribution, Facts
from dpsql.core.ir.components import (
    Component,
    LargestChoice,
    ListChoice,
    ModeChoice,
    OnGrid,
    ProductSum,
    QuantileChoice,
    SharedUnits,
)
from dpsql.core.ir.contributions import SATURATED, UnitTotal
from dpsql.core.ir.expressions import Call, Column, Expr, Literal, columns_of, walk
from dpsql.core.ir.nodes import BoundContributions, Join, Release, Scan, key_sources, keyed_by
from dpsql.core.ir.periods import words
from dpsql.core.ir.short_text import expression, identifier
from dpsql.core.ir.types import Kind
from dpsql.core.ir.walk import Tagged
from dpsql.core.measures.all_measures import rule
from dpsql.core.measures.largest import is_later_pick
from dpsql.core.noise.measurement import MeasuredRelease
from dpsql.core.numbers.cap import Finite
from dpsql.core.policy.policy import Policy
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.layout import one_line
from dpsql.diagnostics.note import Note, Rank, Topic
from dpsql.frontend.aggregates.formula import formula
from dpsql.frontend.aggregates.quantile import ends, ordered
from dpsql.planner.costs.expected_error import expected_error
from dpsql.planner.notes.enforced_limits import missed
from dpsql.planner.rewrites.rewrite_context import SHOWN_FIRST

BIAS: Final = Note("what lies beyond these bounds is missing: a bias, which no ± holds", Rank.BIAS, Topic.NUMBERS)
"""Of limits the intervals say themselves what they hold."""


def notes_of(releases: Sequence[MeasuredRelease], source: Source) -> tuple[Note, ...]:
    """What is said of them, with topics of `OF_RELEASES`, by the query and the policy alone. source: of the query."""
    found, biased = list[Note](), False
    for place, release in enumerate(releases):
        if release.empty:
            continue  # nothing was clipped or left out
        clips = [*_clips(release, source)]
        taken = [*_limits(release), *_own(release, source), *clips]
        found += [*_public(release), *taken, *_keys(release), *_choices(release), *off_told(release, place)]
        biased = biased or bool(clips)
    return (*dict.fromkeys(found), *([BIAS] if biased else []))


def off_told(release: MeasuredRelease, number: int, any_bounds: bool = False) -> Iterator[Note]:
    """How far what is chosen may be off: a number of rows, as a COUNT of them would count, or of units."""
    for output in release.node.outputs:
        if off := formula(output).off:
            (place,) = output.recipe.components
            own = release.node.components[place]
            error = expected_error(release, place, any_bounds=any_bounds)
            if error is not None and not is_later_pick(own):
                rows, name = math.ceil(error), output.column.name if isinstance(own, LargestChoice) else output.label
                said, lie = (f"1 {own.counted}", "lies") if rows == 1 else (f"{rows:,} {own.counted}s", "lie")
                told = f"{name}: at 95 %, {off.format(rows=said, lie=lie)}"
                yield Note(told, Rank.REMARK, Topic.OFF, number)


def copies_read(releases: Sequence[Tagged[Facts]], policy: Policy) -> Iterator[Note]:
    """Of which tables rows are missing, because they were read from a prepared copy."""
    for table in (policy.tables[name] for r in releases for name in missed(r.node, policy.tables)):
        assert table.max_rows_per_unit is not None
        most = table.max_rows_per_unit.rows
        kept = f"{most:,} row{'' if most == 1 else 's'}"
        yield Note(
            f"of each {table.unit} at most {kept} of {table.name} were kept when the data was prepared", Rank.BIAS
        )


def periods_read(releases: Sequence[Tagged[Facts]]) -> Iterator[Note]:
    """Which days of growing tables are read, and which others that the query asks for are not."""
    for release in releases:
        for below in release.walk():
            node = below.node
            if isinstance(node, Scan) and node.periods is not None:
                days = node.periods.days
                if days[-1][1] is None:
                    unknown = f"{node.table}: which periods are closed is not known here; only these are read"
                    yield Note(unknown, Rank.SOURCE)
                    continue
                missing = "".join(f"; {said}" for said in node.periods.missing)
                yield Note(f"of {node.table} {words(days)} is read{missing}", Rank.SOURCE)


def pairs_counted(releases: Iterable[Tagged[Facts]]) -> Iterator[Note]:
    """Where two private tables that both have many rows of a unit are joined, limits meant for rows are on pairs."""
    for release in releases:
        bounding = release.inputs[0]
        if isinstance(bounding.node, BoundContributions):
            for many in _many(bounding):
                yield Note(f"pairs of rows of {' and '.join(many)} are counted: limits are on pairs", Rank.BIAS)


def joined_releases(releases: Iterable[Tagged[Facts]]) -> Iterator[Note]:
    """Where private rows are joined with groups: whether the numbers of these are noisy."""
    for release in releases:
        for below in release.inputs[0].walk():
            joined = isinstance(below.node, Join) and not below.fact.public
            for side in (t for t in below.inputs if joined and t.fact.public):
                for inner in (t.node for t in side.walk()):
                    if isinstance(inner, Release) and inner.keys and inner.outputs:
                        what, of = ", ".join(o.label for o in inner.outputs), ", ".join(k.name for k in inner.keys)
                        noisy = f"{what} by {of} is released before private rows are joined with it: it is noisy"
                        yield Note(noisy, Rank.BIAS)


def _many(below: Tagged[Facts]) -> Iterator[list[str]]:
    """Tables at both sides of each such join."""
    waiting = [below]
    while waiting:
        below = waiting.pop()
        node = below.node
        if isinstance(node, Release):
            continue
        waiting += below.inputs[::-1]
        if isinstance(node, Join) and not node.kind.filters and not any(side.fact.public for side in below.inputs):
            left, right = below.inputs
            sides = (left, [e.left for e in node.equalities]), (right, [e.right for e in node.equalities])
            if all(_repeats(side.fact, ends) for side, ends in sides):
                yield [
                    ", ".join(sorted({t.node.table for t in side.walk() if isinstance(t.node, Scan)}))
                    for side, _ in sides
                ]


def _repeats(facts: Facts, ends: Sequence[Expr]) -> bool:
    """Whether several rows may agree on what is joined by."""
    most = facts.most_rows(frozenset(e.uid for e in ends if isinstance(e, Column)))
    return not isinstance(most, Finite) or most.value > 1


def drawn_by(noise: str) -> Iterator[Note]:
    """Who draws the noise, where it is not dpsql itself."""
    if noise == "opendp":
        yield Note("the noise is drawn by OpenDP, at scales rounded up to doubles", Rank.SOURCE)


def _public(release: MeasuredRelease) -> Iterator[Note]:
    """Numbers that follow from a public number of rows."""
    size = release.contribution.size
    if size is not None and any(m.known is not None for m in release.measurements):
        exact = f"the number of rows, {size:,}, is public: it is exact and free, and nothing is read for it"
        yield Note(exact, Rank.SOURCE, Topic.NUMBERS)
    read = (m.component for m in release.measurements if m.known is None and m.component.arguments)
    if any(c.counts_every_row for c in read):
        lower = "a row whose value cannot be computed counts as its lower end, for the number of rows is public"
        yield Note(lower, Rank.BIAS, Topic.NUMBERS)


def _clips(release: MeasuredRelease, source: Source) -> Iterator[Note]:
    """What is clipped, and the ends."""
    for m in release.measurements:
        c = m.component
        if isinstance(c, QuantileChoice) and (moments := ends(c)) is not None:
            text = expression(ordered(c)[0])
            yield _clip(text, text, ", ".join(moments))
        elif isinstance(c, OnGrid) and SATURATED not in (-c.lo, c.hi):
            for arg, low, high in clips_of(c):
                yield _clip(unclipped(arg), unclipped(arg, source), f"{_show(low)}, {_show(high)}")


def _clip(plain: str, told: str, between: str) -> Note:
    return Note(f"{told} is clipped to [{between}]", Rank.BIAS, Topic.CLIP, one_line(plain))


def clips_of(c: OnGrid) -> Iterator[tuple[Expr, Fraction, Fraction]]:
    """The arguments of a sum, each with the ends to which it is clipped, in its own unit."""
    for of in (c, c.times if isinstance(c, ProductSum) else None):
        if of is not None and columns_of(of.arg):
            yield of.arg, (of.lo + of.center) * of.grid, (of.hi + of.center) * of.grid


def unclipped(arg: Expr, source: Source | None = None) -> str:
    """The argument as a person would write it; of those rows alone in which something else is known, too.

    source: of the query, whose own words stand where columns of several tables have one name.
    """
    match arg:
        case Call(function="case", args=(Call(function="is_not_null"), then, Literal(value=None))):
            return unclipped(then, source)
        case Call(function="clip", args=(inner, *_)):
            return _as_written(inner, source)
        case _:
            return _as_written(arg, source)


def _as_written(expr: Expr, source: Source | None) -> str:
    found = {e.uid: e.name for e in walk(expr) if isinstance(e, Column)}
    if source is None or expr.span is None or len(set(found.values())) == len(found):
        return expression(expr)
    return source.text[expr.span.start : expr.span.end] or expression(expr)


def _own(release: MeasuredRelease, source: Source) -> Iterator[Note]:
    """Bounds that single aggregates bring."""
    group = " and group" if release.node.keys else ""
    for m in release.measurements:
        if m.component.of_unit is not None:
            told = _total_of_unit(m.component, m.component.of_unit, release, source)
            yield Note(told, Rank.BIAS, Topic.TOTAL)
        if m.component.per_group is not None:
            low, high = map(_show, m.component.per_group)
            what = "rows" if m.component.arg is None else unclipped(m.component.arg, source)
            told = f"{what} of each {release.unit}{group}: the total is clipped to [{low}, {high}]"
            yield Note(told, Rank.BIAS, Topic.TOTAL)


def _total_of_unit(c: Component, limit: UnitTotal, release: MeasuredRelease, source: Source) -> str:
    """What one unit may add in all groups together."""
    most = _show(limit.most * c.worth)
    if rule(c).adds_values:
        assert c.arg is not None
        shown = unclipped(c.arg, source)
        counted, noun = f"a total of {shown} up to {most}", f"totals of {shown}"
    else:
        noun = "different values" if rule(c).counts == "values" else "rows"
        counted = f"at most {most} {noun.removesuffix('s') if limit.most == 1 else noun}"
    if limit.norm == "l1" or not release.node.keys:
        return f"{counted} per {release.unit} counted"
    return f"{noun} per {release.unit} and group counted up to {most}: the root of their squares' sum over all groups"


def _choices(release: MeasuredRelease) -> Iterator[Note]:
    """Rows whose value is none of those that one is chosen from."""
    for c in release.node.components:
        if isinstance(c, ListChoice) and c.choices and not c.choices.covers and c.arg.type.kind is not Kind.BOOLEAN:
            what = expression(c.arg)
            other = f"rows with another value than these {len(c.choices.keys):,}"
            shown = f"MODE({what})" if isinstance(c, ModeChoice) else what
            yield Note(f"{other} do not count in {shown}", Rank.DANGER, Topic.OTHER_KEYS)


def _keys(release: MeasuredRelease) -> Iterator[Note]:
    """What becomes of rows whose group is not shown."""
    if release.threshold is not None:
        keys = ", ".join(identifier(k.name) for k in release.node.keys)
        least = release.shown_from
        shown = f"groups of {keys} are shown only where the noisy number of units reaches {least}"
        less = "less with more ε or a smaller max_groups_per_unit, none with a public list (domain)"
        if any(isinstance(c, SharedUnits) for c in release.node.components):
            shown += ", where a unit in K groups counts as 1/√K in each"
            less = "less with more ε, none with a public list (domain)"
        yield Note(f"{shown}: {less}", Rank.DANGER, Topic.THRESHOLD)
        if keyed_by(release.node).within:
            more = f"more groups of {keys} are listed than may be released; rows with other values are left out"
            yield Note(more, Rank.DANGER, Topic.THRESHOLD)
    for source in key_sources(release.node) or ():
        (first, *_) = source.positions
        key = release.node.keys[first]
        if not (source.covers or source.closed):
            other = f"rows with another {identifier(key.name)} than these {len(source.keys):,} are left out"
            if source.origin.startswith(SHOWN_FIRST):
                others = "groups of " + ", ".join(identifier(k.name) for k in release.node.keys)
                other = f"{others} beside the {len(source.keys):,} shown are left out: {source.origin}"
            yield Note(other, Rank.DANGER, Topic.OTHER_KEYS)


def _limits(release: MeasuredRelease) -> list[Note]:
    return [Note(told, Rank.BIAS, Topic.LIMIT) for told in _limits_in_words(release)]


def _limits_in_words(release: MeasuredRelease) -> list[str]:
    """The limits that take something away: not those that no id seems to be above."""
    b = release.node.input
    if not isinstance(b, BoundContributions):
        return []
    if all(_whole(c, b, release.contribution) for c in release.node.components):
        return []
    unit, found = release.unit, list[str]()
    groups = None if b.groups is None or not b.keys or b.few_groups or b.spare_groups else b.groups
    in_groups = f"at most {groups} group{'s' * (groups != 1)} per {unit}"
    own = [c.per_group is not None or c.of_unit is not None for c in release.node.components if rule(c).counts != "ids"]
    if (own and all(own) and b.rows is None) or not release.contribution.limits_rows:  # what each may add is said below
        return [] if groups is None else [f"{in_groups} counted"]
    rows, in_one = _counted(release, b.rows), _counted(release, b.per_group)
    if b.spare_rows:
        found += [] if groups is None or b.truncate_groups else [f"{in_groups} counted"]
    elif b.rows is not None:
        found.append(f"at most {rows} per {unit} counted")
    elif not b.keys or b.groups == 1:
        found.append(f"at most {in_one} per {unit} counted")
    elif groups is None:
        found.append(f"at most {in_one} per {unit} and group counted")
    else:
        found.append(f"{in_groups}, and {in_one} in each, counted")
    if b.truncate_groups and groups is not None:
        kept = "1 group" if groups == 1 else f"{groups} groups"
        found.append(f"only {kept} of each {unit} {'is' if groups == 1 else 'are'} kept")
    return found


def _whole(c: Component, bounding: BoundContributions, limits: Contribution) -> bool:
    """Whether no limit takes anything away: an id counts once in each group, a value once for each id and group."""
    counts = rule(c).counts
    if not bounding.few_groups or counts == "rows":
        return False
    return counts == "ids" or (c.values is not None and rule(c).kept(c, limits) == limits.most_groups * c.values)


def _counted(release: MeasuredRelease, most: int | None) -> str:
    """What a limit is on: of a COUNT(DISTINCT …) it is on the values that are counted."""
    counted = {rule(c).counts for c in release.node.components} - {"ids"}
    one, many = ("value", "different values") if counted == {"values"} else ("row", "rows")
    return f"1 {one}" if most == 1 else f"{most} {many}"


def _show(x: Fraction) -> str:
    return str(x.numerator) if x.denominator == 1 else f"{float(x):g}"
