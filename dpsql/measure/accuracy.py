"""Accuracy first: the least privacy loss that keeps intervals within asked widths, exact for both families of noise.

A mechanism's *rate* is what it costs per unit of sensitivity: 1/scale for Laplace noise (ε = rate·l1), 1/(2σ²) for
Gaussian noise (ρ = rate·l2²). A higher rate is less noise, so `half_width(confidence) ≤ w` holds from some rate on.
*Why:* P(|Z| ≤ w) grows with the rate, because both families have the likelihood ratio exp(-(rate - rate')·|z|^p), p = 1
or 2, which falls in |z|. The least such rate is found on a grid of `DIGITS` significant binary digits, so it is above
the true infimum by less than one part in 2^47; whether a rate holds is decided by the mechanism's own exact width, and
floating-point numbers only say where the search begins.

A query's components are independent, so each gets the least rate that its own columns ask for, and the query costs
their sum. What serves no named column (columns that were not named, the counts that decide on private keys) gets as
much as the least of those that do. Of both families the cheaper one is taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

from dpsql.analysis.facts import Facts
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.loss import pure_to_rho, rho_to_epsilon
from dpsql.measure.allocate import (
    LARGEST_CONVERTED,
    Family,
    MeasuredRelease,
    Prepared,
    Split,
    calibrated,
    prepare,
    splits,
)
from dpsql.measure.mechanisms import DiscreteGaussian, DiscreteLaplace
from dpsql.measure.request import Request
from dpsql.measure.scale import LARGEST_SCALE
from dpsql.measure.sensitivity import known
from dpsql.numbers.exact import log
from dpsql.numbers.normal import root, two_sided
from dpsql.plan.components import Component, Count, Output, Ratio, Sum
from dpsql.plan.walk import Tagged
from dpsql.policy.units import Accountant

_NOMINAL = Fraction(1)
"""Stands for the ε that is not known yet."""

DIGITS = 48
"""Significant binary digits of a rate."""

_HALF = 1 << (DIGITS - 1)


def meet(
    releases: Sequence[Tagged[Facts]], request: Request, errors: Mapping[int, Fraction], confidence: Fraction
) -> tuple[tuple[MeasuredRelease, ...], Request]:
    """Calibrate as `measure` does, at the least ε (ρ under zCDP) that meets every error asked for.

    request: its δ and accountant count. errors: number of an output column of a release → the largest half-width of its
    interval at this confidence, > 0.
    Returns what is measured, and the request with what it costs in place of ε and ρ.
    Raises Rejected: as `measure`; DP411 for columns whose error depends on the data, or that have none; DP410 for an
    error that no accepted noise is large enough for.
    """
    prepared = prepare(releases, {})
    widths = tuple(_widths(p, errors) for p in prepared)
    _require_noise(prepared, widths)
    found = []
    for split in splits(prepared, replace(request, epsilon=_NOMINAL, rho=None)):
        shares = _shares(prepared, widths, split.family, confidence)
        if shares is not None:
            own = replace(split, shares=shares)
            found.append((_price(own, request.accountant), own))
    priced = [(price, split) for price, split in found if price is not None]
    if not priced:
        raise _too_wide(prepared)
    price, cheapest = min(priced, key=lambda pair: pair[0])  # of equals the first: Laplace
    try:
        measured = calibrated(prepared, cheapest)
    except Rejected:  # DP410, of a column that was not named
        raise _too_wide(prepared) from None
    _require_met(measured, widths, confidence)
    if not price:
        return measured, replace(request, epsilon=_NOMINAL, rho=None)
    if request.accountant != "zcdp":
        return measured, replace(request, epsilon=price)
    same = root(2 * price).lo  # what a pure ε of the same price would be
    assert same is not None
    return measured, replace(request, epsilon=same, rho=price)


def _widths(p: Prepared, errors: Mapping[int, Fraction]) -> tuple[int | None, ...]:
    """For each component the widest half-width in its integer units; None if it serves no named column."""
    found: list[int | None] = [None] * len(p.node.components)
    for output in p.node.outputs:
        error = errors.get(output.column.uid)
        if error is None:
            continue
        at, unit = _noisy(p, output)
        if p.worst[at].l1:
            widest, earlier = math.floor(error / unit), found[at]
            found[at] = widest if earlier is None else min(earlier, widest)
    return tuple(found)


def _noisy(p: Prepared, output: Output) -> tuple[int, Fraction]:
    """The component whose noise is all the noise of this output, and what one of its units is worth there."""
    match output.recipe:
        case Count(component=i) | Sum(component=i):
            return i, _unit(p.node.components[i])
        case Ratio(sum=s, count=n) if not p.worst[n].l1:
            rows = known(p.node.components[n], next(iter(p.contributions.values()))) * _unit(p.node.components[n])
            return s, _unit(p.node.components[s]) / max(Fraction(1), rows)
        case _:
            raise reject(
                "DP411", f"the error of {output.label or output.column.name} depends on the data, "
                "so no ε can be planned for it", span=output.span,
                help=["select the SUM and the COUNT that it is made of, too, and name those in max_error",
                      "or give an ε, and look at the intervals of the answer"],
            )  # fmt: skip


def _unit(component: Component) -> Fraction:
    return component.worth / component.weight


def _require_noise(prepared: Sequence[Prepared], widths: Sequence[Sequence[int | None]]) -> None:
    """Refuses a wish that asks nothing of the noise there is. Raises Rejected DP411."""
    if any(width is not None for each in widths for width in each):
        return
    noisy = [p.node for p in prepared if any(s.l1 for s in p.worst)]
    if noisy:
        raise reject(
            "DP411", "max_error names only numbers that are exact, but the query measures others, too",
            span=noisy[0].span, help=["name a column of COUNT or SUM with noise, or give an ε"],
        )  # fmt: skip


def _shares(
    prepared: Sequence[Prepared], widths: Sequence[Sequence[int | None]], family: Family, confidence: Fraction
) -> tuple[tuple[Fraction, ...], ...] | None:
    """What each component has to cost: ε for Laplace noise, ρ for Gaussian noise. None if no noise is that large."""
    needs: list[list[Fraction | None]] = []
    for p, each in zip(prepared, widths, strict=True):
        own: list[Fraction | None] = []
        for worst, width in zip(p.worst, each, strict=True):
            rate = None
            if width is not None:
                rate = laplace_rate(width, confidence) if family == "laplace" else gaussian_rate(width, confidence)
                if rate is None:
                    return None
            size = Fraction(worst.l1) if family == "laplace" else worst.l2_squared
            own.append(None if rate is None else rate * size)
        needs.append(own)
    least = min((need for own in needs for need in own if need is not None), default=Fraction(0))
    return tuple(
        tuple(
            (least if need is None else need) if worst.l1 else Fraction(0)
            for need, worst in zip(own, p.worst, strict=True)
        )
        for own, p in zip(needs, prepared, strict=True)
    )


def _price(split: Split, accountant: Accountant) -> Fraction | None:
    """ε, or ρ under zCDP, of the unit that changes most in everything. None if it is beyond all conversion."""
    shares = [share for each in split.shares for share in each]
    whole = sum(shares, Fraction(0))
    if accountant == "zcdp":
        return sum(map(pure_to_rho, shares), Fraction(0)) if split.family == "laplace" else whole
    if split.family == "laplace":
        return whole
    return rho_to_epsilon(whole, split.conversion_delta) if whole <= LARGEST_CONVERTED else None


def _require_met(
    measured: Sequence[MeasuredRelease], widths: Sequence[Sequence[int | None]], confidence: Fraction
) -> None:
    """The finished mechanisms themselves, once more. Raises Rejected DP406."""
    for release, each in zip(measured, widths, strict=True):
        for m, width in zip(release.measurements, each, strict=True):
            if width is not None and m.mechanism.half_width(confidence) > width:
                raise reject(
                    "DP406", "the plan would miss the error that was asked for; nothing was run",
                    help=["please report this query: the planner contradicts itself"],
                )  # fmt: skip


def _too_wide(prepared: Sequence[Prepared]) -> Exception:
    return reject(
        "DP410", "no noise that is accepted is as large as the error asked for", span=prepared[0].node.span,
        help=["ask for a smaller error, or give an ε"],
    )  # fmt: skip


@lru_cache(maxsize=1024)
def laplace_rate(widest: int, confidence: Fraction) -> Fraction | None:
    """The least rate whose discrete Laplace noise has a half-width of at most `widest` integer units.

    None if the largest scale that is accepted is still narrower than asked. Raises ValueError for widest < 0, and
    unless 0 < confidence < 1.
    """
    _check(widest, confidence)
    # 2q^(w+1)/(1+q) = 1-c, solved for rate = -ln q by a few steps towards the fixed point.
    outside = _log_outside(confidence)
    rate = 1.0
    for _ in range(8):
        rate = (math.log(2) + outside - math.log1p(math.exp(-rate))) / (widest + 1)
    return _least(
        lambda r: DiscreteLaplace(1 / r).half_width(confidence) <= widest,
        Fraction(max(rate, 1e-300)),
        1 / LARGEST_SCALE,
    )


@lru_cache(maxsize=1024)
def gaussian_rate(widest: int, confidence: Fraction) -> Fraction | None:
    """As `laplace_rate`, of discrete Gaussian noise."""
    _check(widest, confidence)
    guess = two_sided(1 - confidence) / (2 * (widest + Fraction(1, 2)) ** 2)
    return _least(
        lambda r: DiscreteGaussian(1 / (2 * r)).half_width(confidence) <= widest, guess, 1 / (2 * LARGEST_SCALE**2)
    )


def _log_outside(confidence: Fraction) -> float:
    """-ln(1-c), near enough for a guess."""
    found = log(1 / (1 - confidence), 60)
    assert found.lo is not None
    return float(found.lo)


def _check(widest: int, confidence: Fraction) -> None:
    if widest < 0 or not 0 < confidence < 1:
        raise ValueError("a width is at least 0, and a confidence between 0 and 1")


def _least(holds: Callable[[Fraction], bool], guess: Fraction, lowest: Fraction) -> Fraction | None:
    """The least number of `DIGITS` binary digits, at least `lowest`, from which on `holds` holds; None if everywhere.

    holds: false up to some number and true above it. Steps away from the guess double until the change is enclosed.
    """
    first = _index(lowest) + (_at(_index(lowest)) < lowest)
    if holds(_at(first)):
        return None
    low, high, step = first, max(first + 1, _index(guess)), 1
    if holds(_at(high)):
        while (down := high - step) > first and holds(_at(down)):
            high, step = down, 2 * step
        low = max(down, first)
    else:
        while not holds(_at(high)):
            low, high, step = high, high + step, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(_at(middle)) else (middle, high)
    return _at(high)


def _at(index: int) -> Fraction:
    """The grid's numbers in order: m·2^e with 2^(DIGITS-1) ≤ m < 2^DIGITS."""
    exponent, digits = divmod(index, _HALF)
    return Fraction(digits + _HALF) * Fraction(2) ** exponent


def _index(x: Fraction) -> int:
    """The place of the greatest grid number ≤ x, for x > 0."""
    exponent = x.numerator.bit_length() - x.denominator.bit_length() - DIGITS
    scaled = x / Fraction(2) ** exponent
    while scaled >= 2 * _HALF:
        exponent, scaled = exponent + 1, scaled / 2
    while scaled < _HALF:
        exponent, scaled = exponent - 1, scaled * 2
    return exponent * _HALF + (math.floor(scaled) - _HALF)
