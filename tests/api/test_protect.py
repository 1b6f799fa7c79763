"""A frame under protection without a policy file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy
import pandas
import polars
import pyarrow
import pytest

import dpsql

ROWS = {"member_id": [i // 4 for i in range(200)], "v": [float(i % 7) for i in range(200)], "k": ["a", "b"] * 100}
EXACT = 60_000


@pytest.mark.parametrize("frame", [pandas.DataFrame(ROWS), polars.DataFrame(ROWS), pyarrow.table(ROWS)])
def test_frames_of_each_kind_are_asked(frame: object) -> None:
    groups = {"k": ["a", "b"]}
    with dpsql.protect(frame, unit="member_id", bounds={"v": (0, 6)}, groups=groups, max_rows=4, budget=10**6) as con:
        assert con.tables == ("data",) and "unit member: all rows of one member_id" in con.describe()
        answer = con.sql("SELECT k, COUNT(*) AS n, SUM(v) AS s FROM data GROUP BY k ORDER BY k").run(epsilon=EXACT)
        sums = [sum(v for v, of in zip(ROWS["v"], ROWS["k"], strict=True) if of == k) for k in "ab"]
        assert [tuple(map(round, row[1:])) for row in answer] == [(100, sums[0]), (100, sums[1])]
        assert any("a new one starts anew" in note for note in answer.notes)


def test_its_budget_is_a_limit_and_a_file_keeps_it(tmp_path: Path) -> None:
    frame = pandas.DataFrame(ROWS)
    for left in (1, 0):
        with dpsql.protect(frame, unit=1, budget=1, ledger=tmp_path / "l.sqlite", epsilon=1) as con:
            assert con.budget.remaining == dpsql.PrivacyLoss(left)
            if left:
                answer = con.execute("SELECT COUNT(*) FROM data")
                assert not any("anew" in note for note in answer.notes)
            with pytest.raises(dpsql.BudgetExceeded):
                con.execute("SELECT COUNT(*) FROM data WHERE v > 3")


def test_without_limits_they_are_searched_and_a_null_is_a_group_if_it_is_listed() -> None:
    frame = pandas.DataFrame({**ROWS, "k": pandas.Categorical(["a", None] * 100)})
    bounds: dict[str, Any] = {"v": (numpy.int64(0), numpy.float32(6))}
    with dpsql.protect(frame, unit="member_id", budget=10**6, bounds=bounds, groups={"k": ["a"]}, table="t") as con:
        assert len(con.sql("SELECT k, COUNT(*) FROM t GROUP BY k").run(epsilon=EXACT)) == 1
        assert con.policy.tables["t"].search_rows
    with dpsql.protect(frame, unit="member_id", budget=1, groups={"k": ["a", None]}) as con:
        (column,) = [c for c in con.policy.tables["data"].columns.values() if c.name == "k"]
        assert getattr(column.domain, "null", None) is True


def test_columns_are_computed_and_lists_have_a_length() -> None:
    frame = pyarrow.table({**ROWS, "who": [f" M{i // 4}" for i in range(200)], "tags": [["x", "y", "z"]] * 200})
    computed = {"member": ("varchar", "lower(trim(who))"), "half": ("double", "v / 2"), "c": ("varchar", "upper(k)")}
    with dpsql.protect(
        frame, unit="member", bounds={"v": (0, 6)}, groups={"c": ["A", "B"]}, computed=computed, lengths={"tags": 2},
        max_rows=4, budget=10**9,
    ) as con:  # fmt: skip
        sums = [sum(v for v, of in zip(ROWS["v"], ROWS["k"], strict=True) if of == k) / 2 for k in "ab"]
        answer = con.sql("SELECT c, SUM(half) AS s FROM data GROUP BY c ORDER BY c").run(epsilon=EXACT)
        assert [round(row[1]) for row in answer] == list(map(round, sums))
        ((n,),) = con.sql("SELECT COUNT(*) FROM data, UNNEST(tags) AS t(tag)").run(epsilon=EXACT)
        assert n == 200  # two of three elements, and of each member four rows of eight
    with pytest.raises(dpsql.CannotOpen, match="column w does not exist"):
        dpsql.protect(frame, unit=1, budget=1, computed={"x": ("double", "w / 2")})


@pytest.mark.parametrize(
    ("keywords", "code", "said"),
    [
        ({"unit": "member", "budget": 1}, "DP903", "did you mean `member_id`"),
        ({"unit": 1, "budget": 1, "bounds": {"w": (0, 1)}}, "DP903", "no column `w`"),
        ({"unit": 1, "budget": 1, "bounds": {"v": 9}}, "DP003", "bounds"),
        ({"unit": 1, "budget": 1, "bounds": {"v": (9, 2)}}, "DP003", "lower < upper"),
        ({"unit": 0, "budget": 1}, "DP003", "rows"),
        ({"unit": 1, "budget": -1}, "DP003", "epsilon"),
    ],
)  # fmt: skip
def test_mistakes_are_told(keywords: dict[str, Any], code: str, said: str) -> None:
    with pytest.raises(dpsql.Error) as refused:
        dpsql.protect(pandas.DataFrame(ROWS), **keywords)
    assert refused.value.diagnostics[0].code == code and said in str(refused.value)
    with pytest.raises(dpsql.Rejected, match="got list"):
        dpsql.protect([1], unit=1, budget=1)


def test_the_budget_must_be_said() -> None:
    with pytest.raises(TypeError, match="budget"):
        dpsql.protect(pandas.DataFrame(ROWS), unit=1)  # type: ignore[call-arg]


def test_a_query_says_that_it_has_not_been_run() -> None:
    with dpsql.protect(pandas.DataFrame(ROWS), unit=1, budget=1) as con:
        query = con.sql("SELECT COUNT(*) FROM data")
        for method in ("df", "pl", "arrow", "fetchall"):
            with pytest.raises(dpsql.Rejected, match=rf"run\(epsilon=…\)\.{method}\(\)"):
                getattr(query, method)()
        assert con.budget.spent == dpsql.PrivacyLoss(0)


def test_a_description_is_the_policys_and_names_no_file() -> None:
    with dpsql.protect(pandas.DataFrame(ROWS), unit=1, budget=1, bounds={"v": (0, 6)}) as con:
        assert repr(con.describe()) == str(con.describe()) and "v          double, bounds [0, 6]" in con.describe(
            "DATA"
        )
        with pytest.raises(dpsql.Rejected, match="did you mean"):
            con.describe("dat")


def test_times_of_a_zone_are_read_as_its_clocks_show_them() -> None:
    times = pandas.date_range("2024-01-01", periods=200, freq="37min", tz="Asia/Kolkata")
    frame = pandas.DataFrame({**ROWS, "t": times})
    arrow = pyarrow.Table.from_pandas(frame)
    hours = {hour: int(n) for hour, n in times.hour.value_counts().items()}
    ends = times[0].tz_convert("UTC"), times[-1].to_pydatetime()
    for given in (frame, arrow, polars.from_pandas(frame), arrow.to_pandas(types_mapper=pandas.ArrowDtype)):
        with dpsql.protect(given, unit="member_id", bounds={"t": ends}, max_rows=4, budget=10**6) as con:
            assert "t          timestamp, from t AT TIME ZONE 'Asia/Kolkata', bounds [2024-01-01 00:00:00, " in str(
                con.describe("data")
            )
            answer = con.sql("SELECT hour(t) AS h, COUNT(*) AS n FROM data GROUP BY h ORDER BY h").run(epsilon=EXACT)
            assert {h: round(n) for h, n in answer if h is not None} == hours
    mere = pandas.DataFrame({**ROWS, "t": times.tz_convert("+02:00")})
    with dpsql.protect(mere, unit=1, budget=1) as con:
        assert "from t AT TIME ZONE 'UTC'" in str(con.describe("data"))


def test_columns_that_nobody_can_ask_are_left_out_unless_they_are_named() -> None:
    frame = polars.DataFrame({**ROWS, "s": [{"a": 1}] * 200})
    with dpsql.protect(frame, unit="member_id", budget=1) as con:
        assert list(con.policy.tables["data"].columns) == ["member_id", "v", "k"]
    with pytest.raises(dpsql.CannotOpen, match="STRUCT, cannot be used"):
        dpsql.protect(frame, unit="member_id", budget=1, groups={"s": ["a"]})
