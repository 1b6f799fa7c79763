"""An answer as Arrow, pandas, polars, HTML and a picture: types from SQL, whatever the values are."""

from __future__ import annotations

import datetime as dt
import re
import sys
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import matplotlib as mpl
import pandas
import polars
import pyarrow
import pytest

import dpsql
from dpsql.answers.results import frame_columns as frames
from dpsql.core.ir.types import (
    BIGINT,
    BLOB,
    FLOAT,
    HUGEINT,
    INTEGER,
    INTERVAL,
    NULL,
    TIME,
    TIMESTAMPTZ,
    TINYINT,
    UBIGINT,
    UUID,
    decimal,
    list_of,
)  # fmt: skip

EVERY = """\
SELECT city, country, founded, counted, harbour, share, height, streets, CAST(NULL AS VARCHAR) AS nothing FROM cities"""
ARROW = [
    pyarrow.string(), pyarrow.string(), pyarrow.date32(), pyarrow.timestamp("us"), pyarrow.bool_(),
    pyarrow.decimal128(5, 2), pyarrow.float64(), pyarrow.int32(), pyarrow.string(),
]  # fmt: skip
POLARS = [
    polars.String, polars.String, polars.Date, polars.Datetime("us"), polars.Boolean,
    polars.Decimal(38, 2), polars.Float64, polars.Int32, polars.String,
]  # fmt: skip
TEXT = "str" if pandas.__version__ >= "3" else "object"
WITHOUT_NULL = [TEXT, TEXT, "datetime64[s]", "datetime64[us]", "bool", "object", "float64", "int64", TEXT]
WITH_NULL = [TEXT, TEXT, "datetime64[s]", "datetime64[us]", "boolean", "object", "float64", "Int64", TEXT]
WHICH = {
    "all": ("", 3, WITH_NULL),
    "no NULL": (" WHERE country IS NOT NULL", 2, WITHOUT_NULL),
    "nothing but NULL": (" WHERE country IS NULL", 1, WITH_NULL),
    "no rows": (" LIMIT 0", 0, WITHOUT_NULL),
}


@pytest.mark.parametrize(("where", "height", "dtypes"), WHICH.values(), ids=WHICH)
def test_the_types_do_not_depend_on_the_values(
    con: dpsql.Connection, where: str, height: int, dtypes: list[str]
) -> None:
    answer = con.execute(EVERY + where).release
    assert len(answer) == height
    table, polar, panda = answer.arrow(), answer.pl(), answer.df()
    assert table.schema.types == ARROW and polar.dtypes == POLARS and [str(t) for t in panda.dtypes] == dtypes
    assert table.num_rows == len(polar) == len(panda) == height
    rows = list(answer.rows)
    assert [tuple(row.values()) for row in table.to_pylist()] == polar.rows() == rows
    for name, values in answer.to_dict().items():
        found = [None if pandas.isna(v) else v for v in panda[name]]
        if name in ("founded", "counted"):
            found = [None if v is None else v.to_pydatetime() for v in found]
            midnight = dt.datetime.min.time()
            values = [dt.datetime.combine(v, midnight) if type(v) is dt.date else v for v in values]
        assert found == values


def test_types_that_no_table_here_has() -> None:
    """Each with a value and with none."""
    utc = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    uuid = "00000000-0000-0000-0000-000000000001"
    for type_, value, arrow, polar, panda in [
        (TINYINT, -128, pyarrow.int8(), polars.Int8, "int64"),
        (BIGINT, 2**63 - 1, pyarrow.int64(), polars.Int64, "int64"),
        (UBIGINT, 2**64 - 1, pyarrow.uint64(), polars.UInt64, "object"),
        (HUGEINT, 7, pyarrow.int64(), polars.Int64, "int64"),
        (FLOAT, 0.5, pyarrow.float64(), polars.Float64, "float64"),
        (TIMESTAMPTZ, utc, pyarrow.timestamp("us", "UTC"), polars.Datetime("us", "UTC"), "datetime64[us, UTC]"),
        (TIME, dt.time(1, 2, 3, 4), pyarrow.time64("us"), polars.Time, "object"),
        (INTERVAL, dt.timedelta(days=1), pyarrow.duration("us"), polars.Duration("us"), "timedelta64[us]"),
        (BLOB, b"x\0", pyarrow.binary(), polars.Binary, "object"),
        (UUID, uuid, pyarrow.string(), polars.String, "object"),
        (NULL, None, pyarrow.null(), polars.Null, "object"),
        (list_of(INTEGER), [1, None], pyarrow.list_(pyarrow.int32()), polars.List(polars.Int32), "object"),
        (decimal(38, 2), Decimal("-1.05"), pyarrow.decimal128(38, 2), polars.Decimal(38, 2), "object"),
    ]:
        for values in ([value], []):
            table = frames.to_arrow({"x": values}, [type_])
            assert table.schema.types == [arrow] and table["x"].to_pylist() == values
            frame = frames.to_polars({"x": values}, [type_])
            assert frame.dtypes == [polar] and frame["x"].to_list() == values
            wanted = "int64" if not values and type_ is UBIGINT else panda
            assert str(frames.to_pandas({"x": values}, [type_])["x"].dtype) == wanted


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 10**38 - 1, 2**127 - 1, -(2**127)])
def test_integers_beyond_64_bits_stay_exact(value: int) -> None:
    for values in ([value], [value, None], [5, value]):
        table = frames.to_arrow({"x": values}, [HUGEINT])
        assert [None if v is None else int(v) for v in table["x"].to_pylist()] == values
        assert frames.to_polars({"x": values}, [HUGEINT])["x"].to_list() == values
        assert [None if pandas.isna(v) else v for v in frames.to_pandas({"x": values}, [HUGEINT])["x"]] == values


def test_numbers_that_noise_has_carried_out_of_their_type() -> None:
    assert frames.to_arrow({"x": [300, -300]}, [TINYINT])["x"].to_pylist() == [300, -300]
    assert frames.to_polars({"x": [300, -300]}, [TINYINT])["x"].to_list() == [300, -300]
    wide = Decimal("123456.78")
    assert frames.to_arrow({"x": [wide]}, [decimal(5, 2)])["x"].to_pylist() == [wide]
    assert frames.to_polars({"x": [wide]}, [decimal(5, 2)])["x"].to_list() == [wide]


def test_a_sum_of_integers_and_one_of_decimals(con: dpsql.Connection) -> None:
    answer = con.execute("SELECT SUM(age) AS age, SUM(fee) AS fee, AVG(age) AS mean, COUNT(*) > 5 AS many FROM members")
    assert [str(t) for t in answer.types] == ["HUGEINT", "DECIMAL(38,2)", "DOUBLE", "BOOLEAN"]
    types = [pyarrow.int64(), pyarrow.decimal128(38, 2), pyarrow.float64(), pyarrow.bool_()]
    assert answer.arrow().schema.types == types
    assert [str(t) for t in answer.df().dtypes] == ["int64", "object", "float64", "bool"]


def test_the_arrow_stream(con: dpsql.Connection) -> None:
    answer = con.execute(EVERY)
    for one in (answer, answer.release):
        assert pyarrow.table(one).equals(answer.arrow())
        assert polars.DataFrame(one).rows() == list(answer.rows)
    text = pyarrow.schema([("city", pyarrow.large_string())])
    narrow = con.execute("SELECT city FROM cities")
    assert pyarrow.RecordBatchReader.from_stream(narrow, schema=text).read_all().schema == text


def test_many_rows_are_held_in_columns(con: dpsql.Connection) -> None:
    answer = con.sql("SELECT city, COUNT(*) AS n FROM members GROUP BY city").run()
    answer.df(), answer.pl(), answer.arrow(), len(answer), answer.intervals()
    assert "rows" not in vars(answer._table)  # no row was made
    assert answer.rows is answer.rows and "rows" in vars(answer._table)
    cur = con.execute("SELECT city, SUM(age) AS ages FROM members GROUP BY city")
    cur.df(), cur.rowcount, cur.description
    assert "rows" not in vars(cur.release._table) and cur.fetchone() and "rows" in vars(cur.release._table)


# --- HTML ------------------------------------------------------------------------------------------------------------


def test_html(con: dpsql.Connection) -> None:
    page = con.sql("SELECT city, COUNT(*) AS n FROM members GROUP BY city ORDER BY city").run()._repr_html_()
    assert re.search(r'<tr><td style="text-align: left">Bonn</td><td style="text-align: right">[\d,]+ ± \d', page)
    assert page.count("<tr>") == 4 and "<p>3 rows; ± at 95 %; spent " in page and "±" in page


def test_html_is_escaped(con: dpsql.Connection) -> None:
    sql = "SELECT '<script>alert(1)</script>' AS \"<b>\", '\x1b[31m &' AS y FROM cities LIMIT 1"
    page = con.execute(sql)._repr_html_()
    assert "&lt;script&gt;" in page and "&lt;b&gt;" in page and "&amp;" in page
    assert "<script" not in page and "<b>" not in page and "\x1b" not in page


def test_html_of_many_rows_is_shortened(con: dpsql.Connection) -> None:
    long = "SELECT a.city FROM cities AS a, cities AS b, cities AS c, cities AS d"
    page = con.execute(long)._repr_html_()
    assert page.count("<tr>") == 21 and "81 rows, of which the first 20 are shown" in page
    assert "<p>0 rows;" in con.execute(long + " LIMIT 0")._repr_html_()
    assert "<p>1 row;" in con.execute(long + " LIMIT 1")._repr_html_()


# --- pictures --------------------------------------------------------------------------------------------------------


@pytest.fixture
def pyplot() -> Iterator[object]:
    mpl.use("Agg")
    from matplotlib import pyplot

    yield pyplot
    pyplot.close("all")


BY_CITY = "SELECT city, COUNT(*) AS n, AVG(age) AS age FROM members GROUP BY city ORDER BY city"


@pytest.mark.usefixtures("pyplot")
def test_bars_with_error_bars(con: dpsql.Connection) -> None:
    answer = con.sql(BY_CITY).run()
    ax = answer.plot(y="n")
    assert ax.get_ylabel() == "n" and ax.get_xlabel() == "city" and ax.get_title() == "n by city, ± at 95 %"
    assert [label.get_text() for label in ax.get_xticklabels()] == ["Bonn", "Lyon", "Oslo"]
    assert [bar.get_height() for bar in ax.patches] == [row[1] for row in answer]
    (container,) = [c for c in ax.containers if hasattr(c, "errorbar") and c.errorbar is not None]
    (lines,) = container.errorbar.lines[2]
    drawn = [tuple(segment[:, 1]) for segment in lines.get_segments()]
    wanted = [row["n"] or (0, 0) for row in answer.intervals()]
    assert [pytest.approx(ends) for ends in wanted] == drawn
    ax.figure.canvas.draw()


@pytest.mark.usefixtures("pyplot")
@pytest.mark.parametrize("kind", ["bar", "point"])
def test_computed_numbers_have_error_bars_where_they_have_intervals(con: dpsql.Connection, kind: Any) -> None:
    """A ratio of which one city's noisy denominator may be 0 has none there, but for one run in 10⁹."""
    level = 1 - Fraction(1, 10**9)
    sql = "SELECT city, SUM(age) / COUNT(*) FILTER (WHERE city <> 'Oslo') AS r FROM members GROUP BY city ORDER BY city"
    answer = con.sql(sql).run(epsilon=8)
    around = [row["r"] for row in answer.intervals(level)]
    assert around[0] is not None and around[2] is None
    assert answer.gaps(level)[2] == {"r": "denominator may be 0"}
    ax = answer.plot(kind=kind, level=level)
    assert ax.get_title().startswith("r by city, ± at")
    (container,) = [c for c in ax.containers if hasattr(c, "errorbar") and c.errorbar] or ax.containers
    (lines,) = getattr(container, "errorbar", container).lines[2]
    drawn = [tuple(segment[:, 1]) for segment in lines.get_segments() if len(segment)]
    assert [pytest.approx(ends) for ends in around[:2]] == drawn
    ax.figure.canvas.draw()


@pytest.mark.usefixtures("pyplot")
def test_several_measures_are_drawn_one_below_the_other(con: dpsql.Connection) -> None:
    first, second = con.execute(BY_CITY).plot()
    assert (first.get_ylabel(), second.get_ylabel()) == ("n", "age") and first.figure is second.figure
    assert (first.get_title(), second.get_title()) == ("n, age by city, ± at 95 %", "")


def test_points_where_the_key_is_a_number_or_a_date(con: dpsql.Connection, pyplot: object) -> None:
    sql = "SELECT EXTRACT(MONTH FROM joined) AS month, COUNT(*) AS n FROM members GROUP BY month ORDER BY month"
    ax = con.execute(sql).plot()
    assert not ax.patches and list(ax.lines[0].get_xdata()) == list(range(1, 13))
    assert con.execute(sql).plot(kind="bar").patches
    sql = "SELECT DATE_TRUNC('month', joined) AS month, COUNT(*) AS n FROM members GROUP BY 1 ORDER BY 1"
    assert not con.execute(sql).plot().patches


@pytest.mark.usefixtures("pyplot")
def test_a_released_date_is_no_key(con: dpsql.Connection) -> None:
    sql = "SELECT city, COUNT(*) AS n, MEDIAN(joined) AS half FROM members GROUP BY city ORDER BY city"
    assert con.execute(sql).plot().get_xlabel() == "city"


@pytest.mark.usefixtures("pyplot")
def test_what_there_is_to_choose(con: dpsql.Connection) -> None:
    from matplotlib import pyplot

    answer = con.execute(BY_CITY)
    _, own = pyplot.subplots()
    assert answer.plot(y="age", ax=own, kind="point") is own and not own.patches
    assert answer.plot(y=["n"], x="age").get_xlabel() == "age"
    assert len(con.execute("SELECT COUNT(*) AS n FROM members").plot().patches) == 1  # no key at all
    assert not con.execute(BY_CITY + " LIMIT 0").plot(y="n").patches
    dollars = con.execute("SELECT '$x^' || city AS c, COUNT(*) AS n FROM members GROUP BY city").plot()
    dollars.figure.canvas.draw()  # names are no formulas


@pytest.mark.usefixtures("pyplot")
@pytest.mark.parametrize(
    "wrong", [{"y": "nothing"}, {"y": "city"}, {"x": "nothing"}, {"kind": "pie"}, {"y": ["n", "age"], "ax": object()}]
)
def test_what_cannot_be_drawn(con: dpsql.Connection, wrong: dict[str, object]) -> None:
    with pytest.raises(dpsql.Rejected) as refusal:
        con.execute(BY_CITY).plot(**wrong)  # type: ignore[arg-type]
    assert refusal.value.diagnostics[0].code == "DP903"


@pytest.mark.usefixtures("pyplot")
def test_an_answer_without_numbers(con: dpsql.Connection) -> None:
    with pytest.raises(dpsql.Rejected):
        con.execute("SELECT city FROM cities").plot()


@pytest.mark.parametrize(
    ("form", "extra", "package"),
    [
        ("df", "pandas", "pandas"),
        ("pl", "polars", "polars"),
        ("arrow", "arrow", "pyarrow"),
        ("__arrow_c_stream__", "arrow", "pyarrow"),
        ("plot", "plot", "matplotlib"),
    ],
)
def test_a_package_that_is_missing_is_named_with_what_brings_it(
    con: dpsql.Connection, monkeypatch: pytest.MonkeyPatch, form: str, extra: str, package: str
) -> None:
    answer = con.execute("SELECT COUNT(*) AS n FROM members")
    for module in (package, f"{package}.pyplot"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(dpsql.Rejected) as refusal:
        getattr(answer, form)()
    (found,) = refusal.value.diagnostics
    assert (found.code, found.message) == ("DP903", f"{package} is not installed")
    assert found.help == (f"pip install 'dpsql[{extra}]'",) and answer.fetchone()


def test_any_other_missing_module_is_no_missing_extra() -> None:
    with pytest.raises(ModuleNotFoundError), frames.extra("pandas"):
        raise ModuleNotFoundError("No module named 'numpy'", name="numpy")
