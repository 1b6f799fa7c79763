"""Accuracy first: the least privacy loss that keeps intervals within asked widths, exact for all families of noise.

A query's components are independent, so each gets the least that its own columns ask for (`least_rate.py`;
`accuracy_of_pairs.py` for sums of two components), and the query costs their sum. Those that cost the largest of their
losses together (`parallel_composition.py`) get all that one of them needs. What is chosen gets the least η that keeps
it within so many rows (`rank_error.py`), and so do the quantiles that it is put in order with. What serves no named
column (columns that were not named, the counts that decide on private keys) costs as much as the least of those that
do. Of both families the cheaper one is taken.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from dpsql.accuracy.accuracy_of_pairs import ComponentPair, Pricing, joint_shares
from dpsql.accuracy.least_rate import on_grid, place_of, rate_for, rate_of_sum
from dpsql.accuracy.rank_error import least_etas, rank_error
from dpsql.accuracy.widths import joint_width
from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.recipes import Output, Terms
from dpsql.core.ir.walk import Tagged
from dpsql.core.measures.all_measures import rule
from dpsql.core.noise.calibration import (
    LARGEST_CONVERTED,
    LossRequest,
    PreparedRelease,
    Split,
    calibrated,
    prepare,
    splits,
)
from dpsql.core.noise.measurement import MeasuredRelease
from dpsql.core.numbers.normal import root
from dpsql.core.policy.units import Accountant
from dpsql.core.privacy_loss import pure_to_rho, rho_to_epsilon
from dpsql.diagnostics.errors import Rejected, reject

_NOMINAL = Fraction(1)
"""Stands for the ε that is not known yet."""


def meet(
    releases: Sequence[Tagged[Facts]],
    request: LossRequest,
    errors: Mapping[int, Fraction],
    confidence: Fraction,
) -> tuple[tuple[MeasuredRelease, ...], LossRequest]:
    """Calibrate as `measure` does, at the least ε (ρ under zCDP) that meets every error asked for.

    request: its δ and accountant count. errors: number of an output column of a release → the largest half-width of its
    interval at this confidence, > 0; of a quantile or mode, how many rows it may be off.
    Returns what is measured, and the request with what it costs in place of ε and ρ.
    Raises Rejected: as `measure`; DP411 for columns whose error depends on the data, or that have none; DP410 for an
    error that no accepted noise is large enough for.
    """
    prepared = prepare(releases, {})
    wishes = tuple(_wished(p, errors, confidence) for p in prepared)
    _require_noise(prepared, wishes)
    found = []
    for split in splits(prepared, replace(request, epsilon=_NOMINAL, rho=None)):
        pricing = Pricing(split.family, confidence, request.accountant == "zcdp" and split.family.pure)
        shares = _shares(prepared, wishes, pricing, split)
        if shares is not None:
            own = replace(split, shares=shares)
            found.append((_price(prepared, own, request.accountant), own))
    priced = [(price, split) for price, split in found if price is not None]
    if not priced:
        raise _too_wide(prepared)
    price, cheapest = min(priced, key=lambda pair: pair[0])  # of equals the first: Laplace
    try:
        measured = calibrated(prepared, cheapest)
    except Rejected:  # DP410, of a column that was not named
        raise _too_wide(prepared) from None
    _require_met(measured, wishes, confidence)
    if not price:
        return measured, replace(request, epsilon=_NOMINAL, rho=None)
    if request.accountant != "zcdp":
        return measured, replace(request, epsilon=price)
    same = root(2 * price).lo  # what a pure ε of the same price would be
    assert same is not None
    return measured, replace(request, epsilon=Fraction(same), rho=price)


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a release's columns ask of its components.

    widths: for each component the widest half-width in its integer units; None if no named column is made of it alone.
    pairs: the narrowest wish for each sum whose columns have the noise of two components.
    counts: the components whose counts are added up in a column, with its widest half-width in their integer units.
    rows: for each named choice how many rows it may be off. etas: for each choice that this needs, the least η.
    """

    widths: tuple[int | None, ...]
    pairs: tuple[ComponentPair, ...]
    counts: tuple[tuple[tuple[int, ...], int], ...] = ()
    rows: Mapping[int, Fraction] = field(default_factory=dict)
    etas: Mapping[int, Fraction] = field(default_factory=dict)


def _wished(p: PreparedRelease, errors: Mapping[int, Fraction], confidence: Fraction) -> Wishes:
    """Raises Rejected DP411."""
    widths: list[int | None] = [None] * len(p.node.components)
    pairs: dict[tuple[int, int], ComponentPair] = {}
    counts: list[tuple[tuple[int, ...], int]] = []
    rows: dict[int, Fraction] = {}
    for output in p.node.outputs:
        error = errors.get(output.column.uid)
        if error is None:
            continue
        if (place := _chosen(p, output)) is not None:
            if p.worst[place].l1:
                rows[place] = min(error, rows.get(place, error))
            continue
        match _noisy(p, output):
            case ((_, worth), _, *_) as parts if _alike(p, parts):
                counts.append((tuple(i for i, _ in parts), math.floor(error / abs(worth))))
            case ((i, worth),):
                widest, earlier = math.floor(error / abs(worth)), widths[i]
                widths[i] = widest if earlier is None else min(earlier, widest)
            case ((i, one), (n, other)):
                known_wish = pairs.get((i, n))
                narrowest = error if known_wish is None else min(error, known_wish.error)
                pairs[i, n] = ComponentPair(i, n, (one, other), narrowest)
    return Wishes(tuple(widths), tuple(pairs.values()), tuple(counts), rows, _etas(p, rows, confidence))


def _chosen(p: PreparedRelease, output: Output) -> int | None:
    """The component of an output that is chosen; None of a number with noise."""
    return next((i for i in output.recipe.components if rule(p.node.components[i]).chosen), None)


def _etas(p: PreparedRelease, rows: Mapping[int, Fraction], confidence: Fraction) -> dict[int, Fraction]:
    """Choice → the least η of `DIGITS` binary digits that all named ones need of it."""
    found: dict[int, Fraction] = {}
    for place, most in rows.items():
        for i, eta in least_etas(p.node.components, place, confidence, most).items():
            near = place_of(eta)
            found[i] = max(found.get(i, Fraction(0)), on_grid(near + (on_grid(near) < eta)))
    return found


def _noisy(p: PreparedRelease, output: Output) -> Terms:
    """The components whose noise is the noise of this output, with what one of their units is worth there."""
    parts = output.recipe.noisy_terms(p.node.components, p.known)
    if parts is None:
        raise reject(
            "DP411", f"the error of {output.label or output.column.name} depends on the data, "
            "so no ε can be planned for it", span=output.span,
            help=[output.recipe.to_plan, "or give an ε, and look at the intervals of the answer"],
        )  # fmt: skip
    return tuple((i, worth) for i, worth in parts if p.worst[i].l1)


def _alike(p: PreparedRelease, parts: Terms) -> bool:
    """Whether all of them count the same, each of its own rows: what one of them needs they all need."""
    return len({(replace(p.node.components[i], filter=None), worth) for i, worth in parts}) == 1


def _require_noise(prepared: Sequence[PreparedRelease], wishes: Sequence[Wishes]) -> None:
    """Refuses a wish that asks nothing of the noise there is. Raises Rejected DP411."""
    named = (
        wish.pairs or wish.counts or wish.rows or any(width is not None for width in wish.widths) for wish in wishes
    )
    if any(named):
        return
    noisy = [p.node for p in prepared if any(s.l1 for s in p.worst)]
    if noisy:
        raise reject(
            "DP411", "max_error names only numbers that are exact, but the query measures others, too",
            span=noisy[0].span, help=["name a column with noise, or give an ε"],
        )  # fmt: skip


def _shares(
    prepared: Sequence[PreparedRelease], wishes: Sequence[Wishes], pricing: Pricing, split: Split
) -> tuple[tuple[Fraction, ...], ...] | None:
    """What each component has to cost: ε for what is priced purely, else ρ. None if no noise is that large."""
    needs = []
    for p, wish in zip(prepared, wishes, strict=True):
        own: dict[int, Fraction] = {}
        for i, widest in enumerate(wish.widths):
            if widest is not None:
                rate = rate_for(pricing.family, widest, pricing.confidence)
                if rate is None:
                    return None
                own[i] = rate * pricing.size(p, i)
        for parts, widest in wish.counts:
            rate = rate_of_sum(pricing.family, len(parts), widest, pricing.confidence)
            if rate is None:
                return None
            own |= {i: max(own.get(i, Fraction(0)), rate * pricing.size(p, i)) for i in parts}
        if wish.pairs:
            joint = joint_shares(p, wish.pairs, own, pricing)
            if joint is None:
                return None
            own |= joint
        for i, eta in wish.etas.items():
            try:
                loss = split.choice(eta).loss(Fraction(p.worst[i].l1), p.worst[i].l2_squared)
            except ValueError:
                return None
            own[i] = loss.epsilon or loss.rho
        needs.append(own)
    each = list(zip(prepared, needs, strict=True))
    squared = [[pricing.squared and not rule(c).chosen for c in p.node.components] for p in prepared]
    least = min(
        (
            pure_to_rho(x) if alone[i] else x
            for (_, own), alone in zip(each, squared, strict=True)
            for i, x in own.items()
        ),
        default=Fraction(0),
    )
    pure = Fraction(root(2 * least).lo or 0) if pricing.squared else least
    return tuple(
        tuple(p.together([own.get(i, pure if alone[i] else least) for i in range(len(p.worst))], max))
        for (p, own), alone in zip(each, squared, strict=True)
    )


def _price(prepared: Sequence[PreparedRelease], split: Split, accountant: Accountant) -> Fraction | None:
    """ε, or ρ under zCDP, of the unit that changes most in everything. None if it is beyond all conversion."""
    whole = Fraction(0)
    for p, own in zip(prepared, split.shares, strict=True):
        for parallel in p.parallel_groups:
            dearest = max(parallel, key=lambda i: own[i])
            pure = split.mechanism(p.node.components[dearest]).pure
            whole += pure_to_rho(own[dearest]) if accountant == "zcdp" and pure else own[dearest]
    if accountant == "zcdp":
        return whole
    if split.family.pure:
        return whole
    return rho_to_epsilon(whole, split.conversion_delta) if whole <= LARGEST_CONVERTED else None


def _require_met(measured: Sequence[MeasuredRelease], wishes: Sequence[Wishes], confidence: Fraction) -> None:
    """The finished mechanisms themselves, once more. Raises Rejected DP406."""
    for release, wish in zip(measured, wishes, strict=True):
        own = zip(release.measurements, wish.widths, strict=True)
        met = all(widest is None or m.noise.half_width(confidence) <= widest for m, widest in own)
        for pair in wish.pairs:
            parts = [(release.measurements[i], w) for i, w in zip((pair.sum, pair.count), pair.worth, strict=True)]
            met = met and joint_width(parts, confidence) <= pair.error
        for place, rows in wish.rows.items():
            met = met and rank_error(release.measurements, place, confidence) <= rows
        for places, widest in wish.counts:
            met = met and joint_width([(release.measurements[i], Fraction(1)) for i in places], confidence) <= widest
        if not met:
            raise reject(
                "DP406", "the plan would miss the error that was asked for; nothing was run",
                help=["please report this query: the planner contradicts itself"],
            )  # fmt: skip


def _too_wide(prepared: Sequence[PreparedRelease]) -> Exception:
    return reject(
        "DP410", "no noise that is accepted is as large as the error asked for", span=prepared[0].node.span,
        help=["ask for a smaller error, or give an ε"],
    )  # fmt: skip
