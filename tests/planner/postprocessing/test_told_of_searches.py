"""What a search tells beside its limit: every number is computed from released counts, and holds what it says."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dpsql.core.noise.mechanisms import DiscreteGaussian, DiscreteLaplace
from dpsql.core.noise.mechanisms.mechanism import AdditiveNoise
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.planner.postprocessing.coverage import Units
from dpsql.planner.postprocessing.searches.octaves import Octaves, SearchResult, limit_of_sum, range_of_values
from dpsql.planner.postprocessing.searches.told import Octave, beyond, bounds, found_coverage, search_notes

FIVE = DiscreteLaplace(Fraction(5))
WITHIN = 126
"""No sum of 63 such noises from any place on is further off, at 95 %."""
PAID = PrivacyLoss(Fraction(1, 5))


def octaves(counts: dict[int, int], **others: object) -> Octaves:
    found = [counts.get(b, 0) for b in range(63)]
    return Octaves(
        **{"label": "s"} | others, what="SUM(amount)", unit="customer", counts=tuple(found), noise=FIVE, cells=63
    )  # type: ignore[arg-type]


def counted(customers: list[int], at_most: int | None = None) -> list[int]:
    """Exact octaves of their totals."""
    found = [0] * (63 if at_most is None else (at_most - 1).bit_length() + 1)
    for total in customers:
        found[((total if at_most is None else min(total, at_most)) - 1).bit_length()] += 1
    return found


# --- the event on which all of it rests ------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", [FIVE, DiscreteLaplace(Fraction(1, 2)), DiscreteGaussian(Fraction(50))])
@pytest.mark.parametrize("n", [1, 11, 63])
def test_all_sums_from_any_place_on_are_within_w_together(noise: AdditiveNoise, n: int) -> None:
    """The exact probability, by adding one noise after another and leaving out what went beyond."""
    w = noise.half_width_of_sum(n, Fraction(975, 1000))
    assert still_within(noise, n, w) >= 0.95
    assert n == 1 or still_within(noise, n, noise.half_width_of_sum(n, Fraction(90, 100))) < 0.95  # twin


def still_within(noise: AdditiveNoise, n: int, w: int) -> float:
    z = np.arange(-2 * w, 2 * w + 1, dtype=float)
    if noise.laplace:
        q = np.exp(-1 / float(noise.laplace))
        one = (1 - q) / (1 + q) * q ** np.abs(z)
    else:
        one = np.exp(-(z**2) / (2 * float(noise.gaussian) ** 2))
        one /= one.sum()
    at = np.zeros(2 * w + 1)
    at[w] = 1
    for _ in range(n):
        at = np.convolve(at, one)[2 * w : 4 * w + 1]
    return float(at.sum())


def test_documented_width() -> None:
    assert FIVE.half_width_of_sum(63, Fraction(975, 1000)) == WITHIN


def off_by(sums: list[int]) -> list[int]:
    """The noises whose sums from each place on are these."""
    return [a - b for a, b in zip(sums, [*sums[1:], 0], strict=True)]


def test_noise_beyond_w_is_what_breaks_them() -> None:
    """Twin: the same comparison, with one sum three times as far off."""
    people = [3] * 100
    sums = [0] * 10 + [3 * WITHIN] + [0] * 52
    noisy = [c + z for c, z in zip(counted(people), off_by(sums), strict=True)]
    number, width = beyond(Octaves("s", "SUM(amount)", "customer", tuple(noisy), FIVE, 63), 2**9) or (0, 0)
    assert not number - width <= sum(person > 2**9 for person in people) <= number + width


def test_weighted_counts_tell_the_same() -> None:
    weight = 1 << 20
    plain = octaves({5: 2_000, 6: 9_000})
    heavy = Octaves(
        "s", "SUM(amount)", "customer", tuple(c * weight for c in plain.counts),
        DiscreteLaplace(FIVE.scale * weight), 63, weight=weight,
    )  # fmt: skip
    assert [o.number for o in bounds([SearchResult(heavy, 64)])[0].octaves] == list(plain.counts)


# --- words -----------------------------------------------------------------------------------------------------------

COUNTS = {10: 40_000, 11: 30_000, 12: 9_000, 13: 30, 20: -7}


def test_the_notes_of_a_limit() -> None:
    search = octaves(COUNTS)
    limit = limit_of_sum(search, Fraction(5, 3))
    assert limit == 8192, "30 units in the octave above the highest of which noise could not be a part"
    assert list(search_notes([SearchResult(search, limit)]))[1] == (
        "about 0 ± 126 customer units lie above the limit of SUM(amount) and were cut"
    )
    limit = limit_of_sum(search, Fraction(50))
    assert limit == 4096
    assert list(search_notes([SearchResult(search, limit, PAID)])) == [
        "limit of SUM(amount) found: 4,096 per customer (search ε 0.2, kept for later queries)",
        "about 23 ± 126 customer units lie above the limit of SUM(amount) and were cut",
        "about 0 to 122,880 of SUM(amount) lies above the limit in total: it is not in the answer",
    ]
    # What an octave above holds is told, and never added to the answer.
    assert list(search_notes([SearchResult(search, 2048)])) == [
        "limit of SUM(amount) found: 2,048 per customer",
        "about 9,023 ± 126 customer units lie above the limit of SUM(amount) and were cut",
        "about 61,440 to 18,616,320 of SUM(amount) lies above the limit in total: it is not in the answer",
    ]


def test_what_was_cut_has_no_upper_end_where_totals_lie_beyond_the_last_octave() -> None:
    *_, told = search_notes([SearchResult(octaves({10: 900, 62: 60}), 1024)])
    least = f"about {60 * (2**61 - 1024):,} or more of SUM(amount)"
    assert told == f"{least} lies above the limit in total: it is not in the answer"


def test_the_notes_of_bounds_and_grids() -> None:
    counts = [0] * 127
    counts[63 + 8], counts[63 + 10], counts[63 - 3] = 500, 800, 60
    search = Octaves("v", "amount", "customer", tuple(counts), FIVE, 127, first=-63, grid=Fraction(1, 100))
    found = SearchResult(search, range_of_values(search))
    assert found.limit == (-4, 512)
    assert list(search_notes([found])) == [
        "bounds of amount found: -0.04 to 5.12",
        "about 0 ± 398 customer units lie outside the bounds of amount and were cut",
    ]
    (told,) = bounds([found])
    assert told.limit == (-0.04, 5.12) and told.beyond == (0, 398)
    assert told.octaves[63] == Octave(0, 0, 0, 15) and told.octaves[73] == Octave(2.56, 5.12, 800, 15)
    assert told.octaves[60] == Octave(-0.04, -0.02, 60, 15)


def test_the_notes_where_nothing_is_found() -> None:
    nothing = octaves({3: 40})
    assert list(search_notes([SearchResult(nothing, None, PAID)])) == [
        "no limit of SUM(amount) found (search ε 0.2, kept for later queries)"
    ]
    capped = Octaves("s", "COUNT(*)", "customer", (0, 4, 30), FIVE, 63, at_most=4)
    assert list(search_notes([SearchResult(capped, 4)]))[1] == (
        "COUNT(*): no octave holds the 52 customer units that the search can see; the declared limit stands"
    )
    least = Octaves("s", "COUNT(*)", "customer", (0, 4, 30), FIVE, 63)
    assert list(search_notes([SearchResult(least, 1)]))[1] == (
        "COUNT(*): no octave holds the 52 customer units that the search can see; the least one stands, whatever it"
        " cuts; more ε sees fewer, more rows show more"
    )
    full = Octaves("s", "COUNT(*)", "customer", (0, 4, 300), FIVE, 63, at_most=4)
    assert list(search_notes([SearchResult(full, 4)]))[1] == (
        "how many customer units lie above the declared limit of COUNT(*) is not known"
    )
    assert list(search_notes([])) == []


def test_bounds_list_every_octave() -> None:
    (told,) = bounds([SearchResult(octaves(COUNTS), 4096)])
    assert (told.what, told.unit, told.limit, told.beyond) == ("SUM(amount)", "customer", 4096, (23, 126))
    assert told.octaves[:3] == (Octave(0, 1, 0, 15), Octave(1, 2, 0, 15), Octave(2, 4, 0, 15))
    assert told.octaves[12] == Octave(2048, 4096, 9000, 15) and told.octaves[20].number == -7
    assert bounds([SearchResult(octaves(COUNTS), 4096)], Fraction(1, 2))[0].octaves[0].width == 3


def test_what_two_rules_found_alike_is_told_once() -> None:
    """The rows of an average and of a count are the same counts, and often have the same limit."""
    one, other = SearchResult(octaves(COUNTS, label="t"), 4096, PAID), SearchResult(octaves(COUNTS), 4096, PAID)
    assert list(search_notes([one, other])) == list(search_notes([one]))
    assert len(bounds([one, other])) == len(list(found_coverage([one, other]))) == 1
    assert len(bounds([one, SearchResult(octaves(COUNTS), 2048)])) == 2


def test_coverage_of_found_limits() -> None:
    (covered,) = found_coverage([SearchResult(octaves(COUNTS), 4096), SearchResult(octaves({}), None)])
    assert covered.limits == ("a total of SUM(amount) above 4,096",)
    assert covered.cells == (Units((True,), 23, (-103, 149)), Units((False,), 79_000, (78_874, 79_126)))
