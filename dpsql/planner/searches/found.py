"""From the noisy numbers of searches to the limits that they speak for: public arithmetic, nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import assert_never

from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.core.release.noisy import NoisyRelease
from dpsql.diagnostics.diagnostic import Diagnostic, Source
from dpsql.diagnostics.errors import NothingFound
from dpsql.planner.postprocessing.searches.octaves import (
    Octaves,
    SearchResult,
    groups_of_private_keys,
    limit_of_sum,
    range_of_quantiles,
    range_of_values,
)
from dpsql.planner.searches.limits_to_search import LimitToSearch, Rule, SearchedLimit


def found_by(searched: SearchedLimit, noisy: NoisyRelease, cells: int) -> SearchResult:
    """What one search says. cells: of all searches of the query."""
    limit, measured = searched.limit, noisy.planned.measured
    (column,), (measurement,) = noisy.columns, measured.measurements
    first = noisy.keys[0][0]
    assert isinstance(first, int)
    octaves = Octaves(
        limit.label, limit.words, measured.unit, tuple(column), measurement.noise, cells, first,
        measurement.component.weight, limit.at_most, limit.grid, limit.norm == "l2",
        limit.rule is Rule.QUANTILE,
    )  # fmt: skip
    chosen: int | tuple[int, int] | None
    least: int | tuple[int, int] = 1
    match limit.rule:
        case Rule.SUM | Rule.GROUPS | Rule.AVERAGE:
            groups = groups_of_private_keys(octaves, 1, searched.threshold) if searched.threshold else 1
            chosen = limit_of_sum(octaves, groups * searched.noise, searched.largest)
        case Rule.RANGE:
            chosen, least = range_of_values(octaves, *limit.within), _least(*limit.within)
        case Rule.QUANTILE:
            chosen, least = range_of_quantiles(octaves, *limit.within), _least(*limit.within)
        case _:
            assert_never(limit.rule)
    return SearchResult(octaves, least if chosen is None and limit.unasked else chosen, measurement.loss)


def _least(low: int | None, high: int | None) -> tuple[int, int]:
    """Bounds that hold one step beside a declared end, or beside 0."""
    return (high - 1, high) if low is None and high is not None else (low or 0, (low or 0) + 1)


def bounded_by_larger(limits: Sequence[SearchedLimit], found: Sequence[SearchResult]) -> tuple[SearchResult, ...]:
    """The limits, none above that of what is at least as large for every unit; and that where nothing else was found.

    Any limit holds whatever it is, so that no privacy rests on it.
    """
    of_label = {f.octaves.label: f for f in found}
    bounded = []
    for searched, own in zip(limits, found, strict=True):
        for larger in map(of_label.__getitem__, searched.below):
            assert isinstance(own.limit, int | None) and isinstance(larger.limit, int | None)
            if larger.limit is None or larger.octaves.evidence.highest is None:
                continue
            if own.limit is None or own.octaves.evidence.highest is None or larger.limit < own.limit:
                own = replace(own, limit=larger.limit, by=larger)
        bounded.append(own)
    return tuple(bounded)


def nothing_found(
    limits: Sequence[SearchedLimit], found: Sequence[SearchResult], source: Source, loss: PrivacyLoss
) -> NothingFound:
    """The end of a query of which a search found nothing. It has been paid for, and its noisy numbers are told."""
    lacking = [(s.limit, f.octaves) for s, f in zip(limits, found, strict=True) if f.limit is None]
    missing = [octaves for _, octaves in lacking]
    told = Diagnostic(
        "DP212",
        " and ".join(f"no octave of {o.what} holds the {_units(o)} that the search can see" for o in missing),
        source,
        help=(
            "raise epsilon, ask of more rows or in fewer searches, or declare a limit",
            *dict.fromkeys(f"custodian: what holds where nothing is found:  {_cap(limit)}" for limit, _ in lacking),
        ),
        notes=(
            f"{loss} was charged; the noisy octaves are kept",
            *(f"{o.unit} units by octave of {o.what}, {o.first} to {o.keys[-1]}: {_counts(o)}" for o in missing),
            *(["a total of 0 is in no octave"] if not all(o.signed for o in missing) else []),
        ),
    )
    return NothingFound([told])


def _cap(limit: LimitToSearch) -> str:
    """The lines of a policy under which a query is answered also where the search finds nothing."""
    rows, values = "max_rows_per_unit: {search: true, at_most: 1000}", "bounds: {search: true, within: [0, 100]}"
    if limit.rule.of_values:
        return values
    return f"{values}  and  {rows}" if limit.what.startswith("SUM(") else rows


def _units(octaves: Octaves) -> str:
    number = -(-octaves.threshold // octaves.weight)
    return f"{number:,} {octaves.unit} unit{'s' * (number != 1)}"


def _counts(octaves: Octaves) -> str:
    return ", ".join(str(round(Fraction(count, octaves.weight))) for count in octaves.counts)
