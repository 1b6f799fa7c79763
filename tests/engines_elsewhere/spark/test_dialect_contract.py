"""What every dialect answers, on Spark: the tests of tests/engines/test_dialect_contract.py, each run here too."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from dpsql.core.ir.types import BIGINT, DOUBLE, HUGEINT, INTEGER, VARCHAR, decimal, list_of
from dpsql.diagnostics.errors import Rejected
from dpsql.engines.spark.settings import SET
from dpsql.spelling.spark_functions import SPARK
from tests.engines.test_dialect_contract import *  # noqa: F403
from tests.engines_elsewhere.spark.bare import Bare

for name in (
    "test_every_function_has_its_spelling_and_no_spelling_lacks_its_function",
    "test_a_function_that_cannot_be_spelled_is_refused_by_name",
    "test_a_spelling_may_refuse_what_it_is_given_and_says_why",
    "test_the_check_says_it_without_data",
):
    del globals()[name]  # which ask no engine


@pytest.fixture(scope="module")
def engine(server: str) -> Iterator[Bare]:
    """Only what the contract asks of: a dialect, and rows of a text printed in it."""
    opened = Bare(server, SPARK)
    yield opened
    opened.close()


def test_no_text_is_replaced_by_a_variable_of_the_machine(engine: Bare) -> None:
    """Spark replaces ${…} in a text before it reads it, whether it stands in a literal or in a name."""
    texts = ["${env:HOME}", "${spark.app.name}", "$", "$${x}", "\\${x}"]
    engine.session.conf.set("spark.sql.variable.substitute", "true")  # as it is where nobody sets it
    found = engine.fetch(f"SELECT {', '.join(f'{SPARK.text(text)} AS c{i}' for i, text in enumerate(texts))}")
    assert [c[0] for c in found.columns] == texts
    assert engine.fetch("SELECT '${spark.app.name}' AS x").columns[0] != ["${spark.app.name}"]
    engine.session.conf.set("spark.sql.variable.substitute", SET["spark.sql.variable.substitute"])
    with pytest.raises(Rejected, match="DP106"):
        SPARK.identifier("a${x}")


def test_sums_in_parts_are_exact_for_as_many_rows_as_there_may_be(engine: Bare) -> None:
    """No part of a sum has more than 63 bits, of 2⁴⁰ rows of the largest term, and what they make is exact."""
    for most in (2**22, 2**23, 2**31, 2**40, 2**44, 2**44 + 1, 2**62, 2**63 - 1):
        for x in (most, -most, most - 1, 1 - most):
            total = SPARK.total("x", BIGINT, most=most)
            rows = f"(VALUES (CAST({x} AS BIGINT)), (CAST({x} AS BIGINT)), (7), (NULL)) AS t(x)"
            assert engine.fetch(f"SELECT {total} AS y FROM {rows}").columns[0] == [2 * x + 7], (most, x)
            parts = re.findall(r"SUM\(CAST\((.*?) AS BIGINT\)\)", total)
            assert len(parts) == (1 if most < 2**23 else 2 if most <= 2**44 else 3)
            each = engine.fetch(f"SELECT {', '.join(f'{p} AS c{i}' for i, p in enumerate(parts))} FROM {rows} LIMIT 1")
            assert all(abs(part[0]) * 2**40 <= 2**63 for part in each.columns)
    assert SPARK.total("x", BIGINT) == SPARK.total("x", BIGINT, most=2**63 - 1)
    assert SPARK.total("x", INTEGER, distinct=True) == SPARK.total("x", HUGEINT, distinct=True)


def test_numbers_that_spark_would_round_or_wrap_silently_are_not(engine: Bare) -> None:
    """Each of these was seen to be wrong without an error: what is printed instead is right."""
    number = 12345678901234567890123456789012345678
    long = f"CAST('{number}' AS DECIMAL(38, 0))"
    seen = engine.fetch(
        f"SELECT - {long} AS a, {long} div 1 AS b, try_cast(9223372036854775808D AS BIGINT) AS c,"
        " CAST(2.5D AS INT) AS d, CAST('1e-38' AS DECIMAL(38, 38)) <> 0 AS e, CAST(2.5 AS INT) AS f"
    )
    assert [c[0] for c in seen.columns] == [
        -round(number, -4), (number + 2**63) % 2**64 - 2**63, 2**63 - 1, 2, False, 2,
    ]  # fmt: skip
    assert engine.fetch(f"SELECT {SPARK.round_to_integer('9223372036854775808D', BIGINT)} AS x").columns[0] == [None]


def test_what_is_no_text_is_read_as_null(engine: Bare) -> None:
    """A STRING may hold any bytes: fetched, one that is no UTF-8 would be an error that tells that it is there."""
    found = [
        "",
        "61",
        "00",
        "c3a9",
        "efbfbf",
        "f09f9880",
        "f48fbfbf",
        "ff",
        "61ff",
        "c3",
        "80",
        "c080",
        "eda080",
        "f4908080",
    ]
    rows = SPARK.values([f"{i}, CAST(X'{b}' AS STRING)" for i, b in enumerate(found)], ["i", "x"], "t")
    texts = engine.fetch(f"SELECT {SPARK.column('t.x', VARCHAR)} AS x FROM {rows} ORDER BY i").columns[0]
    listed = f"SELECT {SPARK.column('x', list_of(VARCHAR))} AS x FROM (SELECT collect_list(x) AS x FROM {rows})"
    for i, known in enumerate(found):
        try:
            wanted = bytes.fromhex(known).decode()
        except UnicodeDecodeError:
            wanted = None
        assert texts[i] == wanted, known
    assert engine.fetch(listed).columns[0][0] == texts
    with pytest.raises(UnicodeDecodeError):
        engine.fetch(f"SELECT x FROM {rows}")


def test_whole_numbers_end_at_38_digits() -> None:
    assert SPARK.largest == 10**38 - 1
    for value in (10**38, -(10**38), 2**127 - 1):
        with pytest.raises(Rejected, match="DP106"):
            SPARK.constant(value, HUGEINT)


def test_types_of_printed_values_are_theirs(engine: Bare) -> None:
    for type_, shown in (
        (INTEGER, "int"),
        (HUGEINT, "decimal(38,0)"),
        (decimal(9, 2), "decimal(9,2)"),
        (VARCHAR, "string"),
    ):
        assert engine.fetch(f"SELECT typeof({SPARK.constant(None, type_)}) AS x").columns[0] == [shown]
    assert engine.fetch(f"SELECT typeof({SPARK.constant(1.0, DOUBLE)}) AS x").columns[0] == ["double"]
