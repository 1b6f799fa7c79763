"""Texts as dates and timestamps: what DuckDB reads them as, or no constant."""

from __future__ import annotations

import duckdb
import pytest

from dpsql.core.ir.types import DATE, TIMESTAMP, TIMESTAMPTZ, SqlType
from dpsql.diagnostics.errors import Rejected
from dpsql.frontend.bind.expressions.literals import from_text
from dpsql.spelling.duckdb_functions import DUCKDB
from tests.support.planning import planned, policy


@pytest.mark.parametrize("target", [DATE, TIMESTAMP], ids=str)
@pytest.mark.parametrize(
    "text",
    [
        "1995-4-10", "1995-04-10", "1995/4/10", "1995 4 10", "95-4-10", " 1995-4-10", "1995-4/10", "19950410",
        "1995-W15-1", "1995-4-010", "1995-4-31", "1995-13-1", "1995-4-10 8:05", "1995-4-10T08:05:3", "1995-4-10 8",
        "1995-4-10 08:05:03.12", "1995-04-10 08:05:03.1234569", "1995-04-10 08:65", "1995-04-10 23:59:59", "soon", "",
    ],
)  # fmt: skip
def test_dates_are_what_duckdb_reads(text: str, target: SqlType) -> None:
    try:
        (read,) = duckdb.execute("SELECT CAST(? AS " + str(target) + ")", [text]).fetchall()[0]
    except duckdb.ConversionException:
        read = None
    found = from_text(text, target, None)
    assert (None if found is None else found.value) == read


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2024-02-29 23:30:00+00", "2024-02-29 23:30:00"), ("2024-2-29 23:30+01", "2024-02-29 22:30:00"),
        ("2024-02-29T23:30:00.5Z", "2024-02-29 23:30:00.500000"), ("2024-02-29 23:30:00-05:30", "2024-03-01 05:00:00"),
        ("2024/02/29 23:30:00+0130", "2024-02-29 22:00:00"), ("2024-02-29 23:30:00", "2024-02-29 23:30:00"),
        ("2024-02-29", "2024-02-29 00:00:00"),
        ("2024-02-29+01", None), ("2024-02-30 00:00+01", None), ("0001-01-01 00:00+10", None),
        ("2024-02-29 23:30 CET", None), ("2024-02-29 23:30 +01", None),
        ("now", None), ("2024-02-29 23:30+01:99999", None), ("2024-02-29 23:30++01", None),
    ],
)  # fmt: skip
def test_moments_without_an_offset_are_of_utc(text: str, utc: str | None) -> None:
    """It is the zone of the session; DuckDB reads what is read here."""
    found = from_text(text, TIMESTAMPTZ, None)
    assert (None if found is None else str(found.value)) == (None if utc is None else f"{utc}+00:00")
    if found is not None:
        (same,) = (
            duckdb.execute(
                f"SELECT {DUCKDB.constant(found.value, TIMESTAMPTZ)} = CAST(? AS TIMESTAMPTZ)",
                [text.replace("+0130", "+01:30") if "+" in text or "Z" in text or "-05" in text else f"{utc}+00"],
            ).fetchone()
            or ()
        )
        assert same


def test_moments_are_compared_and_are_no_keys() -> None:
    t = policy(
        "t: {unit: {column: id}, max_rows_per_unit: 1, columns: {id: {type: bigint}, seen: {type: timestamptz}}}"
    )
    for condition in (
        "seen > TIMESTAMPTZ '2024-01-01 00:00:00+01'",
        "seen <= '2024-01-01 00:00Z'",
        "seen IN ('2024-01-01 00:00+00')",
        "seen > '2024-01-01'",
        "seen > TIMESTAMPTZ '2024-01-01 00:00:00'",
        "seen > TIMESTAMP '2024-01-01 00:00:00' + INTERVAL 1 MONTH",
        "seen > now() - INTERVAL 30 DAY",
    ):
        plan = planned(f"SELECT COUNT(*) AS n FROM t WHERE {condition}", t)
        assert (
            "TIMESTAMPTZ '20" in plan.releases[0].statements[0].sql and "+00:00'" in plan.releases[0].statements[0].sql
        )
    for query, code in {
        "SELECT COUNT(*) AS n FROM t WHERE seen > 'soon'": "DP106",
        "SELECT seen, COUNT(*) AS n FROM t WHERE seen IN ('2024-01-01 00:00+00') GROUP BY seen": "DP301",
    }.items():
        with pytest.raises(Rejected) as caught:
            planned(query, t)
        (found,) = caught.value.diagnostics
        assert found.code == code and (code != "DP106" or "with its offset from UTC" in found.help[0])
