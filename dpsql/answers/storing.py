"""What a measured release adds to the stored answers: names that state their terms, and answers under these names."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from fractions import Fraction

from dpsql.answers.address import Ground
from dpsql.answers.store.names import Terms, named
from dpsql.core.noise.measurement import MeasuredRelease
from dpsql.core.noise.mechanisms import AdditiveNoise
from dpsql.core.release.noisy import Given, NoisyRelease, wanted
from dpsql.core.release.released import Answer, ShownKeys


def names_of(measured: MeasuredRelease, given: Given, draw: str) -> dict[int, str]:
    """Component → the id of the noise that will be drawn for it. draw: a text for this draw alone, without dots."""
    return {i: named(draw, i, _terms(measured, i)) for i in wanted(measured, given)}


def _terms(measured: MeasuredRelease, place: int) -> Terms:
    losses = {unit: measured.loss_of(place, unit) for unit in measured.contributions}
    decided = measured.threshold if place == measured.node.threshold else None
    noise = measured.measurements[place].mechanism
    assert isinstance(noise, AdditiveNoise)
    return Terms(
        noise.name,
        noise.parameter,
        losses,
        measured.conversion_delta if any(loss.rho for loss in losses.values()) else Fraction(0),
        None if decided is None else (decided.threshold, decided.r, decided.g, decided.delta),
    )


def to_store(
    noisy: NoisyRelease, given: Given, ground: Ground, ids: Mapping[int, str], made_at: datetime
) -> list[Answer]:
    """The answers that a measured release adds. ids: component → id of its noise, as in the ledger's entry."""
    measured = noisy.planned.measured
    deciding = measured.node.threshold
    over = ""
    if deciding is not None:
        over = given.answers[deciding].id if deciding in given.answers else ids[deciding]
    found = []
    for i in wanted(measured, given):
        terms = _terms(measured, i)
        keys = None if terms.threshold is None else ShownKeys(noisy.keys, *terms.threshold)
        address = ground.address(measured.node.components[i], over) if keys is None else ground.address_of_keys()
        found.append(
            Answer(
                ids[i],
                address,
                noisy.columns[i],
                terms.mechanism,
                terms.parameter,
                terms.losses,
                terms.conversion,
                made_at,
                keys,
            )
        )
    return found
