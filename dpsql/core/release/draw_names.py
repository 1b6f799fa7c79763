"""What the noise of a run is called before it is drawn: ids that state the price of each number (ledger/paid.py)."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from fractions import Fraction

from dpsql.core.analysis.period_parts import PeriodPart
from dpsql.core.ledger.losses.regions import of_days
from dpsql.core.ledger.paid import Terms, draw_from, named
from dpsql.core.noise.measurement import MeasuredRelease
from dpsql.core.noise.mechanisms import Calibrated
from dpsql.core.privacy_loss import NO_LOSS
from dpsql.core.release.noisy import GivenAnswers, wanted
from dpsql.core.release.planned import PlannedRelease

Ids = Mapping[tuple[int, ...], str]
"""(release, component) → the id of the noise that will be drawn for it; (release, component, part) of one in parts."""


def terms_of(measured: MeasuredRelease, place: int, part: PeriodPart | None = None) -> Terms:
    """What is known of the noise of a component before it is drawn. part: of it alone, which only its days lose."""
    losses = {unit: measured.loss_of(place, unit) for unit in measured.contributions}
    decided = measured.threshold if place == measured.node.threshold else None
    noise = measured.measurements[place].mechanism
    assert isinstance(noise, Calibrated)
    read = {u: measured.days(u) if part is None else part.days for u in losses}
    regions = {u: of_days(days, loss) for u, loss in losses.items() if (days := read[u]) and loss != NO_LOSS}
    return Terms(
        noise.name,
        noise.parameter,
        losses,
        measured.conversion_delta if any(loss.rho for loss in losses.values()) else Fraction(0),
        None if decided is None else (decided.threshold, decided.r, decided.g, decided.delta),
        regions,
    )


def ids_of(releases: Sequence[PlannedRelease], given: Sequence[GivenAnswers], data: str) -> Ids:
    """Of all that is not given. data: what the data are, for the names of all draws."""
    return {
        (at, *place): name
        for at, (release, own) in enumerate(zip(releases, given, strict=True))
        for place, name in _names(release.measured, own, data).items()
    }


def _names(measured: MeasuredRelease, given: GivenAnswers, data: str) -> dict[tuple[int, ...], str]:
    """Those of one slice set have one draw, and no others: what was drawn together may be received together.

    The periods of one draw are places in it: each has an id, and a price that its own days lose.
    """
    sets = [(each.members, uuid.uuid4().hex) for each in measured.node.slices]
    draws = {i: next((draw for own, draw in sets if i in own), uuid.uuid4().hex) for i in wanted(measured, given)}
    split, many = measured.parts, len(measured.measurements)
    if split is None:
        return {(i,): named(draw_from(draw, data), i, terms_of(measured, i)) for i, draw in draws.items()}
    return {
        (i, at): named(draw_from(draw, data), at * many + i, terms_of(measured, i, part))
        for i, draw in draws.items()
        for at, part in enumerate(split.parts)
    }
