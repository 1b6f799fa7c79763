"""How many rows a choice may be off: a quantile, or a mode.

Claim: at most `rank_error` rows lie between the answer and the quantile, with this probability, whatever the data hold;
    also where several quantiles of the same values are put in order after they were chosen. So many rows, at most, has
    the answer of a mode less than the most frequent value.
Why: all options of a score above t weigh at most m·e^(-ηt) together, of m, and the best weighs 1. A row counts b times
    in a score of p = a/b, of a mode twice, times its weight: s = unit/η rows are one e-th.
    Let k quantiles p₁ < … < pₖ be put in order. If the i-th lies more than t rows too low, i answers do, so one of some
    pⱼ ≥ pᵢ. There are N > t/pᵢ rows then, or none could be so low. So it lies t + (pⱼ - pᵢ)·N > t·pⱼ/pᵢ rows below its
    own rank: each option does so with at most e^(-t·pⱼ/(pᵢ·sⱼ)). Likewise above, with 1 - p. An option is too low or
    too high, and at most k of the j are at either side: P ≤ m·k·e^(-t/s) for the largest s = sⱼ·pᵢ/pⱼ, or with 1 - p.
When it would be false: without k, as soon as two quantiles are put in order (all rows in the last cell); with the own s
    alone, where another of them has a smaller share; with the options of bounds that are not found yet.
Not proved: nothing private rests on it
Tested by: tests/accuracy/test_rank_error.py
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from dpsql.core.ir.components import Component, QuantileChoice
from dpsql.core.measures.all_measures import rule
from dpsql.core.measures.quantile import histograms
from dpsql.core.noise.measurement import Measurement
from dpsql.core.noise.mechanisms import Exponential
from dpsql.core.numbers.enclosures import log

_BITS = 64


def rank_error(
    measurements: Sequence[Measurement], place: int, confidence: Fraction, any_bounds: bool = False
) -> Fraction:
    """Of the choice at this place of a release, in rows; 0 of one that is known. any_bounds: see `scores`."""
    if measurements[place].known is not None:
        return Fraction(0)
    components = [m.component for m in measurements]
    rows = []
    for i, share in ordered_with(components, place).items():
        mechanism = measurements[i].mechanism
        assert isinstance(mechanism, Exponential)
        rows.append(share * measurements[i].unit / mechanism.eta)
    return scores(components, place, confidence, any_bounds) * max(rows)


def least_etas(
    components: Sequence[Component], place: int, confidence: Fraction, rows: Fraction
) -> dict[int, Fraction]:
    """Component → the least η at which the choice at this place is at most so many rows off, by `rank_error`."""
    score = scores(components, place, confidence)
    return {
        i: score * share * components[i].worth / components[i].weight / rows
        for i, share in ordered_with(components, place).items()
    }


def scores(components: Sequence[Component], place: int, confidence: Fraction, any_bounds: bool = False) -> Fraction:
    """η times the score that no choice exceeds, with this probability: ln(m·k/β), rounded up.

    any_bounds: of a quantile whatever the bounds of its values are.
    """
    own = components[place]
    options = own.cells if any_bounds and isinstance(own, QuantileChoice) else rule(own).options(own)
    before = sum(_p(components[i]) <= _p(own) for i in _alike(components, place))
    after = sum(_p(components[i]) >= _p(own) for i in _alike(components, place))
    found = log(options * max(before, after) / (1 - confidence), _BITS).hi
    assert found is not None
    return Fraction(found)


def ordered_with(components: Sequence[Component], place: int) -> Mapping[int, Fraction]:
    """Itself, and the quantiles that it is put in order with → how much of their own error can become its error."""
    p = _p(components[place])
    return {i: min(p / _p(components[i]), (1 - p) / (1 - _p(components[i]))) for i in _alike(components, place)}


def _alike(components: Sequence[Component], place: int) -> tuple[int, ...]:
    return next(numbers for numbers in histograms(components) if place in numbers)


def _p(c: Component) -> Fraction:
    return c.p if isinstance(c, QuantileChoice) else Fraction(1, 2)
