"""What a reader of the result should know: what was clipped, what was bounded, which keys may be missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from dpsql.analysis.facts import Contribution
from dpsql.analysis.reach import reach
from dpsql.diagnostics.layout import one_line
from dpsql.measure.measured import MeasuredRelease
from dpsql.plan.components import Component, Measure
from dpsql.plan.expr import Call, Expr, columns_of
from dpsql.plan.nodes import BoundContributions, key_sources, keyed_by
from dpsql.plan.render import expression
from dpsql.types import Kind


def notes_of(releases: Sequence[MeasuredRelease]) -> tuple[str, ...]:
    """Notes in plain words; they depend on the query and the policy alone, never on data."""
    found: list[str] = []
    for release in releases:
        if release.empty:
            continue  # nothing was clipped or left out
        found += [*_public(release), *_limits(release), *_own(release), *_clips(release), *_keys(release)]
    return tuple(dict.fromkeys(map(one_line, found)))  # names of columns are the analyst's


def drawn_by(noise: str) -> tuple[str, ...]:
    """Who draws the noise, where it is not dpsql itself."""
    return ("the noise is drawn by OpenDP, at scales rounded up to doubles",) if noise == "opendp" else ()


def _public(release: MeasuredRelease) -> Iterator[str]:
    """Numbers that follow from a public number of rows."""
    size = release.contribution.size
    if size is not None and any(m.known is not None for m in release.measurements):
        yield f"the number of rows, {size:,}, is public: it is exact and free, and nothing is read for it"


def _clips(release: MeasuredRelease) -> Iterator[str]:
    for m in release.measurements:
        c = m.component
        if c.measure is Measure.SUM and c.arg is not None and columns_of(c.arg):
            low, high = (Fraction(end + c.center) * c.grid for end in (c.lo, c.hi))
            yield f"{_unclipped(c.arg)} is clipped to [{_show(low)}, {_show(high)}]"


def _unclipped(arg: Expr) -> str:
    """The argument as a person would write it."""
    return expression(arg.args[0] if isinstance(arg, Call) and arg.function == "clip" else arg)


def _own(release: MeasuredRelease) -> Iterator[str]:
    """Bounds that single aggregates bring."""
    group = " and group" if release.node.keys else ""
    for m in release.measurements:
        if m.component.per_group is not None:
            low, high = map(_show, m.component.per_group)
            what = "rows" if m.component.arg is None else _unclipped(m.component.arg)
            yield f"{what} of each {release.unit}{group}: the total is clipped to [{low}, {high}]"


def _keys(release: MeasuredRelease) -> Iterator[str]:
    """What becomes of rows whose group is not shown."""
    if release.threshold is not None:
        keys = ", ".join(k.name for k in release.node.keys)
        least = release.threshold.threshold
        yield f"groups of {keys} are shown only where the noisy number of units reaches {least}"
        if keyed_by(release.node).within:
            yield f"more groups of {keys} are listed than may be released; rows with other values are left out"
    for source in key_sources(release.node) or ():
        (first, *_) = source.positions
        key = release.node.keys[first]
        if not source.covers and key.type.kind is not Kind.BOOLEAN:
            yield f"rows with another {key.name} than the {len(source.keys):,} listed are left out"


def _limits(release: MeasuredRelease) -> list[str]:
    bounding = release.node.input
    if not isinstance(bounding, BoundContributions):
        return []
    if all(_whole(c, bounding, release.contribution) for c in release.node.components):
        return []
    unit = release.unit
    own = [c.per_group is not None for c in release.node.components if c.measure is not Measure.UNITS]
    if own and all(own) and bounding.rows is None:  # what each may contribute is said below
        counted = bounding.groups if bounding.keys and not bounding.few_groups else None
        return [] if counted is None else [f"at most {counted} groups per {unit} counted"]
    if bounding.rows is not None:
        found = [f"at most {_rows(bounding.rows)} per {unit} counted"]
    elif not bounding.keys or bounding.groups == 1:
        found = [f"at most {_rows(bounding.per_group)} per {unit} counted"]
    elif bounding.few_groups:
        found = [f"at most {_rows(bounding.per_group)} per {unit} and group counted"]
    else:
        found = [f"at most {bounding.groups} groups per {unit}, and {_rows(bounding.per_group)} in each, counted"]
    if bounding.truncate_groups:
        kept = "1 group" if bounding.groups == 1 else f"{bounding.groups} groups"
        found.append(f"only {kept} of each {unit} {'is' if bounding.groups == 1 else 'are'} kept")
    return found


def _whole(c: Component, bounding: BoundContributions, limits: Contribution) -> bool:
    """Whether no limit takes anything away: an id counts once in each group, a value once for each id and group."""
    if not bounding.few_groups or c.measure not in (Measure.UNITS, Measure.DISTINCT):
        return False
    return c.measure is Measure.UNITS or (
        c.values is not None and reach(c, limits).in_all == limits.most_groups * c.values
    )


def _rows(count: int | None) -> str:
    return "1 row" if count == 1 else f"{count} rows"


def _show(x: Fraction) -> str:
    return str(x.numerator) if x.denominator == 1 else f"{float(x):g}"
