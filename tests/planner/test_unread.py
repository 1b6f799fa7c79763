"""What is left of a plan whose parts have no rows: what is measured, what it costs, what it says, what is refused."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dpsql.core.ir.nodes import Release, Scan
from dpsql.core.ir.public_facts import PublicFacts
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Rejected
from dpsql.planner.compile import compile_query
from dpsql.planner.explain.explain_text import as_text
from dpsql.planner.plan import Plan
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.policy.load import parse_policy
from dpsql.policy.policy import Policy
from tests.support.planning import HEAD, planned, policy

TABLES = """
people: {unit: {of: person, column: id}, max_rows_per_unit: 4, columns: &c {id: {type: bigint, nullable: false}, x: {type: integer, bounds: [0, 9]}, free: {type: double}, city: {type: varchar, domain: [a, b], nullable: false}, note: {type: varchar}}}
open: {unit: {of: person, column: id}, columns: *c}
log: {unit: {rows: 1}, columns: {x: {type: integer, bounds: [0, 9]}}}
queue: {unit: {rows: 1, neighbours: replace_one}, columns: {x: {type: integer, bounds: [0, 9]}}}
codes: {public: true, unique: [[x]], columns: {x: {type: integer, nullable: false}, seen: {type: timestamptz}}}
"""  # noqa: E501
POLICY = policy(TABLES)
REAL = "SELECT COUNT(*) AS n FROM people"


def releases(plan: Plan) -> list[bool]:
    """Of each release whether it has no rows."""
    return [r.measured.empty for r in plan.releases]


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        (f"{REAL} LIMIT 0", []),
        (f"{REAL} HAVING 1 <> 1", []),
        (f"SELECT * FROM ({REAL}) WHERE FALSE", []),
        (f"{REAL} WHERE FALSE", [True]),
        (f"{REAL} WHERE FALSE LIMIT 0", []),
        ("SELECT note, COUNT(*) FROM people WHERE FALSE GROUP BY note", []),
        ("SELECT city, COUNT(*) FROM people WHERE FALSE GROUP BY city", [True]),
        ("SELECT * FROM people LIMIT 0", []),
        # of two releases the real one is paid alone
        (f"{REAL} UNION ALL {REAL} WHERE FALSE", [False, True]),
        (f"{REAL} UNION ALL ({REAL} LIMIT 0)", [False]),
        (f"SELECT (SELECT COUNT(*) FROM log WHERE FALSE) AS m, n FROM ({REAL})", [False, True]),
        ("SELECT COUNT(*) FROM people WHERE x > (SELECT COUNT(*) FROM log WHERE FALSE)", [True, False]),
        # what only a release of no rows reads is not asked for
        ("SELECT COUNT(*) FROM people WHERE x > (SELECT AVG(x) FROM log) AND 1 = 0", [True]),
        ("SELECT COUNT(*) FROM people JOIN (SELECT x, COUNT(*) AS n FROM log GROUP BY x) USING (x) LIMIT 0", []),
        # one that is read elsewhere, too, is
        ("WITH m AS (SELECT AVG(x) AS a FROM log) "
         "SELECT a, (SELECT COUNT(*) FROM people, m WHERE x > a AND FALSE) FROM m", [False, True]),
    ],
)  # fmt: skip
def test_what_is_measured(sql: str, found: list[bool]) -> None:
    plan = planned(sql, POLICY)
    assert releases(plan) == found
    assert (plan.loss == PrivacyLoss()) is all(found)
    assert all((r.statements == ()) is r.measured.empty for r in plan.releases)
    if not all(found):
        assert plan.loss == PrivacyLoss(1)


def test_a_real_release_beside_one_of_no_rows_is_the_same_as_alone() -> None:
    alone = planned(REAL, POLICY).releases[0]
    for sql in (f"{REAL} UNION ALL {REAL} WHERE FALSE", f"{REAL} UNION ALL ({REAL} LIMIT 0)"):
        beside = planned(sql, POLICY).releases[0]
        assert [m.mechanism for m in beside.measured.measurements] == [m.mechanism for m in alone.measured.measurements]
        assert [s.shown for s in beside.statements] == [s.shown for s in alone.statements]


def test_what_a_real_release_reads_is_not_changed() -> None:
    """A branch of no rows counts as any other: the price of a release follows from the text, not from a guess."""
    plan = planned("SELECT COUNT(*) FROM (SELECT x FROM log UNION ALL (SELECT x FROM log LIMIT 0))", POLICY)
    (release,) = plan.releases
    assert release.measured.measurements[0].sensitivity.l1 == 2
    assert len([t for t in plan.tree.walk() if isinstance(t.node, Scan)]) == 2


def test_nothing_below_the_rows_that_are_left_out_is_in_the_plan() -> None:
    plan = planned(f"SELECT n + 1 AS m FROM ({REAL}) LIMIT 0", POLICY)
    assert not [t for t in plan.tree.walk() if isinstance(t.node, Scan | Release)]
    assert plan.reads_nothing and plan.tree.fact.empty


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        (f"{REAL} LIMIT 0", "LIMIT 0: no rows"),
        (f"{REAL} HAVING 1 <> 1", "1 <> 1 is never true: no rows"),
        (f"{REAL} WHERE x > 3 AND (1 = 0)", "1 = 0 is never true: numbers of no rows"),
        ("SELECT x FROM people JOIN codes USING (x) WHERE NULL", "NULL is never true: no rows"),
        ("SELECT COUNT(*) FROM people WHERE '\x1b[31m' = 'b'", "a condition is never true: numbers of no rows"),
    ],
)  # fmt: skip
def test_explain_says_that_it_is_free_and_why(sql: str, why: str) -> None:
    plan = planned(sql, POLICY)
    text = as_text(plan)
    note = f"{why}; nothing is read or charged for them"
    assert "cost: nothing: no rows are asked for" in text and f"note: {note}" in text
    assert plan.unread == (note,) and note in plan.notes


def test_what_else_is_told_is_about_what_is_read() -> None:
    assert planned(f"{REAL} WHERE FALSE", POLICY).notes == planned(f"{REAL} WHERE FALSE", POLICY).unread
    mixed = planned(f"{REAL} UNION ALL {REAL} WHERE FALSE", POLICY)
    assert "at most 4 rows per person counted" in mixed.notes
    assert "cost: ε 1 of each person" in as_text(mixed)


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT SUM(free) FROM people WHERE FALSE", "DP201"),
        ("SELECT SUM(free) FROM people LIMIT 0", "DP201"),
        ("SELECT COUNT(*) FROM open WHERE FALSE", "DP211"),
        ("SELECT COUNT(*) FROM open LIMIT 0", "DP211"),
        ("SELECT MAX(x) FROM people WHERE FALSE", "DP101"),
        ("SELECT nothing FROM people LIMIT 0", "DP103"),
        ("SELECT id, COUNT(*) FROM people WHERE FALSE GROUP BY id", "DP301"),
        ("SELECT ROW_NUMBER() OVER (ORDER BY x) FROM people WHERE FALSE", "DP113"),
        ("SELECT COUNT(*) FROM (SELECT * FROM people LIMIT 3) WHERE FALSE", "DP112"),
        ("SELECT * FROM (SELECT * FROM people ORDER BY x) WHERE FALSE", "DP110"),
        ("SELECT COUNT(*) FROM codes LEFT JOIN people USING (x) WHERE FALSE", "DP220"),
        ("SELECT COUNT(*) FROM log, queue WHERE FALSE", "DP230"),
        ("SELECT COUNT(*) FROM log UNION ALL SELECT COUNT(*) FROM queue LIMIT 0", "DP230"),
        ("SELECT seen FROM codes LIMIT 0", "DP101"),
        ("SELECT x FROM people WHERE x < 0", "DP110"),
        ("SELECT x FROM log UNION ALL SELECT x FROM log WHERE FALSE", "DP110"),
    ],
)
def test_what_would_be_refused_with_rows_is_refused_without(sql: str, code: str) -> None:
    with pytest.raises(Rejected) as refusal:
        planned(sql, POLICY)
    assert [d.code for d in refusal.value.diagnostics] == [code]


def test_no_private_keys_without_delta_all_the_same() -> None:
    """What the policy never answers it does not answer without rows, either."""
    head = HEAD.replace(", delta: 1e-6", "") + "units: {person: {}}\nprivacy: {accountant: pure_dp}\n"
    pure = parse_policy(f"{head}tables:\n" + TABLES.replace("\n", "\n  "))
    for sql in (
        "SELECT note, COUNT(*) FROM people WHERE FALSE GROUP BY note",
        "SELECT DISTINCT note FROM people LIMIT 0",
    ):
        with pytest.raises(Rejected) as refusal:
            planned(sql, pure)
        assert [d.code for d in refusal.value.diagnostics] == ["DP408"]


def _planned(sql: str, of: Policy, settings: QuerySettings) -> Plan:
    return compile_query(Source(sql), of, PublicFacts(), settings)


def test_columns_that_no_release_shows_any_more_ask_for_nothing() -> None:
    settings = QuerySettings(max_error={"n": Fraction(50)}, delta=Fraction(1, 10**9))
    assert _planned(f"{REAL} LIMIT 0", POLICY, settings).bid.max_error == {}
    mixed = _planned(f"{REAL} UNION ALL ({REAL} LIMIT 0)", POLICY, settings)
    assert mixed.loss == _planned(REAL, POLICY, settings).loss != PrivacyLoss()
    with pytest.raises(Rejected) as refusal:  # nothing says how much the other number may cost
        _planned(f"SELECT n, (SELECT COUNT(*) FROM log) AS m FROM ({REAL} WHERE FALSE)", POLICY, settings)
    assert [d.code for d in refusal.value.diagnostics] == ["DP411"]
    with pytest.raises(Rejected) as refusal:
        _planned(f"{REAL} LIMIT 0", POLICY, QuerySettings(max_error={"m": Fraction(50)}))
    assert [d.code for d in refusal.value.diagnostics] == ["DP411"]


def test_a_filter_that_is_never_true_counts_nothing() -> None:
    more = "COUNT(NULL) AS c, AVG(x) FILTER (WHERE 1 > 2) AS d"
    plan = planned(f"SELECT COUNT(*) AS a, COUNT(*) FILTER (WHERE 1 = 0) AS b, {more} FROM people", POLICY)
    (release,) = plan.releases
    assert [m.known for m in release.measured.measurements] == [None, 0, 0, 0, 0]
    assert release.measured.measurements[0].loss == PrivacyLoss(1) and not release.measured.empty
