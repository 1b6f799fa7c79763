"""Items 1 to 14: arithmetic and noise, through whole sessions over a real file."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import pytest

import dpsql
from dpsql.core.noise.mechanisms import DiscreteLaplace
from dpsql.core.noise.scale import LARGEST_SCALE
from tests.support.checklist_clinic import POLICY, Attack, Clinic, assert_silent


def test_item_01_answers_lie_on_the_public_grid(attack: Attack) -> None:
    """A released sum is a whole number of grid units, whatever the data: low bits carry nothing."""
    sql = "SELECT SUM(income) FROM patients"
    (measured,) = attack.con.sql(sql).plan(epsilon=1).releases[0].measured.measurements
    for _ in range(20):
        ((value,),) = attack.con.sql(sql).run(epsilon=1).rows
        assert (Fraction(value) / measured.unit).denominator == 1
    assert measured.unit.numerator == 1 and measured.unit.denominator & (measured.unit.denominator - 1) == 0


def test_item_03_sums_are_integers_in_the_engine(attack: Attack) -> None:
    plan = attack.con.sql("SELECT SUM(income), AVG(income) FROM patients").plan(epsilon=1)
    (statement,) = plan.releases[0].statements
    assert "AVG(" not in statement.sql.upper() and "AS INTEGER)" in statement.sql
    engine = attack.con.service.engine
    assert all(isinstance(v, int) for row in engine.fetch(statement.salted(0)).rows() for v in row)


@pytest.mark.parametrize("function", ["kahan_sum", "fsum", "favg", "sum_no_overflow", "product", "geomean"])
def test_item_03_and_05_other_sums_do_not_exist(attack: Attack, function: str) -> None:
    attack.refused(f"SELECT {function}(age) FROM patients", "DP105")


def test_item_04_rounding_is_a_function_of_the_row(make: Callable[..., Clinic]) -> None:
    """Half-even or not, a row's integer does not depend on the others: the sum of many equal rows is a multiple."""
    clinic = make("DELETE FROM events", "INSERT INTO events SELECT 'a', 2.5, NULL, NULL, NULL FROM range(1000)")
    with clinic.connect() as con:
        ((total,),) = con.execute("SELECT SUM(value) FROM events", epsilon=10**6).rows
        assert math.isclose(total, 2500, abs_tol=0.1)


@pytest.mark.parametrize(
    "expression", ["big + 1", "big * big", "big * 9223372036854775807 * 9223372036854775807", "-big - 2", "abs(big)"]
)
def test_item_05_and_17_no_overflow_at_run_time(attack: Attack, expression: str) -> None:
    """bob and carol hold numbers at the edge of BIGINT; predicates over arithmetic of them are total."""
    ((n,),) = attack.answer(f"SELECT COUNT(*) FROM patients WHERE {expression} IS NOT NULL")
    assert n == 3
    attack.refused(f"SELECT SUM({expression}) FROM patients", "DP201", "DP202")


def test_item_06_a_clipped_sum_of_wide_numbers_cannot_wrap(attack: Attack) -> None:
    ((total,),) = attack.answer("SELECT SUM(CLIP(big * big, 0, 10)) FROM patients")
    assert abs(total - 21) < 2


def test_item_07_no_scale_beyond_the_limit(attack: Attack) -> None:
    with pytest.raises(dpsql.Rejected) as caught:
        attack.con.sql("SELECT COUNT(*) FROM patients").run(epsilon="1e-30")
    assert caught.value.diagnostics[0].code == "DP410"
    with pytest.raises(ValueError):
        DiscreteLaplace(LARGEST_SCALE + 1)


def test_item_07_opendp_draws_noise_and_never_sees_a_total(make: Callable[..., Clinic]) -> None:
    """A total beyond its 64 bits would come back in an error's text, or saturated: it is added to the noise here."""
    top = 2**63 - 1
    insert = f"INSERT INTO patients (pid, big) SELECT i, {top} FROM range(10, 50) r(i)"
    with make(insert, policy=POLICY.replace("name: clinic\n", "name: clinic\nnoise: opendp\n")).connect() as con:
        sql = f"SELECT SUM(CLIP(big, -{top}, {top})), COUNT(*) FROM patients WHERE pid >= 10"
        for epsilon in (1000, 10**4):
            ((total, n),) = con.execute(sql, epsilon=epsilon, fresh=True).rows
            assert abs(total - 40 * top) < 10**18 and abs(n - 40) <= 1
        with pytest.raises(dpsql.Rejected) as caught:
            con.execute("SELECT COUNT(*) FROM patients", epsilon="1e-30")
        assert caught.value.diagnostics[0].code == "DP410"


@pytest.mark.parametrize(
    "epsilon",
    [
        0,
        -1,
        math.nan,
        math.inf,
        -math.inf,
        "nan",
        "inf",
        "1e-999999999",
        "1/0",
        True,
        "",
        "x",
        [],
        pytest.param(10**5000, id="huge"),
    ],
)
def test_item_08_an_epsilon_is_a_finite_number_above_zero(attack: Attack, epsilon: object) -> None:
    before = attack.spent
    for sql in ("SELECT COUNT(*) FROM patients", "SELECT COUNT(*) FROM pub"):
        with pytest.raises(dpsql.Rejected) as caught:
            attack.con.sql(sql).run(epsilon=epsilon)  # type: ignore[arg-type]
        assert caught.value.diagnostics[0].code == "DP406"
    assert attack.spent == before


@pytest.mark.parametrize("delta", [-1, 1, 2, math.nan, "1e-999999999", True])
def test_item_08_a_delta_lies_in_zero_to_one(attack: Attack, delta: object) -> None:
    with pytest.raises(dpsql.Rejected) as caught:
        attack.con.sql("SELECT name, COUNT(*) FROM patients GROUP BY name").run(1, delta)  # type: ignore[arg-type]
    assert caught.value.diagnostics[0].code == "DP406"


@pytest.mark.parametrize("delta", [0, "1e-80", 1e-300])
def test_item_08_a_delta_too_small_is_refused_by_code(attack: Attack, delta: object) -> None:
    with pytest.raises(dpsql.Rejected) as caught:
        attack.con.sql("SELECT name, COUNT(*) FROM patients GROUP BY name").run(1, delta)  # type: ignore[arg-type]
    assert caught.value.diagnostics[0].code == "DP402"


def test_item_08_the_price_is_the_mechanisms_own(attack: Attack) -> None:
    """The sum of the losses that the mechanisms state is what is charged, and not above what was asked for."""
    plan = attack.con.sql("SELECT diag, COUNT(*), SUM(age), AVG(income) FROM patients GROUP BY diag").plan(
        epsilon="1/3"
    )
    stated = sum(
        (
            m.mechanism.loss(Fraction(m.sensitivity.l1), m.sensitivity.l2_squared).epsilon
            for m in plan.releases[0].measured.measurements
        ),
        Fraction(0),
    )
    assert stated == plan.loss.epsilon or stated <= plan.loss.epsilon <= Fraction(1, 3) + Fraction(1, 10**12)
    assert 0 < stated <= Fraction(1, 3)


@pytest.mark.parametrize("column", ["income", "visits.amt"])
def test_item_09_no_floating_point_keys(attack: Attack, column: str) -> None:
    table = "visits" if "." in column else "patients"
    attack.refused(f"SELECT {column}, COUNT(*) FROM {table} GROUP BY {column}", "DP301")
    attack.refused(f"SELECT DISTINCT {column} FROM {table}", "DP301")
    attack.refused(f"SELECT COUNT(*) FROM {table} JOIN pub ON {column} = pub.cost", "DP117")


@pytest.mark.parametrize("operator", ["/", "//", "%"])
def test_item_12_division_by_zero_is_null(attack: Attack, operator: str) -> None:
    """alice is 30: her row must neither fail nor count."""
    ((n,),) = attack.answer(f"SELECT COUNT(*) FROM patients WHERE (1 {operator} (age - 30)) IS NOT NULL")
    assert n == 2
    ((n,),) = attack.answer(f"SELECT COUNT(*) FROM patients WHERE age {operator} 0 IS NULL")
    assert n == 4


def test_item_13_the_final_argument_is_clipped_not_the_column(attack: Attack) -> None:
    """smartnoise-sdk #201: arithmetic above a clip has a sensitivity of its own."""
    (l1, _), *_ = attack.sensitivities(
        "SELECT SUM(age * 1000000 * CASE WHEN name = 'bob' THEN 1 ELSE 0 END) FROM patients"
    )
    assert l1 >= 110_000_000
    (l1, _), *_ = attack.sensitivities("SELECT SUM(age) FROM patients")
    assert 110 <= l1 < 112
    attack.refused("SELECT SUM(big) FROM patients", "DP201")
    attack.refused("SELECT SUM(age / (age - 40)) FROM patients", "DP202")
    attack.refused("SELECT SUM(length(name)) FROM patients", "DP201", "DP202")
    attack.refused("SELECT SUM(exp(income)) FROM patients", "DP201", "DP202")


def test_item_14_types_are_the_declared_ones(attack: Attack, make: Callable[..., Clinic]) -> None:
    attack.refused("SELECT COUNT(*) FROM patients WHERE zip > 5", "DP106")
    attack.refused("SELECT SUM(greatest(zip, 10)) FROM patients", "DP106", "DP203")
    attack.refused("SELECT COUNT(*) FROM patients WHERE age = 'x'", "DP106")
    changed = make("ALTER TABLE patients ALTER age TYPE VARCHAR")
    with pytest.raises(dpsql.Error) as caught:
        changed.connect()
    assert "DP004" in str(caught.value)
    assert_silent(caught.value)
