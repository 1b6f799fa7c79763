"""Weights of units by their groups: what they add up to, the threshold that they need, and plans that have no other."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dpsql.core.analysis.facts import Contribution
from dpsql.core.ir.components import RowCount, SharedUnits
from dpsql.core.ir.expressions import Literal
from dpsql.core.ir.nodes import BoundContributions, Release
from dpsql.core.ir.types import BOOLEAN
from dpsql.core.ir.well_formed import require_well_formed
from dpsql.core.measures.shared_units import steps
from dpsql.core.noise.mechanisms import DiscreteGaussian, DiscreteLaplace, KeyThreshold, delta_of
from dpsql.core.noise.sensitivity import Sensitivity, sensitivity
from dpsql.core.printing.forms.weights import over_shares
from dpsql.core.value_classes import replace
from dpsql.diagnostics.errors import Rejected
from dpsql.spelling.duckdb_functions import DUCKDB
from tests.support.planning import planned, policy


def weight(groups: int, f: int = 1024, most: int = 1000) -> int:
    return next(w for end, w in steps(f, most) if end >= groups)


@pytest.mark.parametrize("f", [1, 12, 1024])
def test_all_groups_of_a_unit_add_up_to_no_more_than_one(f: int) -> None:
    assert steps(f, 1000)[0] == (1, f) and steps(f, 1000)[-1][0] == 1000
    for k in range(1, 1001):
        assert k * weight(k, f) ** 2 <= f**2
        assert weight(k, f) >= weight(min(1000, k + 1), f)


def test_little_is_lost_and_few_numbers_are_written() -> None:
    assert all(weight(k) ** 2 * k * 10 > 1024**2 * 7 for k in range(1, 1001))
    assert [weight(k) for k in (1, 2, 3, 4)] == [1024, 724, 591, 512] and len(steps(1024, 1000)) < 60


@pytest.mark.parametrize("groups", [1, 3, 40, 1000])
@pytest.mark.parametrize("spread", [Fraction(1, 2), Fraction(8), Fraction(60)])
def test_the_least_threshold_for_every_number_of_groups(groups: int, spread: Fraction) -> None:
    """Of all K, those between two steps too: with the noise of few groups one decides, of wide noise many."""
    delta = Fraction(1, 10**6)
    for noise in (DiscreteGaussian((spread * 1024) ** 2), DiscreteLaplace(spread * 1024)):
        rule = KeyThreshold.calibrate(noise, 1024, groups, delta, steps=steps(1024, groups))
        every = range(1, groups + 1) if groups <= 40 else range(1, groups + 1, 7)
        each = [delta_of(rule.threshold, weight(k, most=groups), k, noise) for k in every]
        assert max(each) <= rule.delta <= delta
        below = [delta_of(rule.threshold - 1, w, end, noise) for end, w in steps(1024, groups)]
        assert rule.threshold == 1024 or max(below) > delta


def test_steps_of_other_keys_or_counts_are_no_threshold() -> None:
    noise = DiscreteGaussian(Fraction(144))
    for wrong in (steps(12, 2), steps(13, 3)):
        with pytest.raises(ValueError, match="steps of other keys"):
            KeyThreshold(40, noise, 12, 3, wrong)


def test_what_one_unit_moves() -> None:
    """√Σv² ≤ F, and Σ|v| ≤ F·√K; of a unit in the place of another twice the squares."""
    limits = Contribution(None, groups=9, scaled=True)
    assert sensitivity(SharedUnits(weight=12), limits, True) == Sensitivity(9, 36, Fraction(144), 12)
    both = replace(limits, ids=2)
    assert sensitivity(SharedUnits(weight=12), both, True) == Sensitivity(18, 72, Fraction(288), 12)


def test_a_weight_is_a_whole_number_and_0_beyond_the_last_step() -> None:
    term = over_shares(DUCKDB, 0, "n", steps(12, 3))
    assert term.over == "CASE WHEN kk <= 1 THEN 12 WHEN kk <= 2 THEN 8 WHEN kk <= 3 THEN 6 ELSE 0 END * q0"
    assert term.within == "12 * q0" and term.above == "COUNT(*) > 1"


def test_other_plans_are_refused() -> None:
    of = policy(
        "said:\n  unit: {column: id, of: person}\n  columns: {id: {type: bigint}, word: {type: varchar}}",
        "search: auto\nunits: {person: {}}\n",
    )
    (release,) = planned("SELECT DISTINCT word FROM said", of).releases
    node = release.measured.node
    require_well_formed(node)
    (component,), below = node.components, node.input
    assert isinstance(component, SharedUnits) and isinstance(below, BoundContributions) and below.groups == 1000
    wrong: list[Release] = [
        replace(node, input=replace(below, truncate_groups=False, few_groups=True)),
        replace(node, input=below.input),
        replace(node, threshold=None),
        replace(node, components=(component, RowCount()), threshold=1),
        replace(node, components=(replace(component, filter=Literal(True, BOOLEAN)),)),
    ]
    for plan in wrong:
        with pytest.raises(Rejected, match="malformed"):
            require_well_formed(plan)
