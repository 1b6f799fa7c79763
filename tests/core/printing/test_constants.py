"""No constant makes a query fail on some rows: it is printed with exactly its value, in exactly its type.

An engine looks at a constant that it cannot hold only when a row gets that far. So a query that fails says, without any
noise, that there is such a row: here that bob is among the patients.
"""

from __future__ import annotations

import datetime as dt
import decimal
import random
from collections.abc import Callable

import duckdb
import pandas as pd
import pytest

import dpsql
from dpsql.core.printing.conversions import typed_constant
from dpsql.diagnostics.diagnostic import Span
from dpsql.frontend.bind.expressions import literals
from dpsql.spelling.duckdb_functions import DUCKDB
from tests.support.checklist_clinic import POLICY, Attack, Clinic

NINES = "9" * 38
BIG = "greatest(1099511627776, -1267650600228229401496703205376)"
"""2⁴⁰ as a HUGEINT."""
SMALL = "greatest(1, -1267650600228229401496703205376)"
BOBS = f"(CASE WHEN name = 'bob' THEN {BIG} ELSE {SMALL} END)"
LEAST = "CAST(0 - big - 1 AS BIGINT)"
"""-2⁶³ for one patient."""

ORACLES = {
    "a folded constant in a narrower type": (f"{BOBS} * {BOBS} > 5", 1),
    "38 decimal places": (f"name = 'bob' AND income > 0.{NINES}", 1),
    "38 decimal places below zero": (f"name = 'bob' AND income > -0.{NINES}", 1),
    "a minus before 38 digits": (f"name = 'bob' AND income > -{NINES[1:]}.9", 1),
    "the least HUGEINT as a product": (f"{LEAST} * 18446744073709551616 < -1e38", 1),
}


@pytest.mark.parametrize(("condition", "rows"), ORACLES.values(), ids=ORACLES)
def test_probe_a_constant_tells_of_no_row(attack: Attack, condition: str, rows: int) -> None:
    """A query that reaches the constant for one patient is answered like any other."""
    assert attack.answer(f"SELECT COUNT(*) FROM patients WHERE {condition}") == [(rows,)]


def test_probe_bounds_do_not_depend_on_the_decimal_context(make: Callable[..., Clinic]) -> None:
    """A program may have set its decimals to few digits."""
    wide = "  wide:\n    unit: {rows: 1}\n    columns:\n      x: {type: 'decimal(9,2)', bounds: [0, 12345.67]}\n"
    clinic = make("CREATE TABLE wide AS SELECT CAST(99999 AS DECIMAL(9,2)) AS x", policy=POLICY + wide)
    with clinic.connect() as con, decimal.localcontext(prec=3):
        answer = con.sql("SELECT SUM(x) FROM wide").run(epsilon=10**7)
    assert float(answer.rows[0][0]) == pytest.approx(12345.67, abs=0.1)


class Proxy:
    """What frameworks pass around in place of a text that is not there yet."""

    def __init__(self, kind: type) -> None:
        self.kind = kind

    @property
    def __class__(self) -> type:  # type: ignore[override]
        return self.kind


@pytest.mark.parametrize("kind", [int, float, str, bytes, decimal.Decimal, dt.date, dt.datetime, dt.timedelta])
def test_probe_a_parameter_is_what_it_says(attack: Attack, kind: type) -> None:
    with pytest.raises(dpsql.Rejected) as caught:
        attack.con.sql("SELECT COUNT(*) FROM patients WHERE age = ?", [Proxy(kind)]).plan(epsilon=1)
    assert [d.code for d in caught.value.diagnostics] == ["DP013"]


def test_probe_a_missing_time_is_null(attack: Attack) -> None:
    """It is a datetime for Python, of the year 1."""
    missing = pd.NaT
    sql = "SELECT COUNT(*) FROM patients WHERE ts >= ?"
    assert attack.con.sql(sql, [missing]).run(epsilon=1000).rows == ((0,),)


def test_probe_constants_keep_value_and_type_whatever_the_decimal_context() -> None:
    rng = random.Random(20)
    wanted = [2**k + d for k in range(127) for d in (-1, 0, 1)] + [2**127 - 1, -(2**127)]
    found = [literals.integer(sign * x) for x in wanted for sign in (1, -1)]
    for precision in range(1, 39):
        for scale in {0, 1, precision // 2, precision - 1, precision}:
            for whole in (10**precision - 1, 1, 10 ** (precision - 1), rng.randrange(10**precision)):
                digits = str(whole).zfill(precision)
                written = f"{digits[: precision - scale]}.{digits[precision - scale :]}"
                with decimal.localcontext(prec=3):  # whatever the program has set
                    plain = literals.number(written, Span(0, 1))
                    negative = literals.negated(plain, None)
                assert negative is not None
                found += [plain, negative]
    items = [typed_constant(DUCKDB, x.value, x.type) for x in found]
    (got,) = duckdb.execute(f"SELECT {', '.join(items)}").fetchall()
    (types,) = duckdb.execute(f"SELECT {', '.join(f'typeof({item})' for item in items)}").fetchall()
    for x, value, kind in zip(found, got, types, strict=True):
        assert (value, kind) == (x.value, str(x.type))
