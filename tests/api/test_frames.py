"""DataFrames and Arrow tables as tables of a policy, without a database and without a connection of one's own."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas
import pyarrow
import pytest

import dpsql
from dpsql.core.ledger.memory import MemoryLedger
from tests.api.conftest import POLICY, cities, members


def open_(frames: Any, policy: dict[str, Any] = POLICY, **keywords: Any) -> dpsql.Connection:
    policy_ = dpsql.Policy.from_dict(policy)
    return dpsql.connect(policy_, frames=frames, ledger=MemoryLedger("club"), epsilon=60_000, **keywords)


def test_they_are_copied() -> None:
    """What happens to the frame after it was given changes no answer, and no copy of it can be had by SQL."""
    frame = members().to_pandas()
    with open_({"members": frame, "cities": cities()}) as con:
        frame["age"] = 0
        assert con.execute("SELECT SUM(age) AS s FROM members").fetchone() == (sum(i % 80 for i in range(3000)),)
        with pytest.raises(dpsql.Rejected):
            con.execute("SELECT COUNT(*) FROM given_frame")


def test_names_are_those_of_the_policy_in_any_case() -> None:
    with open_({"MEMBERS": members(), "Cities": cities()}) as con:
        assert con.execute("SELECT COUNT(*) AS n FROM members").fetchone() == (3000,)


def refused(frames: Any, policy: dict[str, Any] = POLICY) -> dpsql.Error:
    with pytest.raises(dpsql.Error) as refusal:
        open_(frames, policy).close()
    assert refusal.value.__cause__ is None
    return refusal.value


def test_a_frame_for_no_table_is_refused() -> None:
    error = refused({"members": members(), "citties": cities()})
    assert isinstance(error, dpsql.CannotOpen) and error.diagnostics[0].code == "DP004"
    assert "`citties`" in str(error) and "did you mean `cities`" in str(error)
    assert refused({5: cities()}).diagnostics[0].code == "DP004"
    with duckdb.connect() as own, pytest.raises(dpsql.CannotOpen):
        dpsql.connect(own, policy=dpsql.Policy.from_dict(POLICY), frames={"nothing": cities()}, optimizers="ours")


def test_a_table_without_a_frame_is_refused() -> None:
    error = refused({"members": members()})
    assert error.diagnostics[0].code == "DP004" and "tables.cities" in str(error)


def test_two_frames_for_a_table_are_refused() -> None:
    assert refused({"members": members(), "cities": cities(), "CITIES": cities()}).diagnostics[0].code == "DP903"


def test_frames_are_a_mapping() -> None:
    assert refused([members()]).diagnostics[0].code == "DP903"


def test_nobody_but_the_custodian_says_where_rows_lie(tmp_path: Path) -> None:
    pandas.DataFrame({"city": ["Bonn"], "country": ["Germany"]}).to_parquet(tmp_path / "cities.parquet")
    tables = {**POLICY["tables"], "cities": {"public": True, "source": "read_parquet('cities.parquet')"}}
    policy = dpsql.Policy.from_dict({**POLICY, "tables": tables}, directory=tmp_path)
    ledger = MemoryLedger("club")
    with pytest.raises(dpsql.Rejected) as refusal:
        dpsql.connect(policy, frames={"members": members(), "cities": cities()}, ledger=ledger)
    assert refusal.value.diagnostics[0].code == "DP903" and "source" in str(refusal.value)
    with dpsql.connect(policy, frames={"members": members()}, ledger=ledger, epsilon=4000) as con:  # beside each other
        counted = con.execute("SELECT country, COUNT(*) AS n FROM members JOIN cities USING (city) GROUP BY country")
        assert counted.fetchall() == [("Germany", 1500)]


@pytest.mark.parametrize(
    ("column", "values", "said"),
    [
        ("age", ["x"] * 3, "type is integer in the policy but varchar in the data"),
        ("age", [1.5] * 3, "type is integer in the policy but double in the data"),
        ("fee", [0.5] * 3, "type is decimal(8,2) in the policy but double in the data"),
        ("fee", [Decimal("0.125")] * 3, "type is decimal(8,2) in the policy but decimal(3,3) in the data"),
        ("joined", ["2024-01-01"] * 3, "type is date in the policy but varchar in the data"),
    ],
)
def test_types_are_compared(column: str, values: list[Any], said: str) -> None:
    frame = members(3).drop([column]).append_column(column, pyarrow.array(values))
    error = refused({"members": frame, "cities": cities()})
    assert error.diagnostics[0].code == "DP004" and said in str(error)
    missing = refused({"members": members().drop([column]), "cities": cities()})
    assert missing.diagnostics[0].code == "DP004" and "there is no such column" in str(missing)


@pytest.mark.parametrize(
    ("column", "values"),
    [("age", [2**31] * 3), ("fee", [Decimal("1000000.25")] * 3), ("id", pyarrow.array([2**63] * 3, pyarrow.uint64()))],
    ids=["integer", "decimal", "bigint"],
)
def test_values_that_do_not_fit_are_refused_when_opening(column: str, values: list[Any]) -> None:
    """And the refusal names no value."""
    frame = members(3).drop([column]).append_column(column, pyarrow.array(values))
    error = refused({"members": frame, "cities": cities()})
    assert error.diagnostics[0].code == "DP006" and str(values[0]) not in str(error) and "`members`" in str(error)


@pytest.mark.parametrize("frame", [5, None, "members", object(), [1, 2], {"id": "x"}])
def test_what_is_no_frame(frame: object) -> None:
    error = refused({"members": frame, "cities": cities()})
    assert error.diagnostics[0].code in ("DP006", "DP004") and error.__context__ is None


def test_objects_of_pandas_that_are_no_column() -> None:
    """What DuckDB says about a column of mixed values quotes one of them."""
    frame = members(3).to_pandas().assign(age=[1, "secret", 3.5])
    error = refused({"members": frame, "cities": cities()})
    assert "secret" not in str(error) and "secret" not in repr(error.__context__)


def test_limits_and_verification_work_with_frames() -> None:
    frames = {"members": members(), "cities": cities()}
    with open_(frames, threads=1, memory_limit="1GB") as con:
        assert con.execute("SELECT COUNT(*) AS n FROM members").fetchone() == (3000,)
    found = dpsql.verify_policy(dpsql.Policy.from_dict(POLICY), frames=frames)
    assert found.holds
    twice = pyarrow.concat_tables([members(5), members(5)])
    assert not dpsql.verify_policy(dpsql.Policy.from_dict(POLICY), frames={**frames, "members": twice}).holds
