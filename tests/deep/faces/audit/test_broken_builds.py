"""Builds that are broken on purpose are refuted: the audit can fail.

A mutant replaces a function of the product while the query is planned, fetched and noised; nothing else knows of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from typing import Any

import pytest

import dpsql.core.analysis.rules.join_with_public as public_rule
import dpsql.core.noise.calibration as allocate
import dpsql.core.noise.partition_selection as threshold_module
import dpsql.core.printing.forms.kept_groups as kept_groups
import dpsql.core.printing.grid_integers as quantize
import dpsql.core.printing.relational_nodes as relations
import dpsql.core.printing.shapes.direct as direct
import dpsql.core.printing.shapes.weighed_rows as weighed_rows
import dpsql.core.printing.shapes.weighted as weighted
from dpsql.core.analysis.facts import Contribution
from dpsql.core.ir.components import QuantileChoice
from dpsql.core.noise.backends import ExactBackend
from dpsql.core.noise.measurement import MeasuredRelease
from dpsql.core.noise.mechanisms import DiscreteLaplace, Exponential, KeyThreshold
from dpsql.core.numbers.cap import finite
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.faces.audit.report import as_text
from tests.support.audited_queries import CASES, Case, audited

Patch = Callable[[pytest.MonkeyPatch], None]
QUALIFY = re.compile(r"QUALIFY ROW_NUMBER\(\) OVER \(.*?\) <= \d+")


def less_noise(factor: Fraction) -> Patch:
    """Noise drawn at a scale that is so many times smaller than the one that was priced."""
    laplace, gaussian = ExactBackend.laplace, ExactBackend.gaussian

    def patch(m: pytest.MonkeyPatch) -> None:
        m.setattr(ExactBackend, "laplace", lambda self, scale, n: laplace(self, scale / factor, n))
        m.setattr(ExactBackend, "gaussian", lambda self, variance, n: gaussian(self, variance / factor**2, n))

    return patch


def half_the_price(m: pytest.MonkeyPatch) -> None:
    m.setattr(DiscreteLaplace, "loss", lambda self, l1, l2_squared: PrivacyLoss(epsilon=Fraction(l1) / self.scale / 2))


def one_column_free(m: pytest.MonkeyPatch) -> None:
    original = MeasuredRelease.losses
    m.setattr(MeasuredRelease, "losses", lambda self, unit: original(self, unit)[1:])


def sharper_choices(factor: int) -> Patch:
    """Cells chosen at an η that is so many times larger than the one that was priced."""
    original = Exponential.choose

    def patch(m: pytest.MonkeyPatch) -> None:
        sharper = lambda self, counts, scores: original(self, counts, [factor * s for s in scores])  # noqa: E731
        m.setattr(Exponential, "choose", sharper)

    return patch


def smaller_slope(m: pytest.MonkeyPatch) -> None:
    m.setattr(QuantileChoice, "steepness", property(lambda q: min(q.p.numerator, q.p.denominator - q.p.numerator)))


def no_clip(m: pytest.MonkeyPatch) -> None:
    """Of a column, and of the rows that a FILTER leaves."""
    for form in (quantize.addend, quantize.quantized):

        def wide(c: Any, names: Any, form: Any = form) -> Any:
            return form(replace(c, lo=4 * c.lo - 4, hi=4 * c.hi + 4), names)

        m.setattr(direct, form.__name__, wide)


def all_groups(m: pytest.MonkeyPatch) -> None:
    for form in (kept_groups.kept_groups, kept_groups.rows_of_kept_groups):

        def mutated(*args: Any, form: Any = form) -> str:
            return QUALIFY.sub("", form(*args))

        for shape in (weighted, weighed_rows):
            m.setattr(shape, form.__name__, mutated)


def all_distinct_values(m: pytest.MonkeyPatch) -> None:
    original = weighted._distinct

    def mutated(parts: Any, at: int) -> Any:
        found = original(parts, at)
        return replace(found, sql=QUALIFY.sub("", found.sql))

    m.setattr(weighted, "_distinct", mutated)


def all_rows_of_a_key(m: pytest.MonkeyPatch) -> None:
    original = relations.Emitter._truncated
    m.setattr(relations.Emitter, "_truncated", lambda self, n, t: original(self, n, t).split("\nQUALIFY")[0])


def no_weights(m: pytest.MonkeyPatch) -> None:
    def mutated(d: Any, partial: str, factor: int, magnitude: int, most: int) -> str:
        return f"{factor} * CAST({partial} AS BIGINT)"

    m.setattr(weighted, "over_rows", mutated)


def no_weights_of_cells(m: pytest.MonkeyPatch) -> None:
    def mutated(d: Any, value: str, factor: int, magnitude: int, floors: Any) -> str:
        return f"{factor // prod(floors.values())} * CAST({value} AS BIGINT)"

    m.setattr(weighed_rows, "scaled", mutated)


def sums_not_clipped_per_id(m: pytest.MonkeyPatch) -> None:
    m.setattr(weighted, "_clipped_sum", lambda parts, i, rows: f"CAST(m{i} AS BIGINT)")


def m_for_2m(m: pytest.MonkeyPatch) -> None:
    m.setattr(public_rule, "finite", lambda n: finite(1 if n == 2 else n))


def one_row_for_k(m: pytest.MonkeyPatch) -> None:
    original = allocate.contributions
    m.setattr(
        allocate, "contributions",
        lambda node, below: original(node, below) if below.ids else {u: Contribution(1) for u in below.units},
    )  # fmt: skip


def one_id_for_two(m: pytest.MonkeyPatch) -> None:
    original = allocate.contributions
    m.setattr(
        allocate, "contributions", lambda node, below: {u: replace(c, ids=1) for u, c in original(node, below).items()}
    )


def one_below_the_threshold(m: pytest.MonkeyPatch) -> None:
    m.setattr(KeyThreshold, "release", lambda self, counts: [count >= self.threshold - 1 for count in counts])


def accounted_as_more_than(m: pytest.MonkeyPatch) -> None:
    """Released at `≥ T`, and δ computed for `> T`."""
    original = threshold_module.delta_of
    m.setattr(threshold_module, "delta_of", lambda t, r, g, mechanism: original(t + 1, r, g, mechanism))


def no_threshold(m: pytest.MonkeyPatch) -> None:
    m.setattr(KeyThreshold, "release", lambda self, counts: [True for _ in counts])


@dataclass(frozen=True, slots=True)
class Mutant:
    """What is broken, the query that shows it, and by which words of the report.

    runs: the best event of a sum tells less than that of a count; at 10,000 runs one audit in a thousand would miss it.
    ε: choices are audited at one where both events of a pair happen often; where one is rare 2,000 runs say too little.
    """

    patch: Patch
    case: Case
    says: str
    runs: int | None = None


PEOPLE = Case("limits", "SELECT COUNT(*), SUM(age) FROM people", delta="0")
SUM = CASES["two-level, a sum alone"]
TOWNS = Case("limits", "SELECT town, COUNT(*) FROM people GROUP BY town")
MUTANTS: dict[str, Mutant] = {
    "half the scale, one number": Mutant(less_noise(Fraction(2)), CASES["two-level"], "ε ≥ 1."),
    "a quarter of the scale, many numbers": Mutant(
        less_noise(Fraction(4)), CASES["weighted, M and G"], "narrower than stated"
    ),
    "half the scale, private keys": Mutant(less_noise(Fraction(2)), CASES["truncated groups"], "narrower than stated"),
    "half the scale, gaussian": Mutant(less_noise(Fraction(2)), CASES["gaussian"], "narrower than stated"),
    "half the scale, zcdp": Mutant(less_noise(Fraction(2)), CASES["zcdp, one number"], "ρ ≥ "),
    "1.25 times too small, a count": Mutant(
        less_noise(Fraction(5, 4)), CASES["direct, private keys"], "ε ≥ 1.", 20_000
    ),
    "1.25 times too small, a sum": Mutant(less_noise(Fraction(5, 4)), SUM, "ε ≥ 1.", 20_000),
    "1.25 times too small, zcdp": Mutant(
        less_noise(Fraction(5, 4)), CASES["zcdp, one number"], "narrower than stated", 20_000
    ),
    "half the price": Mutant(half_the_price, CASES["two-level"], "claimed ε 0.5"),
    "one column free": Mutant(one_column_free, PEOPLE, "claimed ε 0.5"),
    "no clip": Mutant(no_clip, CASES["rows"], "l1 norm of the change of SUM"),
    "no clip per id": Mutant(sums_not_clipped_per_id, CASES["two-level, a sum alone"], "l1 norm of the change of SUM"),
    "groups not truncated": Mutant(all_groups, CASES["truncated groups"], "groups changed of COUNT(*)"),
    "groups not truncated, keys": Mutant(all_groups, CASES["truncated groups"], "keys that one unit alone brings"),
    "distinct values not truncated": Mutant(all_distinct_values, CASES["distinct"], "largest change of one group"),
    "rows of a key not truncated": Mutant(all_rows_of_a_key, CASES["rows joined to rows"], "l1 norm of the change"),
    "no weights": Mutant(no_weights, CASES["weighted, M and G"], "l1 norm of the change of COUNT(*)"),
    "m for 2m": Mutant(m_for_2m, CASES["rows, public kept"], "l1 norm of the change of COUNT(*)"),
    "1 for k": Mutant(one_row_for_k, CASES["rows"], "l1 norm of the change of COUNT(*)"),
    "1 id for 2": Mutant(one_id_for_two, CASES["replaced ids, grouped"], "l1 norm of the change of COUNT(*)"),
    "shown from T - 1 on": Mutant(one_below_the_threshold, TOWNS, "keys of one side alone: δ ≥"),
    "≥ T where > T was accounted": Mutant(accounted_as_more_than, TOWNS, "keys of one side alone: δ ≥"),
    "choices four times as sharp": Mutant(
        sharper_choices(4), replace(CASES["quantile"], epsilon="1"), "narrower than stated"
    ),
    "choices four times as sharp, zcdp": Mutant(
        sharper_choices(4), CASES["zcdp, quantile beside a count"], "narrower than stated"
    ),
    "the smaller slope": Mutant(smaller_slope, CASES["quantile"], "l1 norm of the change of QUANTILE(age, 0.9)"),
    "quantiles without weights": Mutant(
        no_weights_of_cells, CASES["quantile, weighted"], "l1 norm of the change of QUANTILE(x, 0.5)"
    ),
    "modes four times as sharp": Mutant(
        sharper_choices(4), replace(CASES["mode"], epsilon="0.5"), "narrower than stated", 10_000
    ),
    "modes without weights": Mutant(
        no_weights_of_cells, CASES["mode, weighted"], "l1 norm of the change of MODE(kind)"
    ),
    "no threshold": Mutant(no_threshold, TOWNS, "keys of one side alone: δ ≥ 0.99"),
}  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_refuted(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant = MUTANTS[name]
    mutant.patch(monkeypatch)
    found = audited(mutant.case, mutant.runs)
    text = as_text(found)
    assert found.refuted, text
    assert re.search(f"REFUTED.*{re.escape(mutant.says)}", text) or mutant.says in text, text
    assert "only in one of them: " in text, "a report shows the databases"


def test_the_price_is_compared_with_the_mechanisms(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan that charges less than its own mechanisms lose is refuted without any run."""
    import dpsql.planner.costs.privacy_cost as pricing

    original = pricing._costs

    def half(measured: Any, policy: Any) -> dict[str, PrivacyLoss]:
        return {unit: PrivacyLoss(x.epsilon / 2, x.delta) for unit, x in original(measured, policy).items()}

    monkeypatch.setattr(pricing, "_costs", half)
    found = audited(PEOPLE)
    assert found.mispriced == ("person",) and found.refuted
