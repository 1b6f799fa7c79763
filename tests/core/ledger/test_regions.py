"""Losses by period, against dictionaries by day: sums, what is beyond, what is within, and their text."""

from __future__ import annotations

import datetime as dt
import json
import random
from fractions import Fraction

import pytest

from dpsql.core.ledger.accountant import cost
from dpsql.core.ledger.losses import regions
from dpsql.core.ledger.losses.regions import (
    LossSpan,
    Region,
    beyond,
    canonical,
    dearest,
    everywhere,
    pointwise,
    summed,
    within,
)
from dpsql.core.ledger.losses.sums import LossSums
from dpsql.core.privacy_loss import NO_LOSS, PrivacyLoss, compose, largest, remaining

FIRST = dt.date(2026, 1, 1)
DAYS = [FIRST + dt.timedelta(days=n) for n in range(12)]
PROBES = [dt.date(1, 1, 1), *DAYS, dt.date(9999, 12, 31)]
"""The first and the last stand for all that an open end has."""


def random_spans(draw: random.Random, most: int = 4) -> list[LossSpan]:
    found = []
    for _ in range(draw.randint(1, most)):
        a, b = sorted(draw.choices(DAYS, k=2))
        loss = PrivacyLoss(Fraction(draw.randint(0, 3), 10), Fraction(draw.randint(0, 2), 10**9))
        found.append(LossSpan(draw.choice([a, a, None]), draw.choice([b, b, None]), loss))
    return found


def on(day: dt.date, spans: list[LossSpan] | Region) -> PrivacyLoss:
    return compose(s.loss for s in spans if (s.first is None or s.first <= day) and (s.last is None or day <= s.last))


@pytest.mark.parametrize("seed", range(200))
def test_regions_are_what_dictionaries_by_day_say(seed: int) -> None:
    draw = random.Random(seed)
    spans, others = random_spans(draw), random_spans(draw)
    region, other = canonical(spans), canonical(others)
    for day in PROBES:
        mine, its = on(day, spans), on(day, others)
        assert (on(day, region), on(day, other)) == (mine, its)
        assert on(day, summed([region, other])) == mine + its
        assert on(day, beyond(region, other)) == remaining(mine, its)
        assert on(day, pointwise(largest, [region, other])) == largest([mine, its])
    assert dearest(region) == largest(on(day, spans) for day in PROBES)
    assert within(region, other) == all(on(day, spans).within(on(day, others)) for day in PROBES)
    assert canonical(region) == region and canonical(list(reversed(spans))) == region  # said in one way
    text = json.dumps(regions.write(region))
    assert not region or regions.read(json.loads(text)) == region


def test_neighbouring_days_of_one_loss_are_one_span() -> None:
    loss = PrivacyLoss(Fraction(1, 2))
    apart = [LossSpan(DAYS[0], DAYS[1], loss), LossSpan(DAYS[2], DAYS[5], loss)]
    assert canonical(apart) == (LossSpan(DAYS[0], DAYS[5], loss),)
    assert canonical([LossSpan(None, DAYS[1], loss), LossSpan(DAYS[2], None, loss)]) == everywhere(loss)
    assert canonical([LossSpan(DAYS[0], None, NO_LOSS)]) == ()


def test_the_price_of_a_day_is_of_what_reads_it_and_converted_once() -> None:
    parts = [
        (LossSpan(DAYS[0], DAYS[3], PrivacyLoss(rho=Fraction(1, 8))),),
        (LossSpan(DAYS[2], None, PrivacyLoss(rho=Fraction(1, 8))),),
    ]
    found = pointwise(lambda losses: cost("approx_dp", losses, Fraction(1, 10**6)), parts)
    one, two = (cost("approx_dp", [PrivacyLoss(rho=Fraction(1, 8))] * n, Fraction(1, 10**6)) for n in (1, 2))
    assert found == (LossSpan(DAYS[0], DAYS[1], one), LossSpan(DAYS[2], DAYS[3], two), LossSpan(DAYS[4], None, one))
    assert two.epsilon < 2 * one.epsilon


def test_a_span_that_ends_before_it_begins_is_none() -> None:
    with pytest.raises(ValueError, match="a span from"):
        LossSpan(DAYS[1], DAYS[0], PrivacyLoss(Fraction(1)))


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        '[["2026-01-02","2026-01-01",["1","0","0"]]]',
        '[["20260101",null,["1","0","0"]]]',
        '[["2026-W01-1",null,["1","0","0"]]]',
        '[["2026-01-01",null,["1e9","0","0"]]]',
        '[["2026-01-01",null,["1","0"]]]',
        '[["2026-01-01",null,["1","0","0"]],["2026-02-01",null,["1","0","0"]]]',
        '[["2026-02-01",null,["1","0","0"]],["2026-01-01","2026-01-02",["1","0","0"]]]',
        '[["2026-01-01","2026-01-31",["1","0","0"]],["2026-02-01",null,["1","0","0"]]]',
        '[["2026-01-01",null,["-1","0","0"]]]',
    ],
)
def test_what_write_never_writes_is_not_read(text: str) -> None:
    with pytest.raises((ValueError, TypeError)):
        regions.read(json.loads(text))


@pytest.mark.parametrize("seed", range(60))
def test_sums_are_those_of_each_day_whenever_they_are_asked_for(seed: int) -> None:
    """Also between charges: running sums that were made are kept up."""
    draw, sums, charged = random.Random(seed), LossSums(), list[LossSpan]()
    for _ in range(12):
        region = canonical(random_spans(draw))
        charged += region
        sums.add_anywhere(region) if region else None
        for _ in range(draw.randint(0, 2)):
            first, last = sorted(draw.choices(DAYS, k=2))
            days = [day for day in DAYS if first <= day <= last]
            assert sums.spent(*regions.bounds((first, last))) == largest(on(day, charged) for day in days)
    assert sums.by_day() == canonical(charged)


def test_many_days_apart_are_not_compared_with_each_other() -> None:
    """As many steps as there are days: a thousand days take what a thousand take."""
    days = [FIRST + dt.timedelta(days=2 * n) for n in range(1000)]
    region = regions.of_days([(day, day) for day in days], PrivacyLoss(Fraction(1)))
    assert len(region) == 1000 and summed([region, region])[-1].loss == PrivacyLoss(Fraction(2))
    assert regions.inside(region, region[3:5]) == region[3:5]
