"""A released table: its rows in every form, intervals, notes and text."""

from __future__ import annotations

import datetime as dt
import math
import re
from decimal import Decimal
from fractions import Fraction

import pytest

from dpsql.answers.results import frame_columns as frames
from dpsql.answers.results.answer import Release, column_intervals, first_rows, reaches, unique_names
from dpsql.api.connection import Connection
from dpsql.core.ir.recipes import Output
from dpsql.core.ir.types import Kind, SqlType
from dpsql.core.noise.integer_columns import Integers
from dpsql.core.release.noisy import NoisyRelease
from dpsql.diagnostics.errors import Rejected
from dpsql.frontend.aggregates.formula import Bounds, output_intervals

MIXED = """\
SELECT city, COUNT(*) AS n, SUM(fee) AS fees, AVG(age) AS age, COUNT(*) > 5 AS many, CAST(NULL AS INTEGER) AS nothing,
  DATE '2024-02-29' AS day, city = 'Bonn' AS bonn
FROM members GROUP BY city ORDER BY city"""


@pytest.fixture
def mixed(shared: Connection) -> Release:
    return shared.sql(MIXED).run(epsilon=4, fresh=True)


def test_rows(mixed: Release) -> None:
    assert mixed.columns == ("city", "n", "fees", "age", "many", "nothing", "day", "bonn")
    assert [str(t) for t in mixed.types][:4] == ["VARCHAR", "BIGINT", "DECIMAL(38,2)", "DOUBLE"]
    assert len(mixed) == 3 and list(mixed) == mixed.fetchall() == list(mixed.rows)
    for row in mixed:
        assert [type(v) for v in row] == [str, int, Decimal, float, bool, type(None), dt.date, bool]
    assert [row[0] for row in mixed] == ["Bonn", "Lyon", "Oslo"]
    # 1500 members in Bonn and in Lyon, none in Oslo, which is shown all the same.
    assert [abs(row[1] - truth) < 100 for row, truth in zip(mixed, (1500, 1500, 0), strict=True)] == [True] * 3
    assert [row[4] for row in mixed][:2] == [True, True] and [row[7] for row in mixed] == [True, False, False]


def test_the_forms_agree(mixed: Release) -> None:
    plain = mixed.to_dict()
    assert plain == {name: [row[i] for row in mixed.rows] for i, name in enumerate(mixed.columns)}
    frame, table, polar = mixed.df(), mixed.arrow(), mixed.pl()
    assert list(frame.columns) == table.column_names == polar.columns == list(plain)
    for name in ("city", "n", "age", "many", "bonn"):
        assert list(frame[name]) == table[name].to_pylist() == polar[name].to_list() == plain[name]
    assert table["fees"].to_pylist() == plain["fees"] and table["day"].to_pylist() == plain["day"]
    assert frame["nothing"].isna().all() and table["nothing"].null_count == 3 == polar["nothing"].null_count()


def test_integers_are_handed_on_as_they_are_held(shared: Connection) -> None:
    """No list is made of them; a frame is the caller's own; what noise carried out of a narrow type has a wider one."""
    answer = shared.sql("SELECT city, COUNT(*) AS n FROM members GROUP BY city").run(epsilon=4)
    before = answer.to_dict()["n"]
    frame, table, polar = answer.df(), answer.arrow(), answer.pl()
    frame["n"] *= 2
    assert answer.to_dict()["n"] == table["n"].to_pylist() == polar["n"].to_list() == before != list(frame["n"])
    held = {"n": Integers.of([1, -1, 300])}
    for name, fits in (("BIGINT", "int64"), ("TINYINT", "int64"), ("SMALLINT", "int16"), ("UTINYINT", "int64")):
        type_ = SqlType(Kind.INTEGER, name=name)
        assert frames.to_arrow(held, [type_])["n"].to_pylist() == [1, -1, 300]
        assert str(frames.to_arrow(held, [type_])["n"].type) == fits
        polar = frames.to_polars(held, [type_])
        assert polar["n"].to_list() == [1, -1, 300] and str(polar["n"].dtype).lower() == fits
        assert frames.to_pandas(held, [type_])["n"].dtype == "int64"
    wide = {"n": Integers.of([2**70])}
    huge = [SqlType(Kind.INTEGER, name="HUGEINT")]
    for made in (frames.to_arrow(wide, huge)["n"].to_pylist(), frames.to_polars(wide, huge)["n"].to_list()):
        assert made == [2**70]
    assert list(frames.to_pandas(wide, huge)["n"]) == [2**70]


def test_frames_with_intervals(shared: Connection) -> None:
    sql = "SELECT city, COUNT(*) AS n, SUM(age) / COUNT(*) AS mean, 1 AS one FROM members GROUP BY city"
    answer = shared.sql(sql).run(epsilon=4)
    names = ["city", "n", "n_low", "n_high", "mean", "mean_low", "mean_high", "one"]
    frame, table, polar = (make(intervals=True, level=0.9) for make in (answer.df, answer.arrow, answer.pl))
    assert list(frame.columns) == table.column_names == polar.columns == names
    for at, row in enumerate(answer.intervals(0.9)):
        for name in ("n", "mean"):
            ends = row[name]
            found = [frame[f"{name}_{end}"][at] for end in ("low", "high")]
            assert (ends is None and all(map(math.isnan, found))) or found == list(ends or ())
            assert (polar[f"{name}_low"][at], table[f"{name}_high"][at].as_py()) == (ends or (None, None))
    assert list(answer.df().columns) == ["city", "n", "mean", "one"]
    taken = shared.sql("SELECT COUNT(*) AS n, 1 AS n_low FROM members").run(epsilon=4)
    assert list(taken.df(intervals=True).columns) == ["n", "n_low_1", "n_high", "n_low"]
    with pytest.raises(Rejected):
        answer.df(intervals=True, level=1)


def test_no_rows(shared: Connection) -> None:
    empty = shared.sql("SELECT city, COUNT(*) AS n FROM members GROUP BY city LIMIT 0").run(epsilon=1)
    assert len(empty) == 0 and empty.fetchall() == [] and empty.intervals() == []
    assert empty.to_dict() == {"city": [], "n": []}
    assert list(empty.df().columns) == empty.arrow().column_names == empty.pl().columns == ["city", "n"]
    assert str(empty).split() == ["city", "n"]


def test_repeated_names(shared: Connection) -> None:
    result = shared.sql("SELECT COUNT(*) AS n, SUM(age) AS n, COUNT(*) AS n_1 FROM members").run(epsilon=100)
    assert result.columns == ("n", "n", "n_1")
    names = ["n", "n_1", "n_1_1"]
    assert list(result.to_dict()) == list(result.df().columns) == result.arrow().column_names == result.pl().columns
    assert len(set(result.to_dict())) == 3 and next(iter(result.to_dict())) == "n"
    assert list(result.intervals()[0]) == list(result.to_dict())
    assert unique_names(["n", "n", "n_1"]) == names
    assert unique_names(["n", "n_1", "n"]) == ["n", "n_1", "n_2"]
    values = result.to_dict()
    assert abs(values["n"][0] - 3000) < 50 and values["n_1"][0] > 50_000  # the sum has not taken the count's place


def test_intervals(mixed: Release) -> None:
    found = mixed.intervals(0.95)
    assert [set(row) for row in found] == [{"n", "fees", "age", "many", "nothing", "day", "bonn"}] * 3
    for values, row in zip(mixed.rows, found, strict=True):
        assert row["many"] is row["nothing"] is row["day"] is row["bonn"] is None
        for column, value in (("n", values[1]), ("fees", values[2])):
            low, high = row[column] or (0, 0)
            assert low < value < high and abs((low + high) / 2 - float(value)) <= 0.5
        low, high = row["age"] or (0, 0)
        assert 0 <= low <= values[3] <= high <= 100


def test_intervals_of_an_average_of_nobody(con: Connection) -> None:
    """Nobody is in Oslo: every average is possible there. At this ε a count's noise is 0 but once in e^40 runs."""
    query = con.sql("SELECT city, AVG(age) AS age FROM members GROUP BY city ORDER BY city")
    widths = [high - low for row in query.run(epsilon=100).intervals() for low, high in [row["age"] or (0, 0)]]
    assert widths[2] == 100 and 0 < widths[0] < 5


def test_intervals_widen_with_the_level(mixed: Release) -> None:
    found = [reaches(mixed, Fraction(level))[0]["fees"] for level in ("0.5", "0.9", "0.95", "0.999999")]
    widths = [max(below, above) for below, above in (w for w in found if w is not None) if below and above]
    assert sorted(widths) == widths and len(set(widths)) == 4


def test_the_width_shown_covers_the_interval(mixed: Release, con: Connection) -> None:
    """In Oslo is nobody: every average is possible, and what is shown may lie anywhere among them."""
    nobody = con.sql("SELECT AVG(age) AS age FROM members WHERE city = 'Oslo'").run(epsilon=100)
    for release in (mixed, nobody):
        names = unique_names(release.columns)
        for row, around, widths in zip(release.rows, release.intervals(), reaches(release), strict=True):
            for value, name in zip(row, names, strict=True):
                if (bounds := around.get(name)) is not None:
                    (low, high), (below, above) = bounds, widths[name] or (0, 0)
                    assert low is not None and high is not None and below is not None and above is not None
                    slack = 1e-6 * max(1, abs(low), abs(high))
                    assert float(value) - below <= low + slack and high <= float(value) + above + slack


@pytest.mark.parametrize("level", [0, 1, -0.5, 1.5, float("nan"), "x", None, True])
def test_levels_are_checked(mixed: Release, level: object) -> None:
    with pytest.raises(Rejected) as refusal:
        mixed.intervals(level)  # type: ignore[arg-type]
    assert refusal.value.diagnostics[0].code == "DP406"


def test_intervals_follow_their_rows(shared: Connection) -> None:
    """Sorting, filtering and limiting the answer keeps each interval beside its number."""
    inner = "SELECT city, COUNT(*) AS n FROM members GROUP BY city"
    sql = f"SELECT n, city FROM ({inner}) AS x WHERE n > 100 ORDER BY n LIMIT 1"
    result = shared.sql(sql).run(epsilon=1, fresh=True)
    assert len(result) == 1
    ((low, high),) = [row["n"] or (0, 0) for row in result.intervals()]
    assert low < result.rows[0][0] < high and high - low < 10


def test_intervals_of_what_is_no_row_of_a_release(shared: Connection) -> None:
    sql = "SELECT MAX(n) AS m FROM (SELECT city, COUNT(*) AS n FROM members GROUP BY city) AS x"
    answer = shared.sql(sql).run(epsilon=4)
    ((low, high),) = [row["m"] or (0, 0) for row in answer.intervals()]
    assert low < answer.rows[0][0] < high and answer.gaps() == [{}]
    rank = "SELECT city, RANK() OVER (ORDER BY COUNT(*)) AS r FROM members GROUP BY city"
    placed = shared.sql(rank).run(epsilon=4)
    assert [row["r"] for row in placed.intervals()] == [None] * 3
    assert {row["r"] for row in placed.gaps()} == {"noisy numbers decide the order or the partitions of the rows"}


IN_PART = (
    "SELECT city, COUNT(*) AS n, SUM(fee) AS fees, AVG(age) AS a, VAR_SAMP(age) AS v FROM members GROUP BY city",
    "SELECT n, city FROM (SELECT city, COUNT(*) AS n FROM members GROUP BY city) AS x WHERE n > 100 ORDER BY n DESC",
    "SELECT city, COUNT(*) AS n FROM members GROUP BY city UNION ALL SELECT city, SUM(age) FROM members GROUP BY city "
    "ORDER BY n",
    "SELECT city FROM members GROUP BY city",
    "SELECT city, 1 AS one FROM (VALUES ('a'), ('b'), ('c')) AS t(city) ORDER BY city DESC",
)


@pytest.mark.parametrize("sql", IN_PART, ids=lambda sql: sql[:40])
def test_intervals_of_the_first_rows(shared: Connection, sql: str) -> None:
    """Those that a page shows are those of the whole answer."""
    result = shared.sql(sql).run(epsilon=4, delta=1e-6, fresh=True)
    for most in range(len(result) + 2):
        shown = column_intervals(result, Fraction("0.95"), most)
        assert all(
            t.bounds == column_intervals(result, Fraction("0.95"))[name].bounds[:most] for name, t in shown.items()
        )
        assert reaches(result, most=most) == reaches(result)[:most]
        assert first_rows(result, most) == result.rows[:most]


def test_a_page_has_intervals_of_the_rows_that_it_shows(shared: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    result = shared.sql(f"{MIXED} DESC").run(epsilon=4, fresh=True)
    last = [row for row in re.findall("<tr>.*?</tr>", result._repr_html_()) if "Oslo" in row]
    asked: list[int] = []

    def counted(noisy: NoisyRelease, output: Output, level: Fraction) -> list[Bounds]:
        asked.append(len(noisy.keys))
        return output_intervals(noisy, output, level)

    monkeypatch.setattr("dpsql.planner.postprocessing.intervals.derived_columns.output_intervals", counted)
    for name in ("answer._MOST_IN_NOTEBOOKS", "answer._SHOWN"):
        monkeypatch.setattr(f"dpsql.answers.results.{name}", 1)
    page, text = result._repr_html_(), repr(result)
    assert set(asked) == {1} and re.findall("<tr>.*?</tr>", page) == last and "3 rows, of which the first 1" in page
    assert text.splitlines()[1].startswith("Oslo") and text.endswith("… (3 rows)")


def test_text(mixed: Release) -> None:
    lines = str(mixed).splitlines()
    assert len(lines) == 4 and lines[0].split() == list(mixed.columns)
    assert re.match(r"Bonn  1,?\d{3} ± [\d.]+ ", lines[1]) and "NULL" in lines[1] and "2024-02-29" in lines[1]
    assert "_noisy" not in repr(mixed) and "plan" not in repr(mixed)  # exact numbers are nowhere, but do not tempt
    assert len({line.index("±") for line in lines[1:]}) <= 3


def test_notes(shared: Connection) -> None:
    """What was clipped and limited, in plain words; the same before the run."""
    query = shared.sql("SELECT AVG(hours) AS h, COUNT(*) AS n FROM visits")
    result = query.run(epsilon=1)
    assert "hours is clipped to [0, 10]" in result.notes and "at most 4 rows per member counted" in result.notes
    assert query.plan(epsilon=1).notes == result.notes[: len(query.plan(epsilon=1).notes)]
    hidden = shared.sql("SELECT note, COUNT(*) AS n FROM members GROUP BY note").run(epsilon=1, delta=1e-6)
    assert any("groups of note are shown only where" in note for note in hidden.notes)
    assert not any("clipped" in note for note in hidden.notes)
    plain = shared.sql("SELECT COUNT(*) AS n FROM tills").run(epsilon=1)
    assert not any("counted" in note or "clipped" in note for note in plain.notes)


def test_a_result_holds_what_it_cost(mixed: Release) -> None:
    assert mixed.spent == mixed.plan.loss
    total = sum(Fraction(str(c["epsilon"])) for c in mixed.components)
    assert abs(total - mixed.spent.epsilon) < Fraction(1, 10**6)
    with pytest.raises(AttributeError):
        mixed.columns = ()  # type: ignore[misc]
    assert mixed.rows is mixed.rows  # made once


def test_text_shows_numbers_as_tables_do(shared: Connection) -> None:
    """A value and its ± are shown to the same digit, whatever their size."""
    answer = shared.sql("SELECT COUNT(*) AS n, SUM(CLIP(age, 0, 100) * 1e9) AS large FROM members").run(epsilon=2)
    ((n, large),) = answer.rows
    assert re.fullmatch(rf"{n:,} ± \d+ +{large:,.0f} ± [\d,]{{14,}}", str(answer).splitlines()[1])


def test_the_prompt_of_python_shows_the_first_rows(mixed: Release) -> None:
    assert repr(mixed) == str(mixed)


def test_the_prompt_of_python_tells_of_further_rows(shared: Connection) -> None:
    rows = ", ".join(f"({i})" for i in range(50))
    many = shared.sql(f"SELECT x FROM (VALUES {rows}) AS t(x)").run(epsilon=1)
    lines = repr(many).split("\n")
    assert len(lines) == 22 and lines[0] == "x" and lines[-1] == "… (50 rows)"
