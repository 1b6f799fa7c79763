"""Items 41 to 61: query shapes, through whole sessions."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import dpsql
from tests.support.checklist_clinic import POLICY, Attack, Clinic

OWN = (
    "pid IN (SELECT pid FROM patients WHERE diag = 'HIV')",
    "pid NOT IN (SELECT pid FROM visits)",
    "pid = ANY (SELECT pid FROM visits)",
)
"""Whether there are other rows of the own id."""
SUBQUERIES = (
    *OWN,
    "EXISTS (SELECT 1 FROM patients WHERE name = 'bob')",
    "NOT EXISTS (SELECT 1 FROM patients WHERE name = 'bob')",
    "patients.age IN (SELECT age FROM patients WHERE name = 'bob')",
    "patients.age = ANY (SELECT age FROM patients WHERE name = 'bob')",
    "pid > ALL (SELECT pid FROM visits)",
)


@pytest.mark.parametrize("predicate", SUBQUERIES)
def test_item_41_and_42_no_private_condition_in_any_expression(attack: Attack, predicate: str) -> None:
    """But for one on the own id, which the id's own rows decide."""
    values = (
        f"SELECT COUNT(*) FILTER (WHERE {predicate}) FROM patients",
        f"SELECT SUM(CASE WHEN {predicate} THEN 1 ELSE 0 END) FROM patients",
        f"SELECT COUNT(*) FROM patients GROUP BY {predicate}",
        f"SELECT COUNT(*) FROM patients WHERE age > 3 OR {predicate}",
    )
    for sql in (
        f"SELECT COUNT(*) FROM patients HAVING {predicate}",
        f"SELECT COUNT(*) FROM patients JOIN pub ON {predicate.replace('pid', 'patients.pid', 1)}",
        f"SELECT COUNT(*) FROM patients ORDER BY {predicate}",
        *(() if predicate in OWN else values),
    ):
        attack.refused(sql, "DP111", "DP109", "DP110", "DP220", "DP230")
    for sql in values if predicate in OWN else ():
        (release,) = attack.con.sql(sql).plan(epsilon=1).releases
        assert [m.sensitivity.l1 for m in release.measured.measurements] == [1]
    if "age" in predicate:
        return
    public = predicate.replace("pid FROM", "CAST(pid AS VARCHAR) FROM").replace("pid", "diag", 1)
    attack.refused(f"SELECT COUNT(*) FROM pub WHERE {public}", "DP111", "DP220")
    attack.refused(f"SELECT diag FROM pub WHERE {public}", "DP111", "DP110", "DP220")


@pytest.mark.parametrize(
    "predicate",
    [
        "EXISTS (SELECT 1 FROM patients WHERE name = 'bob')",
        "NOT EXISTS (SELECT 1 FROM patients WHERE name = 'bob')",
        "age IN (SELECT age FROM patients WHERE name = 'bob')",
        "diag NOT IN (SELECT diag FROM patients WHERE name = 'bob')",
        "pid < ANY (SELECT pid FROM visits)",
        "EXISTS (SELECT 1 FROM visits v WHERE v.pid = patients.pid + 1)",
        "EXISTS (SELECT 1 FROM visits v WHERE v.pid <> patients.pid)",
        "NOT EXISTS (SELECT 1 FROM patients p WHERE p.diag = patients.diag AND p.pid <> patients.pid)",
        "(pid, age) NOT IN (SELECT pid + 1, age FROM patients)",
    ],
)
def test_item_41_nobody_decides_which_rows_of_others_count(attack: Attack, predicate: str) -> None:
    attack.refused(f"SELECT COUNT(*) FROM patients WHERE {predicate}", "DP230")
    attack.refused(
        f"SELECT COUNT(*) FROM patients, pub WHERE {predicate.replace('diag NOT', 'patients.diag NOT')}", "DP230"
    )


def test_item_42_conditions_on_the_own_id_are_answered(attack: Attack) -> None:
    """Rows without an id are nobody's, so that NOT IN does not see them."""
    for predicate, n in (
        ("pid IN (SELECT pid FROM visits)", 3),
        ("pid = ANY (SELECT pid FROM visits WHERE amt > 6)", 2),
        ("pid NOT IN (SELECT pid FROM visits)", 1),
        ("NOT EXISTS (SELECT 1 FROM visits v WHERE v.pid = patients.pid AND v.amt < patients.age)", 2),
        ("3 < (SELECT SUM(amt) FROM visits v WHERE v.pid = patients.pid AND v.amt < 50)", 2),
        ("0 = (SELECT COUNT(*) FROM visits v WHERE v.pid = patients.pid)", 1),
    ):
        assert attack.answer(f"SELECT COUNT(*) FROM patients WHERE {predicate}") == [(n,)], predicate
        ((l1, linf),) = attack.sensitivities(f"SELECT COUNT(*) FROM patients WHERE {predicate}")
        assert (l1, linf) == (1, 1)


@pytest.mark.parametrize(
    "having", ["MAX(name) = 'bob'", "MIN(age) > 1", "name = 'bob'", "age > 1", "list(name) = ['bob']", "SUM(big) > 1"]
)
def test_item_43_having_sees_no_raw_values(attack: Attack, having: str) -> None:
    attack.refused(
        f"SELECT diag, COUNT(*) FROM patients GROUP BY diag HAVING {having}", "DP101", "DP105", "DP109", "DP201"
    )


@pytest.mark.parametrize("clause", ["QUALIFY COUNT(*) OVER () = 4", "GROUP BY ALL QUALIFY 1 = 1"])
def test_item_43_no_qualify(attack: Attack, clause: str) -> None:
    attack.refused(f"SELECT diag FROM patients {clause}", "DP101", "DP113", "DP010")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT name, COUNT(*) FROM patients GROUP BY name",
        "SELECT DISTINCT name FROM patients",
        "SELECT name FROM patients GROUP BY 1",
        "SELECT name n FROM patients GROUP BY n",
        "SELECT upper(name), COUNT(*) FROM patients GROUP BY ALL",
    ],
)
def test_item_44_private_keys_need_delta_and_a_threshold(attack: Attack, sql: str) -> None:
    with pytest.raises(dpsql.Rejected) as caught:
        attack.con.sql(sql).run(epsilon=1)
    assert caught.value.diagnostics[0].code == "DP402"
    plan = attack.con.sql(sql).plan(epsilon=1, delta="1e-15")
    threshold = plan.releases[0].measured.threshold
    assert threshold is not None and threshold.threshold > 10 and 0 < threshold.delta <= plan.loss.delta
    assert attack.con.run(plan).rows == ()  # everybody's name is his own: one is shown once in 1e14 runs


@pytest.mark.parametrize(
    "key", ["pid", "pid % 2", "-pid", "CAST(pid AS VARCHAR)", "CASE WHEN pid = 2 THEN 1 ELSE 0 END", "coalesce(pid, 0)"]
)
def test_item_44_the_id_is_no_key(attack: Attack, key: str) -> None:
    attack.refused(f"SELECT {key}, COUNT(*) FROM visits GROUP BY 1", "DP301")
    attack.refused(f"SELECT DISTINCT {key} FROM patients", "DP301")


@pytest.mark.parametrize(
    ("group", "sets"),
    [
        ("GROUPING SETS ((), (diag))", 2),
        ("ROLLUP (diag)", 2),
        ("CUBE (diag, age)", 4),
        ("GROUPING SETS ((diag), (age > 35))", 2),
        ("GROUPING SETS ((), ())", 2),
        ("GROUPING SETS ((diag), (diag), (diag))", 3),
        ("ROLLUP (diag), ROLLUP (age)", 4),
    ],
)
@pytest.mark.parametrize(("table", "most"), [("patients", 1), ("visits JOIN patients USING (pid)", 3)])
def test_item_45_every_grouping_set_is_paid_for(attack: Attack, group: str, sets: int, table: str, most: int) -> None:
    """A unit is in every set: each is a release of its own with its own noise, and their prices add up.

    The same set twice is one release, asked for and paid once, or it would be two.
    """
    plan = attack.con.sql(f"SELECT COUNT(*) FROM {table} GROUP BY {group}").plan(epsilon=1)
    measured = [m for r in plan.releases for m in r.measured.measurements]
    different = {"GROUPING SETS ((), ())": 1, "GROUPING SETS ((diag), (diag), (diag))": 1}.get(group, sets)
    assert different <= len(plan.releases) <= sets
    assert all(m.sensitivity.l1 * m.unit == most for m in measured)
    assert sum(m.loss.epsilon for m in measured) == 1 == plan.loss.epsilon
    attack.refused(f"SELECT diag, MAX(age) FROM patients GROUP BY {group}", "DP101", "DP109")


@pytest.mark.parametrize(
    "sql",
    [
        "PIVOT patients ON diag USING COUNT(*)",
        "SELECT * FROM (PIVOT patients ON diag USING COUNT(*))",
        "SELECT * FROM patients PIVOT (COUNT(*) FOR diag IN ('flu'))",  # one group for each id
    ],
)
def test_item_45_no_pivot(attack: Attack, sql: str) -> None:
    attack.refused(sql, "DP012", "DP101", "DP010", "DP301")


def test_item_46_filters_are_measurements_of_their_own(attack: Attack) -> None:
    plan = attack.con.sql(
        "SELECT COUNT(*), COUNT(*) FILTER (WHERE age > 1), COUNT(*) FILTER (WHERE age > 2), "
        "COUNT(*) FILTER (WHERE age > 1) FROM patients"
    ).plan(epsilon=1)
    assert len(plan.releases[0].measured.measurements) == 3 and plan.loss.epsilon == 1


def test_item_47_every_column_and_every_run_is_charged(clinic: Clinic) -> None:
    with clinic.connect() as con:

        def spent() -> object:
            return con.budget["unit"].total_spent.epsilon

        start = spent()
        # One number shown twice is one number; two questions in two words are two.
        ((a, b),) = con.execute("SELECT COUNT(*) a, COUNT(*) b FROM patients", epsilon=1).rows
        assert a == b
        again = a
        ((a, b),) = con.execute("SELECT SUM(age) a, SUM(age + 0) b FROM patients", epsilon="0.01").rows
        assert a != b or abs(a) < 10**9
        plan = con.sql("SELECT COUNT(*) FROM patients").plan(epsilon=1)
        # A number that was released is the same number when it is asked for again; new noise is charged again.
        assert con.run(plan).rows[0][0] == con.run(plan).rows[0][0] == again
        con.run(plan, fresh=True), con.run(plan, fresh=True)
        assert spent() == start + 3 + dpsql.core.privacy_loss.exact("0.01")  # type: ignore[attr-defined,operator]


def test_item_47_a_with_query_used_twice_is_one_or_two_but_never_free(attack: Attack) -> None:
    plan = attack.con.sql(
        "WITH r AS (SELECT diag, COUNT(*) n FROM patients GROUP BY diag) SELECT a.n, b.n FROM r a JOIN r b USING (diag)"
    ).plan(epsilon=1)
    measured = [m for r in plan.releases for m in r.measured.measurements]
    assert sum(m.loss.epsilon for m in measured) == 1 == plan.loss.epsilon
    assert all(m.sensitivity.l1 >= 1 for m in measured)


@pytest.mark.parametrize("kind", ["POSITIONAL", "ASOF", "RIGHT SEMI", "RIGHT ANTI", "FULL ANTI", "LEFT INNER"])
def test_item_48_other_joins_are_refused_by_name(attack: Attack, kind: str) -> None:
    on = "" if kind == "POSITIONAL" else " ON pub.diag = patients.diag"
    for a, b in (("pub", "patients"), ("patients", "pub")):
        error = attack.refused(f"SELECT COUNT(*) FROM {a} {kind} JOIN {b}{on}", "DP118", "DP010")
        assert kind.split()[0] in str(error)


@pytest.mark.parametrize("kind", ["LEFT", "RIGHT", "FULL", "SEMI", "ANTI"])
def test_item_48_rows_of_nobody_are_not_counted(attack: Attack, kind: str) -> None:
    """Public rows that stay or go with somebody's rows belong to no patient: only the private side may be kept."""
    on = "ON pub.diag = patients.diag"
    kept = {"LEFT": "pub LEFT JOIN patients", "RIGHT": "patients RIGHT JOIN pub", "FULL": "patients FULL JOIN pub"}
    public = kept.get(kind, f"pub {kind} JOIN patients")
    attack.refused(f"SELECT COUNT(*) FROM {public} {on}", "DP220")
    if kind != "FULL":
        private = "pub RIGHT JOIN patients" if kind == "RIGHT" else f"patients {kind} JOIN pub"
        (l1, _), *_ = attack.sensitivities(f"SELECT COUNT(*) FROM {private} {on}")
        assert l1 >= (1 if kind in ("SEMI", "ANTI") else 2)


OPERATORS = ("UNION", "UNION ALL", "EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL")


@pytest.mark.parametrize(
    ("operator", "count", "most"),
    [
        ("UNION", 7, 4),
        ("UNION ALL", 8, 4),
        ("EXCEPT", 3, 3),
        ("EXCEPT ALL", 3, 3),
        ("INTERSECT", 1, 1),
        ("INTERSECT ALL", 1, 1),
        ("UNION ALL BY NAME", 8, 4),
    ],
)
def test_item_49_ids_at_the_same_position_are_answered(attack: Attack, operator: str, count: int, most: int) -> None:
    """Three visits and one row of patients per id: an id has as many rows in the result as the noise pays for."""
    sql = f"SELECT COUNT(*) FROM (SELECT pid, amt FROM visits {operator} SELECT pid, income AS amt FROM patients)"
    assert attack.sensitivities(sql) == [(most, most)]
    plan = attack.con.sql(sql).plan(epsilon=100000)
    assert attack.con.run(plan).rows == ((count,),)
    ids = f"SELECT COUNT(DISTINCT pid) FROM (SELECT pid FROM visits {operator} SELECT pid FROM patients)"
    assert attack.sensitivities(ids) == [(1, 1)]


@pytest.mark.parametrize("operator", OPERATORS)
def test_item_49_the_same_rows_twice_count_twice(attack: Attack, operator: str) -> None:
    assert attack.sensitivities(
        f"SELECT COUNT(*) FROM (SELECT kind FROM events {operator} SELECT kind FROM events)"
    ) == [(2, 2)]
    five = f" {operator} ".join(["SELECT kind FROM events"] * 5)
    assert attack.sensitivities(f"SELECT COUNT(*) FROM ({five})") == [(5, 5)]
    ((l1, _),) = attack.sensitivities(
        f"SELECT COUNT(*) FROM (SELECT pid, amt FROM visits {operator} SELECT pid, amt FROM visits)"
    )
    assert l1 == (6 if operator.startswith("UNION") else 3)


@pytest.mark.parametrize("operator", [*OPERATORS, "UNION ALL BY NAME"])
def test_item_49_released_numbers_combine_at_their_own_prices(attack: Attack, operator: str) -> None:
    """Every number is a release, also one that the set operation takes away again."""
    plan = attack.con.sql(f"SELECT COUNT(*) FROM patients {operator} SELECT COUNT(*) FROM visits").plan(epsilon=1)
    assert [int(m.sensitivity.l1 * m.unit) for r in plan.releases for m in r.measured.measurements] == [1, 3]
    assert sum(m.loss.epsilon for r in plan.releases for m in r.measured.measurements) == 1 == plan.loss.epsilon


@pytest.mark.parametrize(
    "window",
    [
        "COUNT(*) OVER ()",
        "SUM(age) OVER (PARTITION BY diag)",
        "row_number() OVER (ORDER BY age)",
        "lag(age) OVER (ORDER BY ts)",
    ],
)
def test_item_50_windows_over_rows_are_refused_by_name(attack: Attack, window: str) -> None:
    for sql in (
        f"SELECT {window} FROM patients",
        f"SELECT COUNT(*) FROM (SELECT {window} w FROM patients) WHERE w > 1",
        f"SELECT SUM({window}) FROM patients",
        f"SELECT COUNT(*) FROM (SELECT name FROM patients QUALIFY {window} = 4)",
        f"SELECT name FROM patients QUALIFY {window} = 4",
        f"SELECT COUNT(*) FROM patients WHERE {window} > 1",
        f"SELECT COUNT(*) FROM patients GROUP BY {window}",
    ):
        assert "window" in str(attack.refused(sql, "DP113", "DP105", "DP101", "DP112"))


@pytest.mark.parametrize(
    "source",
    [
        "LATERAL (SELECT unnest(range(age)))",
        "unnest([1, 2, 3])",
        "LATERAL unnest([age])",
        "generate_series(1, age)",
        "(SELECT unnest(range(1000)))",
    ],
)
def test_item_51_no_fan_out_from_lists(attack: Attack, source: str) -> None:
    attack.refused(f"SELECT COUNT(*) FROM patients, {source}", "DP101", "DP103", "DP105", "DP118")


def test_item_51_a_series_of_constants_multiplies_rows_as_values_do(attack: Attack) -> None:
    by_rows = [
        attack.sensitivities(f"SELECT COUNT(*) FROM patients, {rows}")
        for rows in ("range(3)", "generate_series(1, 3)", "(VALUES (0), (1), (2)) AS v(x)")
    ]
    assert by_rows[0] == by_rows[1] == by_rows[2] and by_rows[0][0][0] == 3


def test_item_52_no_recursion_and_double_use_counts_double(attack: Attack) -> None:
    attack.refused(
        "WITH RECURSIVE r AS (SELECT pid FROM patients UNION ALL SELECT pid FROM r) SELECT COUNT(*) FROM r", "DP101"
    )
    attack.refused("WITH r AS (SELECT pid FROM r) SELECT COUNT(*) FROM r", "DP102")
    twice = "WITH t AS (SELECT diag, pid FROM patients) SELECT COUNT(*) FROM t a JOIN t b ON a.diag = b.diag"
    attack.refused(twice, "DP230")
    (l1, _), *_ = attack.sensitivities(
        "WITH e AS (SELECT * FROM visits) SELECT COUNT(*) FROM e a JOIN e b ON a.pid = b.pid"
    )
    assert l1 == 3  # bounded after the join: three joined rows of an id count


@pytest.mark.parametrize(
    ("on", "code"),
    [
        ("patients.income = pub.cost", "DP117"),
        ("patients.age = pub.cost", "DP117"),
        ("patients.age = pub.diag", "DP117"),
        ("patients.big = pub.diag", "DP117"),
        ("patients.zip = pub.cost", "DP117"),
        ("patients.ts = pub.diag", "DP117"),
    ],
)
def test_item_53_join_keys_have_one_exact_type(attack: Attack, on: str, code: str) -> None:
    attack.refused(f"SELECT COUNT(*) FROM patients JOIN pub ON {on}", code)
    attack.refused(f"SELECT COUNT(*) FROM patients, pub WHERE {on}", code, "DP106")


@pytest.mark.parametrize(
    ("on", "least"),
    [
        ("u.diag = p.diag", 2),
        ("u.diag = p.diag OR p.age = 1", 3),
        ("p.age <= u.cost", 3),
        ("TRUE", 3),
        ("u.diag <> p.diag", 3),
        ("u.diag IS NOT DISTINCT FROM p.diag", 3),
        ("lower(u.diag) = p.diag", 3),
        ("u.diag = p.diag AND u.cost > 1", 2),
        ("u.diag = lower(p.diag)", 2),
        ("NOT u.diag <> p.diag", 3),
        ("u.diag IN ('flu', 'rare')", 3),
        ("u.diag || '' = p.diag", 3),
    ],
)
def test_item_53_the_noise_covers_every_match(attack: Attack, on: str, least: int) -> None:
    """pub has three rows, 'flu' twice: whatever ON says, a patient's rows multiply by no more than is paid for."""
    for sql in (
        f"SELECT COUNT(*) FROM patients p JOIN pub u ON {on}",
        f"SELECT COUNT(*) FROM patients p, pub u WHERE {on}",
    ):
        try:
            (l1, _), *_ = attack.sensitivities(sql)
        except dpsql.Rejected as refusal:
            assert refusal.diagnostics[0].code in ("DP210", "DP211", "DP116")
        else:
            assert l1 >= least, sql


@pytest.mark.parametrize(
    "where", ["name = 'BOB' COLLATE nocase", "name COLLATE nocase = 'BOB'", "nfc_normalize(name) = 'x'"]
)
def test_item_54_no_collations_in_queries(attack: Attack, where: str) -> None:
    attack.refused(f"SELECT COUNT(*) FROM patients WHERE {where}", "DP101", "DP105")
    attack.refused("SELECT COUNT(*) FROM patients GROUP BY name COLLATE nocase", "DP101", "DP105")


def test_item_54_no_collations_in_the_data(make: Callable[..., Clinic]) -> None:
    collated = make("DROP TABLE pub", "CREATE TABLE pub (diag VARCHAR COLLATE NOCASE, cost DOUBLE)")
    with collated.connect() as con, pytest.raises(dpsql.Error) as caught:
        con.execute("SELECT COUNT(*) FROM patients JOIN pub USING (diag)", epsilon=1)
    assert "DP006" in str(caught.value)


def test_item_54_a_users_default_collation_merges_nothing(make: Callable[..., Clinic]) -> None:
    """With default_collation = nocase one row decided which spelling a whole group came under."""
    import duckdb

    clinic = make("UPDATE patients SET diag = 'FLU' WHERE pid = 1")
    with duckdb.connect(str(clinic.folder / "d.duckdb")) as mine:
        mine.execute("SET default_collation = 'nocase'")
        with dpsql.connect(mine, policy=clinic.policy, optimizers="ours") as con:
            rows = dict(con.execute("SELECT diag, COUNT(*) FROM patients GROUP BY diag", epsilon=1000).rows)
            assert rows["flu"] == 1
            assert con.execute("SELECT COUNT(*) FROM patients WHERE name = 'BOB'", epsilon=1000).rows == ((0,),)
        assert mine.execute("SELECT current_setting('default_collation')").fetchall() == [("nocase",)]


def test_item_54_keys_are_compared_byte_by_byte(make: Callable[..., Clinic]) -> None:
    """Case, trailing spaces and Unicode forms make different keys, for the engine and for us."""
    policy = POLICY.replace("domain: [flu, HIV, rare]", 'domain: [a, A, \'a \', "\\u00e9", "e\\u0301"]')
    clinic = make("UPDATE patients SET diag = [NULL, 'a', 'A', 'a ', 'e' || chr(769)][pid + 1]", policy=policy)
    with clinic.connect() as con:
        rows = con.execute("SELECT diag, COUNT(*) FROM patients GROUP BY diag", epsilon=1000).rows
    assert rows == (("a", 1), ("A", 1), ("a ", 1), ("\u00e9", 0), ("e\u0301", 1), (None, 0))


def test_item_55_the_time_zone_is_utc(make: Callable[..., Clinic]) -> None:
    import duckdb

    clinic = make()
    with clinic.connect() as con:
        assert con.service.engine.fetch("SELECT current_setting('TimeZone')").columns == (["UTC"],)
    with duckdb.connect(str(clinic.folder / "d.duckdb")) as mine:
        mine.execute("SET TimeZone = 'Asia/Tokyo'")
        with dpsql.connect(mine, policy=clinic.policy, optimizers="ours") as con:
            assert con.service.engine.fetch("SELECT current_setting('TimeZone')").columns == (["UTC"],)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(DISTINCT pid) FROM (SELECT coalesce(pid, 0) AS pid, amt FROM visits)",
        "SELECT SUM(amt) FROM (SELECT pid + 1 AS pid, amt FROM visits)",
        "SELECT COUNT(*) FROM (SELECT amt FROM visits)",
        "SELECT COUNT(*) FROM visits v JOIN patients p ON v.pid = p.pid",
        "SELECT COUNT(*) FROM (SELECT CAST(pid AS VARCHAR) AS pid FROM visits)",
        "SELECT COUNT(*) FROM (SELECT DISTINCT pid, diag FROM patients)",
        "SELECT COUNT(DISTINCT v.pid) FROM visits v JOIN patients p ON v.pid = p.pid",
    ],
)
def test_item_56_the_id_survives_or_the_query_is_refused(attack: Attack, sql: str) -> None:
    """However a query hides or changes the id: contributions are bounded by the table's own id, or it is refused."""
    try:
        plan = attack.con.sql(sql).plan(epsilon=1, delta=1e-3)
    except dpsql.Rejected as refusal:
        assert refusal.diagnostics[0].code in ("DP220", "DP211", "DP301", "DP110", "DP106")
        return
    for release in plan.releases:
        printed = release.statements[0].sql
        assert '"pid"' in printed and "IS NOT NULL" in printed
        assert all(m.sensitivity.l1 >= 1 for m in release.measured.measurements)


def test_item_56_two_ids_are_joined_on_the_id_only(attack: Attack) -> None:
    for on in (
        "v.pid + 0 = p.pid",
        "v.pid = p.pid + 1",
        "v.pid = p.age",
        "abs(v.pid) = p.pid",
        "v.pid < p.pid",
        "TRUE",
    ):
        attack.refused(f"SELECT COUNT(*) FROM visits v JOIN patients p ON {on}", "DP230", "DP116", "DP117")


def test_item_56_rows_without_an_id_are_nobodys(attack: Attack) -> None:
    """Two visits have no pid: they are dropped, not counted as one person's."""
    assert attack.answer("SELECT COUNT(*) FROM visits") == [(4,)]
    assert attack.answer("SELECT COUNT(*) FROM visits WHERE pid IS NULL") == [(0,)]
    assert attack.answer("SELECT COUNT(DISTINCT pid) FROM visits") == [(3,)]


def test_item_57_distinct_counts(attack: Attack) -> None:
    assert attack.sensitivities("SELECT COUNT(DISTINCT pid) FROM visits") == [(1, 1)]
    assert attack.sensitivities("SELECT COUNT(DISTINCT amt) FROM visits") == [(3, 3)]
    assert attack.sensitivities("SELECT COUNT(DISTINCT u.cost) FROM patients p JOIN pub u ON p.diag = u.diag") == [
        (2, 2)
    ]
    assert attack.sensitivities("SELECT COUNT(DISTINCT p.pid) FROM patients p JOIN pub u ON p.diag = u.diag") == [
        (1, 1)
    ]
    assert attack.sensitivities("SELECT COUNT(DISTINCT value) FROM events") == [(1, 1)]


@pytest.mark.parametrize(
    "call",
    [
        "MIN(age)",
        "MAX(name)",
        "histogram(age)",
        "mode(name)",
        "skewness(age)",
        "entropy(name)",
        "bit_or(age)",
        "kurtosis(age)",
        "arg_max(age, income)",
        "VAR_POP(DISTINCT age)",
        "MEDIAN(DISTINCT age)",
    ],
)
def test_item_58_other_aggregates_are_refused_by_name(attack: Attack, call: str) -> None:
    codes = ("DP101", "DP105", "DP304")
    error = attack.refused(f"SELECT {call} FROM patients", *codes)
    attack.refused(f"SELECT diag, {call} FROM patients GROUP BY diag", *codes)
    attack.refused(f"SELECT COUNT(*) FROM patients HAVING {call} IS NOT NULL", *codes)
    assert call.split("(")[0].lower()[:3] in str(error).lower()


def test_item_58_variances_are_released_like_sums(attack: Attack) -> None:
    """Of sums, squares and counts with noise, each paid for; a variance without bounds is refused."""
    for call in ("VAR_POP", "VAR_SAMP", "STDDEV_POP", "STDDEV_SAMP", "VARIANCE", "STDDEV"):
        plan = attack.con.sql(f"SELECT {call}(age) FROM patients").plan(epsilon=1)
        measured = [m for r in plan.releases for m in r.measured.measurements]
        assert len(measured) == 3 and sum(m.loss.epsilon for m in measured) == 1 == plan.loss.epsilon
        assert max(m.sensitivity.l1 * m.unit for m in measured) >= 55**2 / 2
        attack.refused(f"SELECT {call}(big) FROM patients", "DP201", "DP202")


def test_item_59_bounds_never_come_from_data(attack: Attack) -> None:
    attack.refused("SELECT SUM(CLIP(big, age, 10)) FROM patients", "DP115", "DP106", "DP201", "DP202")
    attack.refused("SELECT SUM(CLIP(big, 0, MAX(big))) FROM patients", "DP108", "DP115", "DP101")
    attack.refused("SELECT SUM(CLIP(big, (SELECT MIN(big) FROM patients), 1)) FROM patients", "DP115")
    attack.refused("SELECT SUM(LEAST(big, (SELECT COUNT(*) FROM patients))) FROM patients", "DP201", "DP202")
    attack.refused("SELECT SUM((SELECT COUNT(*) FROM patients)) FROM patients", "DP201", "DP202")
    attack.refused("SELECT SUM(LEAST(big, age)) FROM patients", "DP201", "DP202")
    (l1, _), *_ = attack.sensitivities("SELECT SUM(CLIP(big, -3, 7)) FROM patients")
    assert l1 == 7


NEIGHBOURS = (
    "SELECT diag, COUNT(*), SUM(age), AVG(income), COUNT(DISTINCT name) FROM patients GROUP BY diag",
    "SELECT COUNT(*), SUM(amt), AVG(amt), COUNT(amt) FROM visits",
    "SELECT amt > 10, COUNT(*), SUM(amt), AVG(amt), COUNT(DISTINCT amt), COUNT(DISTINCT pid) FROM visits GROUP BY 1",
    "SELECT p.name, COUNT(*), SUM(v.amt), AVG(p.age) FROM visits v JOIN patients p USING (pid) GROUP BY 1",
    "SELECT cost > 1, COUNT(*), SUM(amt) FROM visits v JOIN patients p USING (pid) JOIN pub u USING (diag) GROUP BY 1",
    "SELECT u.diag, COUNT(*), AVG(p.age) FROM patients p CROSS JOIN pub u GROUP BY 1",
    "SELECT a.amt > b.amt, COUNT(*), SUM(a.amt) FROM visits a JOIN visits b ON a.pid = b.pid GROUP BY 1",
    "SELECT zip, SUM(amt) FILTER (WHERE age > 3), COUNT(DISTINCT amt) FROM visits JOIN patients USING (pid) GROUP BY 1",
    "SELECT SUM(CASE WHEN name = 'bob' THEN age * 1000 ELSE -age END), AVG(CLIP(big, -5, 9)) FROM patients",
    "SELECT kind, COUNT(*), SUM(value), AVG(value) FROM events GROUP BY 1",
    *(
        f"SELECT COUNT(*), SUM(amt), COUNT(DISTINCT pid) FROM "
        f"(SELECT pid, amt FROM visits {operator} SELECT pid, CAST(age AS DOUBLE) AS amt FROM patients)"
        for operator in OPERATORS
    ),
    *(f"SELECT COUNT(*) FROM (SELECT kind FROM events {o} SELECT kind FROM events WHERE value > 3)" for o in OPERATORS),
    "SELECT COUNT(*), COUNT(DISTINCT x) FROM patients LEFT JOIN (SELECT DISTINCT diag, cost x FROM pub) USING (diag)",
    "SELECT label, COUNT(*) FROM patients p JOIN (SELECT DISTINCT label, diag FROM grid) USING (diag) GROUP BY label",
    "SELECT SUM(age) FROM (SELECT pid, age FROM patients EXCEPT SELECT pid, big FROM patients)",
    "SELECT SUM(x), AVG(x) FROM (SELECT pid, age * 2 AS x FROM patients UNION ALL SELECT pid, 9 - age FROM patients)",
    "SELECT SUM(x), SUM(x % 7) FROM (SELECT pid, big AS x FROM patients INTERSECT SELECT pid, age FROM patients)",
    "SELECT COUNT(*), SUM(CLIP(n, 0, 30)) FROM (SELECT kind, COUNT(*) n FROM events GROUP BY ROLLUP (kind))",
    "SELECT zip, diag, COUNT(*), SUM(amt) FROM visits JOIN patients USING (pid) GROUP BY ROLLUP (diag, zip)",
    "SELECT amt > 10, kind, COUNT(*) FROM (SELECT pid, amt, 'v' AS kind FROM visits UNION ALL "
    "SELECT pid, income, diag FROM patients) GROUP BY CUBE (kind, 1)",
)
