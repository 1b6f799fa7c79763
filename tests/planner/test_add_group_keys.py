"""Which keys a grouped query releases: exactly the listed ones, in this order, for each source of public keys."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest

from dpsql.core.ir.nodes import GroupKeys, Release, key_sources
from dpsql.core.ir.walk import walk
from dpsql.diagnostics.errors import Rejected
from tests.support.key_plans import TABLES, keys, plan, policy, sources

ASIA = ["CHINA", "INDIA", "JAPAN"]


def grouped(key: str, rest: str, call: str = "COUNT(*)") -> str:
    """A count of `rest` by `key`."""
    return f"SELECT {key} AS k, {call} AS n FROM {rest} GROUP BY k"


@pytest.mark.parametrize(
    ("key", "rest", "expected"),
    [
        ("region", "visits", ["n", "s", "e"]),
        ("region", "visits WHERE region <> 's'", ["n", "e"]),
        ("region", "visits WHERE region IN ('s', 'z')", ["s"]),
        ("region", "visits WHERE region = 'n' AND region = 's'", []),
        ("maybe", "visits", ["x", "y", None]),
        ("maybe", "visits WHERE maybe IS NOT NULL", ["x", "y"]),
        ("maybe", "visits WHERE maybe IS NULL OR maybe = 'x'", ["x", None]),
        ("listed", "visits", ["a", "b", "c", None]),
        ("upper(listed)", "visits WHERE listed <> 'a'", ["B", "C"]),
        ("flag", "visits", [False, True]),
        ("flag", "visits WHERE flag", [True]),
        ("age", "visits WHERE age BETWEEN 2 AND 4", [2, 3, 4]),
        ("age // 4", "visits", [0, 1, 2]),
        ("age // 4", "visits WHERE age > 4", [1, 2]),
        ("CASE WHEN age > 5 THEN 'old' ELSE 'young' END", "visits", ["young", "old"]),
        ("CASE WHEN age > 5 THEN 'old' ELSE 'young' END", "visits WHERE age < 3", ["young"]),
        ("CASE WHEN x > 0.5 THEN 'much' END", "visits", ["much", None]),
        ("COALESCE(maybe, 'none')", "visits", ["x", "y", "none"]),
        ("NULLIF(region, 'n')", "visits", ["s", "e", None]),
        ("region || maybe", "visits", ["nx", "ny", "sx", "sy", "ex", "ey", None]),
        ("CAST(age AS VARCHAR)", "visits WHERE age < 2", ["0", "1"]),
        ("CASE WHEN flag THEN age ELSE -1 END", "visits WHERE age IN (3, 4)", [-1, 3, 4]),
        ("CLIP(num, 0, 2)", "visits", [0, 1, 2, None]),
        ("month(date)", "visits WHERE date IS NOT NULL", list(range(1, 13))),
    ],
)
def test_columns_and_functions_of_them(key: str, rest: str, expected: list[Any]) -> None:
    assert keys(grouped(key, rest)) == expected


@pytest.mark.parametrize(
    ("key", "rest", "expected"),
    [
        ("code", "visits WHERE code IN ('p', 'q', 'p', NULL)", ["p", "q"]),
        ("code", "visits WHERE code = 'p' OR code IN ('q') AND age > 3", ["p", "q"]),
        ("code", "visits WHERE code = 'p' OR code IS NULL", ["p", None]),
        ("code", "visits WHERE code IS NOT DISTINCT FROM NULL", [None]),
        ("code", "visits WHERE code IN ('p', 'q') AND code IN ('q', 'r')", ["q"]),
        ("code", "visits WHERE code IN ('pa', 'qb') AND code LIKE 'p%'", ["pa"]),
        ("code", "visits WHERE code = 'p' OR age = 3", None),
        ("code", "visits WHERE NOT code = 'p'", None),
        ("code", "visits WHERE code <> 'p'", None),
        ("substring(phone, 1, 2)", "visits WHERE substring(phone, 1, 2) IN ('13', '31')", ["13", "31"]),
        ("upper(substring(phone, 1, 2))", "visits WHERE substring(phone, 1, 2) IN ('a', 'b')", ["A", "B"]),
        ("substring(phone, 1, 2)", "visits WHERE substring(phone, 1, 3) IN ('13', '31')", None),
        ("length(phone)", "visits WHERE length(phone) BETWEEN 1 AND 3", [1, 2, 3]),
        ("length(phone)", "visits", None),
        ("num", "visits WHERE num BETWEEN 1 AND 4", [1, 2, 3, 4]),
        ("num", "visits WHERE num > 0.5 AND 4 > num", [1, 2, 3]),
        ("num", "visits WHERE num > 0", None),
        ("num", "visits WHERE num BETWEEN 1 AND 10000000", None),
        ("num", "visits WHERE num BETWEEN 1 AND 9 AND num % 3 = 0", [3, 6, 9]),
        ("num", "visits WHERE num = 3 OR num BETWEEN 5 AND 6", [3, 5, 6]),
        ("wide", "visits WHERE wide BETWEEN 5 AND 7", [5, 6, 7]),
        ("half", "visits WHERE half <= 3", [1, 2, 3]),
        ("fee", "visits WHERE fee IN (1, 2.5, 0.001)", [Decimal(1), Decimal("2.5")]),
        (
            "date", "visits WHERE date >= '2024-02-28' AND date < '2024-03-01'",
            [dt.date(2024, 2, 28), dt.date(2024, 2, 29)],
        ),
        ("year(date)", "visits WHERE date BETWEEN '2020-05-05' AND '2021-01-01'", [2020, 2021]),
        ("year(date)", "visits WHERE year(date) IN (2020, 2022)", [2020, 2022]),
        ("month(at)", "visits WHERE at >= '2024-11-15'", [11, 12]),
        (
            "date_trunc('month', moment)", "visits WHERE moment >= '2024-01-31' AND moment < '2024-03-01'",
            [dt.datetime(2024, 1, 1), dt.datetime(2024, 2, 1)],
        ),
        (
            "date_trunc('quarter', moment)", "visits WHERE year(moment) = 2023",
            [dt.datetime(2023, 1, 1), dt.datetime(2023, 4, 1), dt.datetime(2023, 7, 1), dt.datetime(2023, 10, 1)],
        ),
        (
            "strftime(moment, '%Y-%m')", "visits WHERE CAST(moment AS DATE) BETWEEN '2023-12-31' AND '2024-01-01'",
            ["2023-12", "2024-01"],
        ),
        ("moment", "visits WHERE year(moment) = 2023", None),
    ],
)  # fmt: skip
def test_conditions_list_keys(key: str, rest: str, expected: list[Any] | None) -> None:
    assert keys(grouped(key, rest)) == expected


@pytest.mark.parametrize(
    ("key", "rest", "expected"),
    [
        ("label", "visits JOIN codes ON visits.code = codes.code", ["first", "none", "second", None]),
        ("label", "visits, codes WHERE visits.code = codes.code AND rank > 1", ["none", "second", None]),
        (
            "label", "visits JOIN codes ON visits.code = codes.code AND (rank = 1 OR age > 3 AND rank = 2)",
            ["first", "second", None],
        ),
        ("visits.code", "visits JOIN codes ON visits.code = codes.code", ["a", "b", "c"]),
        ("upper(visits.code)", "visits JOIN codes USING (code) WHERE rank = 2", ["B", "C"]),
        ("label", "visits LEFT JOIN codes ON visits.code = codes.code", ["first", "none", "second", None]),
        ("label", "visits LEFT JOIN codes ON visits.code = codes.code AND rank = 1", ["first", None]),
        ("label", "visits LEFT JOIN codes ON visits.code = codes.code WHERE rank = 1", ["first"]),
        ("COALESCE(label, '?')", "visits LEFT JOIN codes ON visits.code = codes.code AND rank = 1", ["first", "?"]),
        ("one", "people LEFT JOIN (SELECT code, 'it' AS one FROM codes) AS c ON city = c.code", ["it", None]),
        ("region", "visits LEFT JOIN codes ON visits.code = codes.code AND region = 'n'", ["n", "s", "e"]),
        (
            "codes.code", "codes LEFT JOIN visits ON visits.code = codes.code AND rank = 1 AND age = 2",
            ["a", "b", "c", None],
        ),
        ("visits.code", "codes LEFT JOIN visits ON visits.code = codes.code AND rank = 1", ["a", None]),
        ("codes.code", "visits RIGHT JOIN codes ON visits.code = codes.code AND rank = 1", ["a", "b", "c", None]),
        ("code", "visits FULL JOIN codes USING (code)", None),
        ("codes.code", "visits FULL JOIN codes ON visits.code = codes.code AND rank = 1", ["a", "b", "c", None]),
        ("region", "visits FULL JOIN codes ON visits.code = codes.code", ["n", "s", "e", None]),
        ("code", "visits WHERE code IN (SELECT code FROM codes WHERE rank = 2)", ["b", "c"]),
        ("code", "visits WHERE EXISTS (SELECT 1 FROM codes WHERE codes.code = visits.code AND rank = 2)", ["b", "c"]),
        ("code", "visits ANTI JOIN codes ON codes.code = visits.code", None),
        ("region", "visits ANTI JOIN codes ON codes.code = visits.code AND region = 'n'", ["n", "s", "e"]),
        ("region", "visits SEMI JOIN codes ON codes.code = visits.code AND region = 'n'", ["n"]),
        (
            "label", "people JOIN (SELECT DISTINCT code, label FROM codes WHERE rank < 3) c ON city = c.code",
            ["first", "second", None],
        ),
        ("k.region", "visits RIGHT JOIN (VALUES ('n'), ('z')) AS k(region) USING (region)", ["n", "z"]),
        (
            "k.word",
            "visits JOIN (VALUES ('n', 'up'), ('z', 'down'), (NULL, 'no')) AS k(region, word) ON k.region = code",
            ["up", "down"],
        ),
        (
            "visits.code", "visits JOIN (VALUES ('p'), ('q')) AS k(code) ON visits.code = k.code WHERE k.code > 'p'",
            ["q"],
        ),
        ("label", "visits CROSS JOIN codes", ["first", "none", "second", None]),
    ],
)  # fmt: skip
def test_joins(key: str, rest: str, expected: list[Any] | None) -> None:
    assert keys(grouped(key, rest)) == expected


@pytest.mark.parametrize(
    ("key", "rest", "expected"),
    [
        (
            "region",
            "(SELECT region FROM visits WHERE region <> 'n' UNION ALL SELECT code FROM visits WHERE code = 'q')",
            ["s", "e", "q"],
        ),
        ("region", "(SELECT region FROM visits UNION ALL SELECT code FROM visits)", None),
        ("region", "(SELECT region, age FROM visits INTERSECT SELECT code, age FROM visits)", ["n", "s", "e"]),
        ("code", "(SELECT code, age FROM visits EXCEPT SELECT region, age FROM visits)", None),
        (
            "maybe",
            "(SELECT region AS maybe FROM visits UNION SELECT maybe FROM visits WHERE maybe = 'x' OR maybe IS NULL)",
            ["n", "s", "e", "x", None],
        ),
        ("age", "(SELECT age FROM visits WHERE age < 3 UNION ALL SELECT 7 FROM visits)", [0, 1, 2, 7]),
        (
            "k", "(SELECT 'old' AS k FROM visits UNION ALL SELECT label FROM visits JOIN codes USING (code))",
            ["old", "first", "none", "second", None],
        ),
        ("region", "(SELECT DISTINCT region, age FROM visits WHERE region < 'o')", ["n", "e"]),
        ("LEAST(n, 2)", "(SELECT pid, COUNT(*) AS n FROM people GROUP BY pid)", [0, 1, 2]),
        ("n", "(SELECT pid, COUNT(*) AS n FROM people GROUP BY pid HAVING COUNT(*) BETWEEN 2 AND 4)", [2, 3, 4]),
        ("a", "(SELECT pid, age AS a, COUNT(*) FROM people WHERE age > 7 GROUP BY pid, age)", [8, 9]),
    ],
)  # fmt: skip
def test_set_operations_and_groups_that_stay_private(key: str, rest: str, expected: list[Any] | None) -> None:
    assert keys(grouped(key, rest)) == expected


def test_joined_public_tables_shorten_each_other() -> None:
    """TPC-H, query 5: the nations of one region, found by reading two short lists."""
    found = sources(
        "SELECT n_name, COUNT(*) FROM visits, supplier, nation, region WHERE suppkey = s_suppkey "
        "AND nation = s_nationkey AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'ASIA' "
        "GROUP BY n_name"
    )
    assert found is not None
    ((source),) = found
    assert [k for (k,) in source.keys] == ASIA and source.covers and source.origin == "nation.n_name"


def test_one_table_twice_with_a_condition_on_both() -> None:
    """TPC-H, query 7."""
    sql = (
        "SELECT a.n_name AS x, b.n_name AS y, year(date) AS z, COUNT(*) FROM visits, nation a, nation b "
        "WHERE nation = a.n_nationkey AND second = b.n_nationkey AND date BETWEEN '1995-01-01' AND '1996-12-31' "
        "AND (a.n_name = 'FRANCE' AND b.n_name = 'GERMANY' OR a.n_name = 'GERMANY' AND b.n_name = 'FRANCE') "
        "GROUP BY ALL"
    )
    pairs = [("FRANCE", "GERMANY"), ("GERMANY", "FRANCE")]
    assert keys(sql) == [(*pair, year) for pair in pairs for year in (1995, 1996)]
    free = (
        "SELECT a.n_name AS x, b.n_name AS y, COUNT(*) FROM visits, nation a, nation b "
        "WHERE nation = a.n_nationkey AND second = b.n_nationkey GROUP BY ALL"
    )
    assert len(keys(free) or []) == 49


def test_columns_of_one_table_are_tuples() -> None:
    assert keys("SELECT label, rank, COUNT(*) FROM visits JOIN codes USING (code) WHERE rank = 2 GROUP BY ALL") == [
        ("second", 2), (None, 2),
    ]  # fmt: skip
    assert keys("SELECT age, age % 2 AS odd, COUNT(*) FROM visits WHERE age < 3 GROUP BY ALL") == [
        (0, 0),
        (1, 1),
        (2, 0),
    ]
    values = "(VALUES ('n', 1), ('s', 2), ('s', NULL)) AS k(region, w)"
    assert keys(f"SELECT k.region, w, COUNT(*) FROM visits JOIN {values} USING (region) GROUP BY ALL") == [
        ("n", 1), ("s", 2), ("s", None),
    ]  # fmt: skip


def test_a_table_that_is_too_long_for_a_condition_is_read_without_it() -> None:
    """The filter's column has more values than may be keys; the group's has few."""
    long = {**TABLES, "supplier": (TABLES["supplier"][0], tuple((i, i % 7, f"p{i}") for i in range(1_500)))}
    sql = grouped("s_nationkey", "visits JOIN supplier ON suppkey = s_suppkey WHERE s_phone LIKE 'p1%'")
    assert keys(sql, tables=long) == list(range(7))
    joined = (
        "SELECT n_name AS k, COUNT(*) FROM visits, supplier, nation WHERE suppkey = s_suppkey AND second = s_suppkey "
        "AND s_nationkey = n_nationkey AND s_phone = 'p8' GROUP BY k"
    )
    assert keys(joined, tables=long) == [name for name, *_ in sorted((row[1],) for row in TABLES["nation"][1])]


def test_a_table_with_too_many_keys() -> None:
    long = {**TABLES, "supplier": (TABLES["supplier"][0], tuple((i, i % 7, f"p{i}") for i in range(1_500)))}
    with pytest.raises(Rejected, match="supplier has more than 1,000 keys"):
        keys("SELECT s_phone, COUNT(*) FROM visits JOIN supplier ON suppkey = s_suppkey GROUP BY s_phone", tables=long)
    sql = grouped("s_phone", "visits JOIN supplier ON suppkey = s_suppkey WHERE s_phone IN ('p1', 'x')")
    assert keys(sql, tables=long) == ["p1", "x"], "the query's own list serves instead"


def test_the_cap_counts_combinations_without_writing_them_out() -> None:
    with pytest.raises(Rejected) as refusal:
        keys("SELECT day, wide, at, COUNT(*) FROM visits GROUP BY ALL")
    (found,) = refusal.value.diagnostics
    assert found.code == "DP302" and "day 366 × wide 1,000,000,000,001 × at" in found.label


def test_several_sets_of_keys_share_the_cap() -> None:
    both = f"{grouped('day', 'visits')} UNION ALL {grouped('day', 'visits WHERE flag')}"
    assert len(plan(both, policy(max_keys=732)).releases) == 2
    with pytest.raises(Rejected, match="732 groups are possible over all sets of groups of the query; at most 731"):
        plan(both, policy(max_keys=731))


@pytest.mark.parametrize(
    ("key", "code"), [("x", "DP301"), ("floor(x * 10000000)", "DP408"), ("num", "DP408"), ("moment", "DP408")]
)
def test_what_has_no_public_keys(key: str, code: str) -> None:
    """Private keys need a δ: without one there must be a list."""
    with pytest.raises(Rejected) as refusal:
        keys(grouped(key, "visits"), policy(accountant="pure_dp"))
    assert [d.code for d in refusal.value.diagnostics] == [code] and refusal.value.diagnostics[0].help


def test_groups_without_rows_of_a_person_are_shown() -> None:
    """A LEFT join from the public table counts an id that is NULL for codes nobody has: 0 and noise for those."""
    sql = (
        "SELECT label AS k, COUNT(pid) FROM codes LEFT JOIN people ON people.city = codes.code AND rank > 1 GROUP BY k"
    )
    assert keys(sql) == ["first", "none", "second", None]
    assert keys(sql.replace("LEFT JOIN", "JOIN")) == ["none", "second", None]


def test_released_values_are_no_list() -> None:
    """What an earlier release found is known only when it has been paid for: its groups are no domain."""
    sql = (
        "WITH r AS (SELECT region, COUNT(*) AS c FROM visits GROUP BY region) "
        "SELECT r.region, COUNT(*) FROM people JOIN r ON people.city = r.region GROUP BY r.region"
    )
    try:
        found = plan(sql)
    except Rejected as refusal:
        assert {d.code for d in refusal.diagnostics} <= {"DP118", "DP210", "DP230"}
        return
    outer = [
        r.measured.node for r in found.releases if any(isinstance(n, Release) for n in walk(r.measured.node.input))
    ]
    assert [key_sources(node) for node in outer] == [None]


def test_keys_of_a_public_list_are_not_looked_up_by_the_engine() -> None:
    """A list that holds every key needs no condition; one that leaves rows out does."""
    for sql, covers in (
        (grouped("label", "visits LEFT JOIN codes ON visits.code = codes.code"), True),
        (grouped("code", "visits WHERE code IN ('p', 'q')"), True),
        (grouped("region", "visits"), False),
        (grouped("label", "visits LEFT JOIN codes USING (code) WHERE maybe = 'x'"), True),
    ):
        found = sources(sql)
        assert found is not None and [s.covers for s in found] == [covers], sql


def test_every_release_has_group_keys() -> None:
    for release in plan("SELECT region, age, COUNT(*) FROM visits GROUP BY ROLLUP (region, age)").releases:
        assert isinstance(release.measured.node.input, GroupKeys)
