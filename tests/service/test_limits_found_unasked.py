"""`search: auto`: limits and bounds that nobody declares are found without asking, and never in vain."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dpsql.answers.stored.address import Addresses
from dpsql.api.connection import connect
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.diagnostics.errors import NothingFound, Rejected
from dpsql.diagnostics.note import Topic
from dpsql.planner.stages.searching import LimitsFound
from dpsql.service.checks.check import check
from dpsql.service.session import Session
from tests.service.test_searches import BY_PLACE, COUNT, DATA, SURE, folder, nothing_seen

NOBODY = DATA.replace("range(6000)", "range(0)")
LIMIT = "    unit: {column: id, of: walker}\n"


@contextmanager
def under(at: Path, search: str, declared: str = "", data: str = DATA) -> Iterator[Session]:
    """A session under a policy that says so of searches, with further limits of the table."""
    made = folder(at, data=data) / "walks.yaml"
    text = made.read_text("utf-8").replace(LIMIT, LIMIT + (f"    {declared}\n" if declared else ""))
    made.write_text(f"search: {search}\n{text}", encoding="utf-8")
    with connect(made, ledger=":memory:") as con:
        yield con


def searched(session: Session, sql: str, **settings: Any) -> list[str] | str:
    """Whose limits a query leaves to searches; the code of a refusal."""
    try:
        plan = session.plan(sql, epsilon=1, delta="1e-7", **settings)
    except Rejected as refusal:
        return refusal.diagnostics[0].code
    return [] if plan.searches is None else [s.limit.what for s in plan.searches.every]


SUMS = "SELECT SUM(steps) AS s FROM walks"
MEAN = "SELECT AVG(steps) AS a FROM walks"
UNITS = "SELECT place, COUNT(DISTINCT id) AS n FROM walks GROUP BY place"
TAGS = "SELECT tag, COUNT(*) AS n FROM walks GROUP BY tag"
KNOWN = "SELECT AVG(hours) AS a FROM walks"
READS_ANOTHER = "SELECT COUNT(*) AS n FROM walks WHERE hours > (SELECT COUNT(*) FROM walks)"
READS_PRIVATE_GROUPS = """SELECT COUNT(*) AS n FROM walks w
JOIN (SELECT tag, COUNT(*) AS m FROM walks GROUP BY tag) t ON w.tag = t.tag WHERE w.hours < t.m"""


@pytest.mark.parametrize(
    ("declared", "sql", "auto", "allow"),
    [
        ("", COUNT, ["COUNT(*)"], "DP211"),
        ("", SUMS, ["SUM(steps)"], "DP201"),
        ("", MEAN, ["steps", "COUNT(*)"], "DP201"),
        ("", KNOWN, ["COUNT(*)"], "DP211"),
        ("", UNITS, [], "DP211"),
        ("", TAGS, ["COUNT(*)"], "DP211"),
        ("", READS_ANOTHER, ["COUNT(*)", "COUNT(*)"], "DP211"),
        ("max_rows_per_unit: 15", COUNT, [], []),
        ("max_rows_per_unit: 15", TAGS, [], []),
        ("max_rows_per_unit: 15", SUMS, ["SUM(steps)"], "DP201"),
        ("max_rows_per_unit: 15", MEAN, ["steps"], "DP201"),
        ("max_rows_per_unit: 16", COUNT, ["COUNT(*)"], []),
        ("max_rows_per_unit: 16", KNOWN, ["COUNT(*)"], []),
        ("max_rows_per_unit: 16", TAGS, ["COUNT(*)"], []),
        ("max_rows_per_unit: 16", UNITS, [], []),
        ("max_rows_per_unit: {search: true, at_most: 9}", COUNT, ["COUNT(*)"], ["COUNT(*)"]),
    ],
)
def test_what_is_searched(
    tmp_path: Path, declared: str, sql: str, auto: list[str] | str, allow: list[str] | str
) -> None:
    for search, expected in (("auto", auto), ("allow", allow)):
        with under(tmp_path / search, search, declared) as session:
            assert searched(session, sql) == searched(session, sql, limits="auto") == expected
            assert searched(session, sql, limits="declared") == allow
            said = f"/* dpsql: limits=declared */ {sql}"
            assert searched(session, said) == searched(session, said, limits="search") == allow
            assert searched(session, f"/* dpsql: limits=auto */ {sql}", limits="search") == expected
            codes = [found.code for found in check(sql, session.policy) if found.code != "DP503"]
            assert codes == ([expected] if isinstance(expected, str) else ["DP506"] if expected else [])


@pytest.mark.parametrize(("limit", "told"), [(40, True), (15, False)])
def test_a_limit_that_cannot_be_searched_is_told(tmp_path: Path, limit: int, told: bool) -> None:
    """What reads groups that need a δ is limited as declared, and nobody takes it for a limit that was found."""
    with under(tmp_path, "auto", f"max_rows_per_unit: {limit}") as session:
        plan = session.plan(READS_PRIVATE_GROUPS, epsilon=1, delta="1e-7")
        assert any("depend on another aggregate's number" in note for note in plan.notes) is told
        assert not any("another aggregate's" in note for note in session.plan(COUNT, epsilon=1).notes)
        assert not any("another aggregate's" in note for note in session.plan(READS_ANOTHER, epsilon=1).notes)
        declared = session.plan(READS_PRIVATE_GROUPS, epsilon=1, delta="1e-7", limits="declared")
        assert not any("another aggregate's" in note for note in declared.notes)


def test_what_is_known_before_the_run_is_told(tmp_path: Path) -> None:
    later = (
        "COUNT(*): its limit is found when the query runs, if 42 walker units or more are alike:"
        " noise at least ± 4, at most ± 160; what the limit cuts"
    )
    with under(tmp_path, "auto", "max_rows_per_unit: 40") as session:
        plan = session.plan(COUNT, epsilon=1)
        told, share = (note for note in plan.notes if note.topic is Topic.LATER)
        assert share == "ε 0.25 of the price find the limits; then the rest is spent at these, whatever they are"
        least, most = session.sql(COUNT).accuracy(epsilon=1)["n"]
        assert (least, most) == (4, 160)
        assert told == f"{later} comes on top, and is known after the run"
        assert told in session.sql(COUNT).explain(epsilon=1)
        assert plan.loss == PrivacyLoss(Fraction(1)), "the price is exact"
        assert not any(note.topic is Topic.LATER for note in session.sql(COUNT).run(epsilon=SURE).plan.notes)
        finds = "a limit of 40 rows is declared: limits = 'auto' finds how many are needed, for the same price"
        assert finds in session.plan(COUNT, epsilon=1, limits="declared").notes and finds not in plan.notes
    with under(tmp_path / "none", "auto") as session:
        told, _ = (note for note in session.plan(COUNT, epsilon=1).notes if note.topic is Topic.LATER)
        assert "noise at least ± 4; what" in told and session.sql(COUNT).accuracy(epsilon=1)["n"] == (4, None)
        kilometres = session.sql("SELECT SUM(km) AS s FROM walks")  # counted in 2^-20: the least limit says nothing
        (told, _) = (note for note in session.plan(kilometres.sql, epsilon=1).notes if note.topic is Topic.LATER)
        assert "noise ± 4 times the limit; what" in told
        assert "k = 29: ± 2,048; k = 32: ± 16,384" in kilometres.explain(epsilon=1)
    with under(tmp_path / "allow", "allow", "max_rows_per_unit: 40") as session:
        assert finds not in session.plan(COUNT, epsilon=1, limits="declared").notes


def test_a_policy_that_refuses_searches_nothing(tmp_path: Path) -> None:
    with under(tmp_path, "refuse") as session:
        assert searched(session, COUNT) == searched(session, COUNT, limits="auto") == "DP211"
        assert searched(session, COUNT, limits="search") == "DP213"


def test_it_changes_no_answers_that_are_held(tmp_path: Path) -> None:
    """What a policy says of searches is no part of its hash; the octaves that were found are those of any search."""
    with under(tmp_path / "auto", "auto") as auto, under(tmp_path / "allow", "allow") as allow:
        assert auto.policy.hash == allow.policy.hash
        auto.sql(COUNT).run(epsilon=SURE)
        assert auto.sql(COUNT).cost(epsilon=SURE, limits="search") == PrivacyLoss()


# --- nothing is asked in vain ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "limits"),
    [
        (COUNT, [1]),
        (SUMS, [1]),
        (MEAN, [(0, 1), 1]),
        (BY_PLACE, [1]),
        ("SELECT AVG(km) AS a FROM walks", [(0, 1), 1]),
    ],
)
def test_where_nothing_is_seen_the_least_limit_stands(tmp_path: Path, sql: str, limits: list[object]) -> None:
    with under(tmp_path, "auto") as session, nothing_seen() as coarse:
        answer = session.sql(sql).run(epsilon=coarse)
        assert [found.limit for found in answer.plan.found] == limits
        assert all(found.octaves.evidence.is_weak for found in answer.plan.found)
        assert "the least one stands, whatever it cuts" in " ".join(answer.notes)
        with pytest.raises(NothingFound, match="DP212"):
            session.sql(sql).run(epsilon=coarse, limits="search", fresh=True)


def test_a_cap_stands_where_nothing_is_seen(tmp_path: Path) -> None:
    with under(tmp_path, "auto", "max_rows_per_unit: 40", data=NOBODY) as session:
        answer = session.sql(COUNT).run(epsilon=SURE)
        assert [found.limit for found in answer.plan.found] == [40]
        assert "the declared limit stands" in " ".join(answer.notes)


def test_octaves_beyond_a_cap_are_counted(tmp_path: Path) -> None:
    """A thousand units of six walks, and one of 3,000."""
    more = f"{DATA} UNION ALL SELECT 7, 'hill', 5, 300, 1.25, 0.5, 't0' FROM range(2994)"
    with under(tmp_path, "auto", "max_rows_per_unit: 40", data=more) as session:
        (found,) = session.sql(COUNT).run(epsilon=SURE).plan.found
        assert (found.limit, found.octaves.evidence.highest) == (40, 12)
        assert (found.octaves.counts[3], found.octaves.counts[12]) == (999, 1)


def test_a_largest_error_is_met_with_declared_limits(tmp_path: Path) -> None:
    with under(tmp_path / "declared", "auto", "max_rows_per_unit: 40") as session:
        plan = session.plan(COUNT, max_error={"n": 50})
        assert plan.searches is None and plan.found == ()
    with under(tmp_path / "none", "auto") as session, pytest.raises(Rejected, match="DP411"):
        session.plan(COUNT, max_error={"n": 50})


# --- what the plan says of what was found ----------------------------------------------------------------------------


def test_a_plan_says_which_limit_a_component_follows(tmp_path: Path) -> None:
    sql = "SELECT place, COUNT(*) AS n, AVG(steps) AS a FROM walks GROUP BY place"
    with under(tmp_path, "auto") as session:
        plan = session.sql(sql).run(epsilon=SURE).plan
        stage = plan.stage(LimitsFound)
        assert stage is not None
        followed = [[limit.words for limit, _ in stage.limits_of(0, i)] for i in range(3)]
        assert sorted(map(sorted, followed)) == [
            ["COUNT(*)"], ["COUNT(*) (of averages)"], ["COUNT(*) (of averages)", "steps"]
        ]  # fmt: skip
        for limit, found in stage.limits_of(0, 0):
            assert limit.label == found.octaves.label and found in plan.found
    with under(tmp_path / "few", "auto", "max_rows_per_unit: 9") as session:
        assert session.sql(COUNT).run(epsilon=SURE).plan.stage(LimitsFound) is None


def test_of_what_is_at_most_as_large_the_limit_is_no_larger(tmp_path: Path) -> None:
    """Nobody walks at night: nothing is seen of it, and the limit is that of all walks."""
    sql = "SELECT COUNT(*) AS n, COUNT(*) FILTER (WHERE hours > 6) AS m FROM walks"
    with under(tmp_path, "auto") as session:
        answer = session.sql(sql).run(epsilon=SURE)
        whole, part = answer.plan.found
        assert answer.rows == ((6000, 0),)
        assert (whole.limit, part.limit, part.by) == (8, 8, whole) and whole.by is None
        assert "that of COUNT(*) stands" in " ".join(answer.notes)
        # An answer's address names both searches: with other octaves of the larger one it is another number.
        stage = answer.plan.stage(LimitsFound)
        assert stage is not None
        other = replace(stage, results=(whole, replace(part, by=replace(whole, drawn="another"))))
        stages = tuple(other if s is stage else s for s in answer.plan.stages)
        own, theirs = (
            [Addresses(p, session.policy).of(0).address(c) for c in p.releases[0].measured.node.components]
            for p in (answer.plan, replace(answer.plan, stages=stages))
        )
        assert own[0] == theirs[0] and own[1] != theirs[1]


def test_an_average_has_the_limit_of_a_count(tmp_path: Path) -> None:
    """Half of the units have one row of 1 and half have 63 of 9: by the median unit the mean would be near 5."""
    data = """CREATE TABLE walks AS SELECT
      CAST(i % 1000 AS BIGINT) AS id, 'hill' AS place,
      CAST(CASE WHEN i % 1000 < 520 THEN 1 ELSE 9 END AS INTEGER) AS hours,
      CAST(300 AS BIGINT) AS steps, CAST(1.25 AS DECIMAL(8,2)) AS cost, CAST(0.5 AS DOUBLE) AS km, 't' AS tag
    FROM range(63000) t(i) WHERE i < 1000 OR i % 1000 >= 520"""
    mean = Fraction(520 + 480 * 63 * 9, 520 + 480 * 63)
    with under(tmp_path, "auto", data=data) as session:
        answer = session.sql(KNOWN).run(epsilon=SURE)
        assert [found.limit for found in answer.plan.found] == [64]
        assert answer.rows[0][0] == pytest.approx(float(mean), rel=0.02)
        # Twin: the octave of the median unit.
        assert 0.6 * mean > (520 + 480 * 9) / 1000
