"""COVAR_…, CORR and REGR_…: the formulas in fractions, what they share, and where they are NULL."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import Any

import pytest

from dpsql.core.ir.components import Comoment, Component, ProductSum, ValueSum
from dpsql.core.noise.measurement import Measurement
from dpsql.core.release.noisy import NoisyRelease
from dpsql.core.release.planned import PlannedRelease
from dpsql.diagnostics.errors import Rejected
from dpsql.frontend.aggregates.formula import formula
from dpsql.planner.explain.explain_text import as_text
from tests.support.planning import planned, policy

POLICY = policy(
    """
people:
  unit: {rows: 1}
  columns:
    kind: {type: varchar, domain: [a, b], nullable: false}
    x: {type: integer, bounds: [0, 9], nullable: false}
    y: {type: 'decimal(6,2)', bounds: [-1, 3], nullable: false}
    z: {type: double, bounds: [1, 8]}
    tiny: {type: double, bounds: [0, 1e-150]}
    huge: {type: double, bounds: [-1e150, 1e150]}
    vast: {type: double, bounds: [-1e299, 1e299]}
    open: {type: double}
"""
)
NAMES = ("covar_pop", "covar_samp", "corr", "regr_slope", "regr_intercept", "regr_r2", "regr_count", "regr_avgy",
         "regr_avgx", "regr_syy", "regr_sxx", "regr_sxy")  # fmt: skip
EVERY = ", ".join(f"{name}({{y}}, {{x}}) AS {name}" for name in NAMES)


def _release(y: str, x: str) -> PlannedRelease:
    (release,) = planned(f"SELECT {EVERY.format(y=y, x=x)} FROM people", POLICY).releases
    return release


def _shown(release: PlannedRelease, rows: list[list[int]]) -> dict[str, list[Any]]:
    noisy = NoisyRelease.of_rows(release, [(i,) for i in range(len(rows))], rows)
    outputs = release.measured.node.outputs
    return {o.column.name: formula(o).values(noisy, o.column.type) for o in outputs}


def _of(measurements: tuple[Measurement, ...], row: list[int], what: str) -> Fraction:
    """A noisy sum, with what was subtracted of each row put back: count, y, x, yy, xx or yx."""

    def is_it(c: Component) -> bool:
        held = "x" if "x" in str(c.arg) else "y"
        if isinstance(c, ProductSum):
            held = held * 2 if c.times is None else "yx"
        return what == ("count" if c.kind == "count" else held)

    (at,) = (i for i, m in enumerate(measurements) if is_it(m.component))
    m = measurements[at]
    return row[at] * m.unit


def test_the_numbers_are_those_of_the_formulas() -> None:
    release = _release("y", "x")
    measurements = release.measured.measurements
    assert len(measurements) == 6  # shared by all twelve
    chance = random.Random(7)
    rows = [[chance.randrange(-(10**k), 10**k) for _ in measurements] for k in range(1, 9) for _ in range(30)]
    rows += [[0] * 6, *([0] * i + [1] + [0] * (5 - i) for i in range(6))]
    products = {i: m.component for i, m in enumerate(measurements) if isinstance(m.component, ProductSum)}
    (product,) = (i for i, c in products.items() if c.times is not None)
    rows += [[v * 10**6 if i == product else v for i, v in enumerate(row)] for row in rows[:60]]
    found = _shown(release, rows)
    for at, row in enumerate(rows):
        n, y, x, yy, xx, yx = (_of(measurements, row, what) for what in ("count", "y", "x", "yy", "xx", "yx"))
        shifts = {
            "yx" if c.times else "xx" if "x" in str(c.arg) else "yy": c.shift * c.worth for c in products.values()
        }
        yy, xx, yx = (value + shifts[name] * n for name, value in (("yy", yy), ("xx", xx), ("yx", yx)))
        one, two = max(n, Fraction(1)), max(n, Fraction(2))
        top = Fraction(4 * 9, 4)

        def clamped(value: Fraction, top: Fraction) -> float:
            return float(max(-top, min(top, value)))

        assert found["covar_pop"][at] == clamped((one * yx - y * x) / one**2, top)
        assert found["covar_samp"][at] == clamped((two * yx - y * x) / (two * (two - 1)), 2 * top)
        assert found["regr_sxy"][at] == float((one * yx - y * x) / one)
        assert found["regr_sxx"][at] == max(0.0, float((one * xx - x * x) / one))
        sxy, sxx, syy = one * yx - y * x, one * xx - x * x, one * yy - y * y
        if sxx <= 0:
            assert found["regr_slope"][at] is found["regr_intercept"][at] is found["corr"][at] is None
            continue
        assert found["regr_slope"][at] == float(sxy / sxx)
        sums = [m.component for m in measurements if isinstance(m.component, ValueSum) and m.component.paired]
        centers = {"xy"["x" not in str(c.arg)]: c.center * c.grid for c in sums}
        means = centers["y"] + y / one, centers["x"] + x / one
        assert found["regr_intercept"][at] == float(means[0] - sxy / sxx * means[1])
        if syy <= 0:
            assert found["regr_r2"][at] is found["corr"][at] is None
            continue
        r2 = min(Fraction(1), sxy**2 / (sxx * syy))
        assert found["regr_r2"][at] == float(r2)
        assert found["corr"][at] == math.copysign(math.sqrt(float(r2)), -1 if sxy < 0 else 1)
    assert None in found["corr"] and 1.0 in found["regr_r2"] and len(set(found["corr"])) > 20


def test_sums_are_those_of_averages_and_variances() -> None:
    sql = "SELECT CORR(y, x), AVG(x), VAR_POP(y), STDDEV(x), COUNT(*), REGR_COUNT(y, x) FROM people"
    (release,) = planned(sql, POLICY).releases
    assert len(release.measured.measurements) == 6
    sql = "SELECT COVAR_POP(z, x), AVG(z), COUNT(z) FROM people"  # x is never NULL: a row counts where z does
    (release,) = planned(sql, POLICY).releases
    assert len(release.measured.measurements) == 4


def test_bounds_of_any_size() -> None:
    """Slopes of 10³⁰⁰ are exact; and what no DOUBLE holds is refused before."""
    release = _release("huge", "tiny")
    found = _shown(release, [[0] * 6, [10**9] * 6, [1] * 6])
    assert all(x is None or math.isfinite(x) for column in found.values() for x in column)
    noisy = NoisyRelease.of_rows(release, [()], [[10**9] * 6])
    for output in release.measured.node.outputs:
        for low, high in formula(output).intervals(noisy, Fraction(19, 20)):
            assert math.isnan(low) or low <= high
    with pytest.raises(Rejected) as refused:
        planned("SELECT COVAR_POP(vast, vast) FROM people", POLICY)
    assert refused.value.diagnostics[0].code == "DP410"


def test_the_plan_says_what_is_added_up() -> None:
    text = as_text(planned("SELECT COVAR_SAMP(y, x) FROM people", POLICY))
    assert "SUM((y - 1) * (x - 4.5))" in text and "COVAR_SAMP(y, x)" in text


@pytest.mark.parametrize(
    ("call", "code", "said"),
    [
        ("CORR(DISTINCT y, x)", "DP101", "CORR(DISTINCT …)"),
        ("REGR_SLOPE(DISTINCT y, x)", "DP101", "REGR_SLOPE(DISTINCT …)"),
        ("CORR(y)", "DP106", "two arguments"),
        ("CORR()", "DP106", "two arguments"),
        ("REGR_SLOPE(y)", "DP106", "two arguments"),
        ("REGR_COUNT(DISTINCT y)", "DP101", "REGR_COUNT(DISTINCT …)"),
        ("CORR(y, x, x)", "DP106", "two arguments"),
        ("REGR_R2(y, x, x)", "DP106", "two arguments"),
        ("CORR(y, kind)", "DP203", "needs a number"),
        ("CORR(y, open)", "DP201", "CORR(y, open) has no bounds"),
        ("CORR(open, y)", "DP201", "CORR(open, y) has no bounds"),
        ("REGR_AVGX(y, open)", "DP201", "no bounds"),
        ("CORR(y, CLIP(x, AUTO))", "DP106", "CORR multiplies"),
        ("CORR(y, x) OVER ()", "DP105", "window"),
    ],
)
def test_what_means_nothing_is_refused_by_name(call: str, code: str, said: str) -> None:
    with pytest.raises(Rejected) as refused:
        planned(f"SELECT {call} FROM people", POLICY)
    (found,) = refused.value.diagnostics
    assert found.code == code and said in found.message


@pytest.mark.parametrize(
    ("call", "advice"),
    [
        ("CORR(y, kind = 'a')", "cast it first:  CAST(kind = 'a' AS INTEGER)"),
        ("CORR(kind, y)", "convert and bound it:  CLIP(TRY_CAST(kind AS DOUBLE), lower, upper)"),
    ],
)
def test_repairs_are_of_the_argument(call: str, advice: str) -> None:
    with pytest.raises(Rejected) as refused:
        planned(f"SELECT {call} FROM people", POLICY)
    assert refused.value.diagnostics[0].help == (advice,)


def test_a_count_and_a_mean_need_no_bounds_of_the_other() -> None:
    (release,) = planned("SELECT REGR_COUNT(open, x), REGR_AVGY(y, open) FROM people", POLICY).releases
    assert len(release.measured.measurements) == 2  # both are of the rows where `open` is not NULL


SIZED = policy(
    """
loans:
  unit: {rows: 1, neighbours: replace_one}
  size: {exact: 1000}
  columns:
    kind: {type: varchar, domain: [a, b], nullable: false}
    x: {type: integer, bounds: [0, 9], nullable: false}
    y: {type: 'decimal(6,2)', bounds: [-1, 3], nullable: false}
    z: {type: integer, bounds: [1, 8]}
"""
)


@pytest.mark.parametrize(
    ("asked", "measured"),
    [
        ("COVAR_POP(y, x)", 1),
        ("REGR_SXY(y, x), COVAR_SAMP(y, x)", 1),
        ("COVAR_POP(y, x), AVG(y), AVG(x)", 4),  # the sums are there anyway
        ("CORR(y, x), COVAR_POP(y, x)", 6),
        ("COVAR_POP(y, z)", 4),
        ("COVAR_POP(y, x) FILTER (WHERE x > 1)", 4),
    ],
)
def test_a_covariance_of_a_public_number_of_rows_is_one_number(asked: str, measured: int) -> None:
    (release,) = planned(f"SELECT {asked} FROM loans", SIZED).releases
    assert len(release.measured.measurements) == measured
    (grouped,) = planned(f"SELECT kind, {asked} FROM loans GROUP BY kind", SIZED).releases
    assert not any(isinstance(m.component, Comoment) for m in grouped.measured.measurements)


def test_its_number_and_interval() -> None:
    asked = "COVAR_POP(y, x), COVAR_SAMP(y, x), REGR_SXY(y, x)"
    (release,) = planned(f"SELECT {asked} FROM loans", SIZED).releases
    (m,) = release.measured.measurements
    assert m.sensitivity.l1 * m.component.worth == pytest.approx(999 * 9 * 4, rel=1e-6)
    shown = _shown(release, [[12345]])
    moment = 12345 * m.component.worth
    below = {"covar_pop": 10**6, "covar_samp": 999_000, "regr_sxy": 1000}
    assert shown == {name: [float(moment / n)] for name, n in below.items()}
    noisy = NoisyRelease.of_rows(release, [()], [[12345]])
    ((low, high),) = formula(release.measured.node.outputs[0]).intervals(noisy, Fraction(19, 20))
    width = float(m.noise.half_width(Fraction(19, 20)) * m.unit / 10**6)
    assert (low, high) == (pytest.approx(shown["covar_pop"][0] - width), pytest.approx(shown["covar_pop"][0] + width))
