"""Every spelling of a quantile is one of two aggregates at an exact p, and what is none of them is refused by name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import pytest

from dpsql.core.ir.nodes import Aggregate, AggregateCall
from dpsql.core.ir.short_text import expression
from dpsql.core.ir.walk import walk
from dpsql.diagnostics.diagnostic import Diagnostic, Source
from dpsql.diagnostics.errors import Rejected
from dpsql.frontend.aggregates.arguments import label
from dpsql.frontend.bind.statement import bind
from dpsql.frontend.parse import parse
from dpsql.policy.policy import Policy
from dpsql.service.checks.check import static_plan

POLICY = Policy.from_yaml("""\
version: 1
name: shop
tables:
  t:
    unit: {column: id}
    max_rows_per_unit: 20
    columns:
      id: {type: bigint}
      n: {type: integer, bounds: [0, 100]}
      big: {type: hugeint}
      price: {type: 'decimal(9,2)', bounds: [0, 1000]}
      x: {type: double, bounds: [0, 10]}
      f: {type: float}
      day: {type: date, bounds: [2024-01-01, 2024-12-31]}
      at: {type: timestamp}
      zoned: {type: timestamptz}
      noon: {type: time}
      s: {type: varchar}
      b: {type: boolean}
      median: {type: integer}
      within: {type: integer}
  stores:
    public: true
    columns:
      size: {type: integer}
defaults: {epsilon: 1}
budgets: {total: {epsilon: 9}}
""")
CONT, DISC = "quantile_cont", "quantile_disc"


def calls(sql: str, dialect: str = "duckdb", parameters: Sequence[Any] | Mapping[str, Any] = ()) -> list[AggregateCall]:
    root = bind(parse(Source(sql), dialect), POLICY, parameters).root
    return [call for node in walk(root) if isinstance(node, Aggregate) for call in node.calls]


def call(
    written: str, dialect: str = "duckdb", parameters: Sequence[Any] | Mapping[str, Any] = (), of: str = "t"
) -> AggregateCall:
    (found,) = calls(f"SELECT {written} AS q FROM {of}", dialect, parameters)
    return found


def refused(written: str, dialect: str = "duckdb", parameters: Sequence[Any] = ()) -> Diagnostic:
    sql = f"SELECT {written} AS q FROM t"
    with pytest.raises(Rejected) as refusal:
        bind(parse(Source(sql), dialect), POLICY, parameters)
    (found,) = refusal.value.diagnostics
    assert found.span is not None and 0 <= found.span.start < found.span.end <= len(sql) and found.help
    return found


SPELLINGS = [
    ("MEDIAN(x)", CONT, "1/2"),
    ("median(n)", CONT, "1/2"),
    ("QUANTILE(x, 0.9)", DISC, "9/10"),
    ("QUANTILE_CONT(x, .25)", CONT, "1/4"),
    ("quantile_disc(x, 0.999999)", DISC, "999999/1000000"),
    ("APPROX_QUANTILE(x, 1e-3)", DISC, "1/1000"),
    ("PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY x)", CONT, "9/10"),
    ("PERCENTILE_DISC(0.9) WITHIN GROUP (ORDER BY x ASC)", DISC, "9/10"),
    ("PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY x DESC)", CONT, "1/10"),
    ("percentile_disc(0.9) within group (order by x desc)", DISC, "1/10"),
    ("PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY x DESC)", DISC, "1/2"),
    ("PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY x NULLS FIRST)", CONT, "9/10"),
    ("PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY x DESC NULLS LAST)", CONT, "1/10"),
    ("PERCENTILE_CONT(x, 0.3)", CONT, "3/10"),
    ("PERCENTILE_DISC(x, 0.3)", DISC, "3/10"),
    ("APPROX_QUANTILES(x, 3)[OFFSET(1)]", DISC, "1/3"),
    ("APPROX_QUANTILES(x, 3)[ORDINAL(3)]", DISC, "2/3"),
    ("APPROX_QUANTILES(x, 100)[SAFE_OFFSET(99)]", DISC, "99/100"),
    ("approx_quantiles(x, 1000000)[safe_ordinal(2)]", DISC, "1/1000000"),
]


@pytest.mark.parametrize(("written", "function", "p"), SPELLINGS)
def test_every_spelling_is_one_of_two_aggregates_at_an_exact_p(written: str, function: str, p: str) -> None:
    found = call(written)
    assert (found.function, found.p) == (function, Fraction(p))
    assert found.arg is not None and expression(found.arg) in ("x", "n") and not found.distinct and found.filter is None


@pytest.mark.parametrize("written", [s for s, _, _ in SPELLINGS if not s.lower().startswith("approx_quantiles")])
def test_filter_may_follow(written: str) -> None:
    filtered, plain = call(f"{written} FILTER (WHERE n > 3)"), call(written)
    assert filtered.filter is not None and expression(filtered.filter) == "n > 3"
    assert (filtered.function, filtered.p) == (plain.function, plain.p)


@pytest.mark.parametrize("written", [s for s, _, _ in SPELLINGS])
def test_the_whole_call_is_pointed_at(written: str) -> None:
    found = call(written)
    assert found.span is not None
    shown = f"SELECT {written} AS q FROM t"[found.span.start : found.span.end]
    assert shown == written or ".25" in written  # sqlglot gives such a number no place


def test_the_same_quantile_in_two_spellings_is_one_column() -> None:
    (one,) = calls(
        "SELECT MEDIAN(x) AS a, QUANTILE_CONT(x, 0.50) - PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x) FROM t"
    )
    assert one.p == Fraction(1, 2)
    found = calls("SELECT QUANTILE(x, 0.5), MEDIAN(x), QUANTILE_CONT(x, 0.6), QUANTILE(x, 0.5) + 1 FROM t")
    assert [(c.function, str(c.p)) for c in found] == [(DISC, "1/2"), (CONT, "1/2"), (CONT, "3/5")]


def test_quantiles_stand_in_having_and_order_by() -> None:
    found = calls("SELECT n FROM t GROUP BY n HAVING MEDIAN(x) > 3 ORDER BY QUANTILE_DISC(x, 0.9) DESC")
    assert [c.function for c in found] == [CONT, DISC]


@pytest.mark.parametrize(
    ("column", "continuous", "discrete"),
    [
        ("n", "DOUBLE", "INTEGER"),
        ("big", "DOUBLE", "HUGEINT"),
        ("price", "DECIMAL(9,2)", "DECIMAL(9,2)"),
        ("x", "DOUBLE", "DOUBLE"),
        ("f", "FLOAT", "FLOAT"),
        ("day", "DATE", "DATE"),
        ("at", "TIMESTAMP", "TIMESTAMP"),
    ],
)
def test_types(column: str, continuous: str, discrete: str) -> None:
    assert str(call(f'MEDIAN("{column}")').column.type) == continuous
    assert str(call(f'QUANTILE("{column}", 0.1)').column.type) == discrete


@pytest.mark.parametrize(
    ("written", "given", "p"),
    [
        ("QUANTILE_CONT(x, ?)", [0.9], "9/10"),
        ("QUANTILE_CONT(x, $p)", {"p": 0.1}, "1/10"),
        ("PERCENTILE_DISC($1) WITHIN GROUP (ORDER BY x DESC)", [0.3], "7/10"),
        ("APPROX_QUANTILES(x, ?)[OFFSET(?)]", [7, 3], "3/7"),
    ],
)
def test_p_may_be_a_parameter(written: str, given: Any, p: str) -> None:
    """A float means the decimal that it is written as: 0.9, and not 0.90000000000000002220…"""
    assert call(written, parameters=given).p == Fraction(p)


def test_names_of_quantiles_are_no_keywords() -> None:
    found = calls("SELECT MEDIAN(median) AS quantile, MEDIAN(within) AS approx_quantiles FROM t AS percentile_cont")
    assert [c.function for c in found] == [CONT, CONT]


@pytest.mark.parametrize(("p", "shown"), [("0.5", "0.5"), ("0.125", "0.125"), ("1e-6", "1e-6")])
def test_labels_say_p(p: str, shown: str) -> None:
    assert label(call(f"QUANTILE_DISC(x, {p})")) == f"QUANTILE_DISC(x, {shown})"
    assert label(call("APPROX_QUANTILES(x, 3)[OFFSET(1)]")) == "QUANTILE_DISC(x, 1/3)"


# --- GoogleSQL's bounds --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", ["duckdb", "bigquery"])
@pytest.mark.parametrize(
    ("written", "p"),
    [
        ("PERCENTILE_CONT(x, 0.9, contribution_bounds_per_row => (-1, 2.5))", "9/10"),
        ("PERCENTILE_DISC(x, 0.9, contribution_bounds_per_row => (-1, 2.5))", "9/10"),
        ("APPROX_QUANTILES(x, 4, contribution_bounds_per_row => (-1, 2.5))[OFFSET(1)]", "1/4"),
        ("PERCENTILE_CONT(0.9, contribution_bounds_per_row => (-1, 2.5)) WITHIN GROUP (ORDER BY x DESC)", "1/10"),
    ],
)
def test_bounds_in_the_call_clip_the_values(dialect: str, written: str, p: str) -> None:
    found = call(f"{written}", dialect)
    assert found.p == Fraction(p) and found.per_group is None
    assert found.arg == call("QUANTILE(CLIP(x, -1, 2.5), 0.5)").arg


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("PERCENTILE_CONT(x, 0.5, contribution_bounds_per_group => (0, 9))", "bounds each value"),
        ("MEDIAN(x, contribution_bounds_per_row => (0, 9))", "MEDIAN takes no argument"),
        ("QUANTILE_CONT(x, 0.5, contribution_bounds_per_row => (0, 9))", "QUANTILE_CONT takes no argument"),
        ("PERCENTILE_CONT(x, 0.5, contribution_bounds_per_row => (0, 9)) OVER ()", "window function"),
    ],
)
def test_bounds_elsewhere_are_refused(written: str, said: str) -> None:
    found = refused(written)
    assert found.code == "DP014" and said in found.message


# --- dialects ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dialect", "written", "function", "p"),
    [
        *[
            (d, "PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY x)", CONT, "9/10")
            for d in ("postgres", "snowflake", "spark")
        ],
        *[(d, "PERCENTILE_DISC(0.9) WITHIN GROUP (ORDER BY x DESC)", DISC, "1/10") for d in ("postgres", "snowflake")],
        *[(d, "MEDIAN(x)", CONT, "1/2") for d in ("snowflake", "spark")],
        *[
            (d, "QUANTILE_DISC(x, 0.99)", DISC, "99/100")
            for d in ("postgres", "bigquery", "snowflake", "spark", "tsql")
        ],
        ("mysql", "QUANTILE_CONT(x, 0.01)", CONT, "1/100"),
        ("bigquery", "APPROX_QUANTILES(x, 4)[OFFSET(3)]", DISC, "3/4"),
        ("bigquery", "APPROX_QUANTILES(x, 4)[SAFE_OFFSET(1)]", DISC, "1/4"),
        ("bigquery", "APPROX_QUANTILES(x, 4)[ORDINAL(2)]", DISC, "1/4"),
        ("bigquery", "APPROX_QUANTILES(x, 4)[SAFE_ORDINAL(4)]", DISC, "3/4"),
        ("bigquery", "PERCENTILE_CONT(x, 0.5)", CONT, "1/2"),
        ("snowflake", "APPROX_PERCENTILE(x, 0.5)", CONT, "1/2"),  # lies between values there
        ("spark", "PERCENTILE(x, 0.5)", CONT, "1/2"),  # sqlglot's class for it is that of QUANTILE
        ("spark", "PERCENTILE_APPROX(x, 0.5, 100)", DISC, "1/2"),
        ("spark", "APPROX_PERCENTILE(x, 0.5)", DISC, "1/2"),
    ],
)
def test_other_dialects(dialect: str, written: str, function: str, p: str) -> None:
    found = call(written, dialect)
    assert (found.function, found.p) == (function, Fraction(p))


@pytest.mark.parametrize(
    ("dialect", "written", "named"),
    [
        ("postgres", "QUANTILE(x, 0.5)", "QUANTILE"),
        ("bigquery", "APPROX_QUANTILE(x, 0.5)", "APPROX_QUANTILE"),
        ("snowflake", "APPROX_QUANTILES(x, 4)", "APPROX_QUANTILES"),
        ("postgres", "ARRAY[1]", "ARRAY"),
        ("tsql", "APPROX_PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x)", "APPROX_PERCENTILE_CONT"),
    ],
)
def test_what_may_mean_something_else_in_a_dialect(dialect: str, written: str, named: str) -> None:
    found = refused(written, dialect)
    assert found.code == "DP119" and found.message.startswith(f"{named} may mean something else in {dialect}")


# --- refusals ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dialect", "written", "code", "said"),
    [
        # a list of p, which is one column for each
        ("duckdb", "APPROX_QUANTILES(x, 4)", "DP101", "APPROX_QUANTILES without an index"),
        ("bigquery", "APPROX_QUANTILES(x, 1000)", "DP101", "APPROX_QUANTILES without an index"),
        # the extremes
        ("duckdb", "QUANTILE_CONT(x, 0)", "DP101", "above 0 and below 1"),
        ("duckdb", "QUANTILE_DISC(x, 1.0)", "DP101", "above 0 and below 1"),
        ("duckdb", "QUANTILE(x, -0.5)", "DP101", "above 0 and below 1"),
        ("duckdb", "QUANTILE(x, 100)", "DP101", "above 0 and below 1"),
        ("duckdb", "QUANTILE(x, 95)", "DP101", "above 0 and below 1"),
        ("duckdb", "PERCENTILE_CONT(99.9) WITHIN GROUP (ORDER BY x DESC)", "DP101", "above 0 and below 1"),
        ("postgres", "PERCENTILE_CONT(1) WITHIN GROUP (ORDER BY x DESC)", "DP101", "above 0 and below 1"),
        ("bigquery", "APPROX_QUANTILES(x, 4)[OFFSET(0)]", "DP101", "above 0 and below 1"),
        ("bigquery", "APPROX_QUANTILES(x, 4)[ORDINAL(5)]", "DP101", "above 0 and below 1"),
        # p
        ("duckdb", "QUANTILE_CONT(x, 0.1234567)", "DP106", "six decimal places"),
        ("duckdb", "QUANTILE_CONT(x, 1e-300)", "DP106", "six decimal places"),
        ("duckdb", "QUANTILE_CONT(x, 0.99999999)", "DP106", "six decimal places"),
        ("duckdb", "QUANTILE_CONT(x, n)", "DP115", "the p of QUANTILE_CONT"),
        ("duckdb", "QUANTILE_CONT(x, 1 / 2)", "DP115", "the p of QUANTILE_CONT"),
        ("duckdb", "QUANTILE_CONT(x, '0.5')", "DP115", "the p of QUANTILE_CONT"),
        ("duckdb", "QUANTILE_CONT(x, NULL)", "DP115", "the p of QUANTILE_CONT"),
        ("duckdb", "QUANTILE_CONT(x, TRUE)", "DP115", "the p of QUANTILE_CONT"),
        # indices
        ("duckdb", "APPROX_QUANTILES(x, 4)[2]", "DP101", "says from where it counts"),
        ("bigquery", "APPROX_QUANTILES(x, 4)[2]", "DP101", "says from where it counts"),
        ("duckdb", "APPROX_QUANTILES(x, 4)[KEY(2)]", "DP101", "says from where it counts"),
        ("bigquery", "APPROX_QUANTILES(x, 4)[SAFE_OFFSET(5)]", "DP106", "has 5 values"),
        ("duckdb", "APPROX_QUANTILES(x, 1)[OFFSET(1)]", "DP106", "from 2 to 1,000,000 parts"),
    ],
)
def test_the_repair_works_when_pasted(dialect: str, written: str, code: str, said: str) -> None:
    found = refused(written, dialect)
    assert found.code == code and said in found.message
    repair = re.search(r"  ([A-Z].*?\)\]?)(  or  PERCENTILE.*|  or pass .*)?$", found.help[0])
    assert repair is not None, found.help
    assert calls(f"SELECT {repair[1]} FROM t", dialect)


@pytest.mark.parametrize(
    ("dialect", "written", "shares"),
    [
        ("duckdb", "QUANTILE_CONT(x, [0.25, 0.5])", ["1/4", "1/2"]),
        ("duckdb", "APPROX_QUANTILE(n + 1, [0.25, 0.5, 0.25])", ["1/4", "1/2"]),
        ("postgres", "PERCENTILE_DISC(ARRAY[0.2, 0.4]) WITHIN GROUP (ORDER BY x DESC)", ["4/5", "3/5"]),
        ("postgres", "(PERCENTILE_DISC(ARRAY[0.2, 0.4]) WITHIN GROUP (ORDER BY x DESC))[2]", ["3/5"]),
        ("spark", "PERCENTILE(x, ARRAY(0.2, 0.4))", ["1/5", "2/5"]),
        ("bigquery", "QUANTILE_DISC(x, [0.2, 0.4])", ["1/5", "2/5"]),
        ("duckdb", "QUANTILE_DISC(x, [0.2, 0.4])[OFFSET(0)]", ["1/5"]),
        ("duckdb", "QUANTILE(x, [0.2, 0.4])[1]", ["1/5"]),
        ("duckdb", "QUANTILE_DISC(x, [0.2, 0.4])[1] + QUANTILE_DISC(x, [0.3, 0.4])[2]", ["1/5", "2/5"]),
    ],
)
def test_lists_of_p(dialect: str, written: str, shares: list[str]) -> None:
    """The parser counts some of these from 0 by itself, and others as they are written."""
    assert [str(c.p) for c in calls(f"SELECT {written} AS q FROM t", dialect)] == shares


def test_repairs_of_lists_name_each_p() -> None:
    found = refused("PERCENTILE_CONT(x, [0.2, 0.45]) OVER (ORDER BY x)")
    repair = found.help[0].partition("  ")[2]
    assert [str(c.p) for c in calls(f"SELECT {repair} FROM t")] == ["1/5", "9/20"]
    repair = refused("APPROX_QUANTILES(x, 4)").help[0].partition("  ")[2]
    assert [str(c.p) for c in calls(f"SELECT {repair} FROM t")] == ["1/4", "1/2", "3/4"]


@pytest.mark.parametrize(
    ("written", "repair"),
    [
        ("QUANTILE_CONT(x, 1)", "QUANTILE_CONT(x, 0.99)"),
        ("QUANTILE_CONT(x, 0)", "QUANTILE_CONT(x, 0.01)"),
        ("QUANTILE(x, 95)", "QUANTILE(x, 0.95)"),
        ("PERCENTILE_DISC(1) WITHIN GROUP (ORDER BY x DESC)", "PERCENTILE_DISC(0.99) WITHIN GROUP (ORDER BY x DESC)"),
        ("QUANTILE(x, 1e-9)", "QUANTILE(x, 1e-6)"),
        ("QUANTILE(x, 0.999999999)", "QUANTILE(x, 0.999999)"),
        ("MAX(x, 3)", "QUANTILE_DISC(x, 0.99)"),
        ("MIN(n + 1, 3)", "QUANTILE_DISC(n + 1, 0.01)"),
    ],
)
def test_what_is_near_is_named(written: str, repair: str) -> None:
    assert refused(written).help[0].endswith(f"  {repair}")


@pytest.mark.parametrize(
    ("written", "code", "said"),
    [
        ("QUANTILE_CONT(DISTINCT x, 0.5)", "DP101", "QUANTILE_CONT(DISTINCT …)"),
        ("MEDIAN(DISTINCT x)", "DP101", "MEDIAN(DISTINCT …)"),
        ("APPROX_QUANTILES(DISTINCT x, 4)[OFFSET(1)]", "DP101", "APPROX_QUANTILES(DISTINCT …)"),
        ("QUANTILE_CONT(x, 0.5 ORDER BY x DESC)", "DP101", "ORDER BY cannot stand in QUANTILE_CONT"),
        ("MEDIAN(x IGNORE NULLS)", "DP101", "IGNORE NULLS cannot stand in MEDIAN"),
        ("COUNT(x RESPECT NULLS)", "DP101", "RESPECT NULLS cannot stand in COUNT"),
        ("QUANTILE_CONT(x)", "DP106", "QUANTILE_CONT needs"),
        ("QUANTILE(x)", "DP106", "QUANTILE needs"),
        ("PERCENTILE_CONT(0.5)", "DP106", "PERCENTILE_CONT needs"),
        ("QUANTILE_CONT(x, 0.5, 1)", "DP106", "QUANTILE_CONT takes at most 2 arguments"),
        ("ABS(quantile (x, (.5), [1, 2]))", "DP106", "QUANTILE takes at most 2 arguments"),
        ("PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x, n)", "DP106", "one ORDER BY expression"),
        ("PERCENTILE_CONT(x, 0.5) WITHIN GROUP (ORDER BY x)", "DP106", "takes one p"),
        ("APPROX_QUANTILES(x, n)[OFFSET(1)]", "DP115", "number of parts"),
        ("APPROX_QUANTILES(x, 4)[OFFSET(n)]", "DP115", "the index"),
        ("APPROX_QUANTILES(x, 4)[OFFSET(1.5)]", "DP115", "the index"),
        ("MEDIAN(s)", "DP203", "MEDIAN needs a number, a date or a timestamp, not VARCHAR"),
        ("QUANTILE(b, 0.5)", "DP203", "QUANTILE needs a number, a date or a timestamp, not BOOLEAN"),
        ("MEDIAN(noon)", "DP203", "not TIME"),
        ("MEDIAN(zoned)", "DP203", "not TIMESTAMP WITH TIME ZONE"),
        ("MEDIAN(NULL)", "DP203", "MEDIAN needs"),
        ("MEDIAN(SUM(x))", "DP108", "an aggregate cannot stand in an aggregate"),
        ("SUM(MEDIAN(x))", "DP108", "an aggregate cannot stand in an aggregate"),
        ("DP_INTERVAL_LOW(MEDIAN(x))", "DP106", "DP_INTERVAL_LOW of a quantile"),
        ("MEDIAN(x) OVER ()", "DP105", "not supported as a window function"),
        ("QUANTILE_CONT(x, 0.5) OVER (PARTITION BY n)", "DP105", "not supported as a window function"),
        ("PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x) OVER ()", "DP105", "not supported as a window function"),
        ("QUANTILE_CONT(x, 0.5)[1]", "DP101", "outside the accepted SQL"),
        ("COUNT(*) WITHIN GROUP (ORDER BY x)", "DP101", "outside the accepted SQL"),
        ("MAX(x, 3)", "DP101", "MAX with a second argument"),
        ("MIN(x, 3)", "DP101", "MIN with a second argument"),
        ("MODE() WITHIN GROUP (ORDER BY x, n)", "DP106", "MODE takes one ORDER BY expression"),
        ("MODE(x) WITHIN GROUP (ORDER BY x)", "DP106", "MODE takes one ORDER BY expression"),
        ("MODE()", "DP106", "MODE needs an argument"),
        ("MODE(x, TRUE)", "DP101", "another argument of MODE"),
        ("MODE(CLIP(x, AUTO))", "DP106", "not of what MODE counts or compares"),
        ("DP_INTERVAL_LOW(MODE(x))", "DP106", "DP_INTERVAL_LOW of a MODE"),
        ("ARG_MAX(s)", "DP106", "ARG_MAX takes two arguments"),
        ("ARG_MAX(s, x, 2)", "DP101", "outside the accepted SQL"),
        ("RESERVOIR_QUANTILE(x, 0.5)", "DP105", "reservoir_quantile is not supported"),
    ],
)
def test_refused_by_name(written: str, code: str, said: str) -> None:
    found = refused(written)
    assert found.code == code and said in found.message


def test_a_value_of_p_that_no_decimal_of_six_places_is() -> None:
    assert refused("QUANTILE_CONT(x, ?)", parameters=[1 / 3]).code == "DP106"
    assert refused("QUANTILE_CONT(x, ?)", parameters=["0.5"]).code == "DP115"


def planned(sql: str) -> Diagnostic:
    with pytest.raises(Rejected) as refusal:
        static_plan(Source(sql), POLICY)
    return refusal.value.diagnostics[0]


@pytest.mark.parametrize(("function", "p"), [("MAX", "0.99"), ("MIN", "0.01")])
@pytest.mark.parametrize("arg", ["x", "price + 1", "day", "CLIP(x, 0, 5)"])
def test_extremes_of_private_rows_are_refused_under_their_own_name(function: str, p: str, arg: str) -> None:
    found = planned(f"SELECT {function}({arg}) AS m FROM t")
    assert found.code == "DP101" and found.message == f"{function} over private rows is not supported"
    repair = found.help[0].partition("  ")[2]
    assert call(repair) == call(f"QUANTILE_DISC({arg}, {p})")


def test_the_greatest_text_has_nothing_near_it() -> None:
    assert planned("SELECT MAX(s) AS m FROM t").help == ("count the rows of each value with GROUP BY",)


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT COUNT(m) AS a FROM (SELECT id, MEDIAN(day) AS m FROM t GROUP BY id)", "below another aggregate"),
    ],
)
def test_where_no_quantile_is_measured(sql: str, said: str) -> None:
    found = planned(sql)
    assert found.code == "DP101" and said in found.message


@pytest.mark.parametrize(
    "written",
    ["MEDIAN(x)", "QUANTILE_DISC(x, 0.9)", "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x)", "PERCENTILE_CONT(x, 0.5)"],
)
def test_over_a_window_they_are_refused_by_name(written: str) -> None:
    found = planned(f"SELECT {written} OVER () AS m FROM t")
    name = written.partition("(")[0]
    assert found.code == "DP105" and found.message == f"{name} is not supported as a window function"
    assert call(found.help[0].removeprefix("write  ").partition("  without")[0]) == call(written)
