"""Equal questions have one address, whoever asks them and with what else; different ones have different addresses."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import combinations
from typing import Any

import pytest

from dpsql.answers.stored import address
from dpsql.answers.stored.address import Addresses, Rows, digest
from dpsql.core.ir.components import ProductSum, ValueSum
from dpsql.core.release.noisy import GivenAnswers, wanted
from dpsql.core.values.domains import DateRange
from dpsql.core.values.key_lists import LazyKeys
from dpsql.core.values.value import Domain
from dpsql.planner.plan import Plan
from dpsql.policy.policy import Policy
from tests.support.planning import planned, policy

TABLES = """
t:
  unit: {column: id}
  max_rows_per_unit: 5
  columns:
    id: {type: bigint, nullable: false}
    kind: {type: varchar, domain: [a, b, c], nullable: false}
    day: {type: date, bounds: [2024-01-01, 2024-12-31], nullable: false}
    word: {type: varchar}
    x: {type: integer, bounds: [0, 10], nullable: false}
    z: {type: integer, bounds: [0, 10], nullable: false}
    y: {type: double, bounds: [0, 1]}
u:
  unit: {rows: 1}
  columns:
    kind: {type: varchar, domain: [a, b, c], nullable: false}
    word: {type: varchar}
    x: {type: integer, bounds: [0, 10], nullable: false}
v:
  unit: {rows: 1}
  max_frequency: [{columns: [k], rows: 2, enforce: truncate}]
  columns: {k: {type: integer}}
"""
POLICY = policy(TABLES)


def addresses(sql: str, of: Policy = POLICY, rows: dict[int, Rows] | None = None, order: str = "") -> list[set[str]]:
    """The addresses of each release's components, those of private keys over the key set `keys`."""
    return _addresses(planned(sql, of), of, rows, order)


def _addresses(plan: Plan, of: Policy = POLICY, rows: dict[int, Rows] | None = None, order: str = "") -> list[set[str]]:
    addresses, found = Addresses(plan, of, order), []
    for at, release in enumerate(plan.releases):
        base, node = addresses.of(at, rows), release.measured.node
        keys = "" if node.threshold is None else base.address_of_keys()  # stands for the id of the stored keys
        others = (i for i in wanted(release.measured, GivenAnswers()) if i != node.threshold)
        found.append({base.address(node.components[i], keys) for i in others} | ({keys} - {""}))
    return found


SAME = [
    ("SELECT COUNT(*) AS n FROM t", "SELECT 1 + COUNT(1) AS other FROM t AS z"),
    ("SELECT kind, COUNT(*) FROM t GROUP BY kind", "SELECT COUNT(*), u.kind FROM (SELECT * FROM t) u GROUP BY 2"),
    ("SELECT SUM(x) FROM t WHERE x > 3 AND kind = 'a'", "SELECT SUM(x) FROM (FROM t WHERE x > 3 AND kind = 'a')"),
    ("SELECT SUM(x) FROM t", "WITH w AS (SELECT x AS v, id FROM t) SELECT SUM(v) FROM w"),
    ("SELECT word, COUNT(*) FROM t GROUP BY word", "SELECT COUNT(*) n, word w FROM t GROUP BY w ORDER BY n"),
]  # fmt: skip


@pytest.mark.parametrize(("x", "shared"), [("x", True), ("x + 0", False), ("CAST(x AS VARCHAR)", False)])
def test_a_slice_is_what_those_before_it_leave(x: str, shared: bool) -> None:
    """Conditions of stored columns that exclude each other leave all; of computed ones that is nothing to rely on."""
    end = "'3'" if "VARCHAR" in x else "3"
    few, many = f"COUNT(*) FILTER (WHERE {x} < {end})", f"COUNT(*) FILTER (WHERE {x} >= {end})"
    (both,) = addresses(f"SELECT {few}, {many} FROM u")
    (first,), (second,) = addresses(f"SELECT {few} FROM u"), addresses(f"SELECT {many} FROM u")
    assert first < both and (second < both if shared else second.isdisjoint(both))


@pytest.mark.parametrize(("one", "other"), SAME)
def test_spelling_names_and_order_do_not_matter(one: str, other: str) -> None:
    assert addresses(one) == addresses(other)


PARTS = [
    ("SELECT COUNT(*) FROM t", "SELECT COUNT(*), SUM(x), AVG(y), COUNT(DISTINCT word) FROM t"),
    ("SELECT COUNT(*) FROM t", "SELECT AVG(x) FROM t"),  # x is never NULL
    ("SELECT SUM(x) FROM t", "SELECT AVG(y), SUM(x) FROM t"),
    ("SELECT COUNT(y) FROM t", "SELECT AVG(y) FROM t"),
    ("SELECT AVG(y) FROM t", "SELECT COUNT(*), COUNT(y), AVG(y), AVG(x) FROM t"),
    ("SELECT COUNT(*) FROM t GROUP BY kind", "SELECT kind, AVG(x), COUNT(*) FROM t GROUP BY kind HAVING AVG(x) > 3"),
    ("SELECT word, COUNT(*) FROM t GROUP BY word", "SELECT word, SUM(x), COUNT(*) FROM t GROUP BY word"),
    ("SELECT DISTINCT word FROM t", "SELECT word, AVG(y) FROM t GROUP BY word"),
    ("SELECT COUNT(*) FROM t", "SELECT x.n FROM (SELECT COUNT(*) n FROM t) x, (SELECT COUNT(*) m FROM u) y"),
    ("SELECT AVG(x) FROM t", "SELECT COUNT(*) FROM t WHERE x > (SELECT AVG(x) FROM t)"),
]


@pytest.mark.parametrize(("part", "whole"), PARTS)
def test_what_else_is_asked_does_not_matter(part: str, whole: str) -> None:
    assert set().union(*addresses(part)) < set().union(*addresses(whole))


DIFFERENT = [
    "SELECT COUNT(*) FROM t",
    "SELECT COUNT(*) FROM u",
    "SELECT COUNT(y) FROM t",
    "SELECT COUNT(DISTINCT y) FROM t",
    "SELECT COUNT(DISTINCT id) FROM t",
    "SELECT COUNT(*) FILTER (WHERE x > 3) FROM t",
    "SELECT COUNT(*) FROM t WHERE x > 3",
    "SELECT COUNT(*) FROM t WHERE x > 4",
    "SELECT COUNT(*) FROM t WHERE x >= 4",
    "SELECT COUNT(*) FROM t WHERE x > 3.0",
    "SELECT COUNT(*) FROM t WHERE y > 3",
    "SELECT COUNT(*) FROM t WHERE word = '3'",
    "SELECT COUNT(*) FROM t WHERE word = 'column 3 VARCHAR'",
    "SELECT COUNT(*) FROM t AS a JOIN t AS b ON a.id = b.id WHERE a.kind = 'a' AND a.x > 3",
    "SELECT COUNT(*) FROM t AS a JOIN t AS b ON a.id = b.id WHERE a.kind = 'a' AND b.x > 3",
    "SELECT SUM(x) FROM t",
    "SELECT SUM(z) FROM t",
    "SELECT SUM(x) FROM u",
    "SELECT SUM(CLIP(x, 0, 9)) FROM t",
    "SELECT SUM(CLIP(x, 0, 8)) FROM t",
    "SELECT SUM(x + 1) FROM t",
    "SELECT SUM(y) FROM t",
    "SELECT COUNT(*) FROM t GROUP BY kind",
    "SELECT COUNT(*) FROM t WHERE kind IN ('a', 'b') GROUP BY kind",
    "SELECT COUNT(*) FROM t WHERE kind IN ('b', 'a') GROUP BY kind",
    "SELECT COUNT(*) FROM t GROUP BY word",
    "SELECT COUNT(*) FROM t GROUP BY day",
    "SELECT COUNT(*) FROM t GROUP BY date_trunc('month', day)",
    "SELECT COUNT(*) FROM t GROUP BY kind, x",
    "SELECT COUNT(*) FROM t GROUP BY x, kind",
    "SELECT COUNT(*) FROM t GROUP BY x",
    "SELECT COUNT(*) FROM (SELECT * FROM t UNION ALL SELECT * FROM t)",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = 3) COUNT(*) FROM t",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_groups_contributed = 1) COUNT(*) FROM t GROUP BY word",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (min_privacy_units_per_group = 30) COUNT(*) FROM t GROUP BY word",
]


def test_different_questions_have_different_addresses() -> None:
    found = {sql: set().union(*addresses(sql)) for sql in DIFFERENT}
    for one, other in combinations(DIFFERENT, 2):
        common = found[one] & found[other]
        assert not common, f"{one} and {other}"


def test_a_column_is_what_it_is_called_wherever_it_stands() -> None:
    """Two of one type and of equal bounds that change places in the policy, which is the same by its hash."""
    x, z = (f"    {name}: {{type: integer, bounds: [0, 10], nullable: false}}\n" for name in "xz")
    turned = policy(TABLES.replace(x + z, z + x))
    assert turned.hash == POLICY.hash
    for name, other in ("x", "z"), ("z", "x"):
        (own,), (others,) = addresses(f"SELECT SUM({name}) FROM t"), addresses(f"SELECT SUM({other}) FROM t")
        assert addresses(f"SELECT SUM({name}) FROM t", turned) == [own] and own.isdisjoint(others)


def test_a_plan_of_another_policy_has_no_address() -> None:
    with pytest.raises(AssertionError):
        Addresses(planned("SELECT COUNT(*) FROM t", POLICY), policy(TABLES.replace("[0, 1]", "[0, 2]")))


def test_the_sum_of_an_average_is_not_the_sum() -> None:
    """AVG's sum is centred, and weighted like its count."""
    plan = planned("SELECT SUM(x), AVG(x) FROM t", POLICY)
    sums = [c for c in plan.releases[0].measured.node.components if isinstance(c, ValueSum | ProductSum)]
    assert len(sums) == 2 and len(set().union(*_addresses(plan))) == 3


def test_parameters_are_constants() -> None:
    one = planned("SELECT COUNT(*) FROM t WHERE x > ?", POLICY, [3])
    assert _addresses(one) == addresses("SELECT COUNT(*) FROM t WHERE x > 3")
    assert _addresses(one) != _addresses(planned("SELECT COUNT(*) FROM t WHERE x > ?", POLICY, [4]))


def test_price_and_noise_take_no_part() -> None:
    cheap, dear = (planned("SELECT COUNT(*), AVG(y) FROM t", POLICY, epsilon=e) for e in ("0.01", "9"))
    assert _addresses(cheap) == _addresses(dear)


def test_rules_of_another_version_have_other_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    before = {sql: set().union(*addresses(sql)) for sql in DIFFERENT}
    monkeypatch.setattr(address, "RULES", address.RULES + 1)
    for sql, known in before.items():
        assert known.isdisjoint(*addresses(sql)), sql


@pytest.mark.parametrize(
    ("sql", "matters"),
    [
        ("SELECT COUNT(*) FROM t", False),
        ("SELECT COUNT(DISTINCT id) FROM t", False),
        ("SELECT kind, AVG(x) FROM t GROUP BY kind", False),
        ("SELECT COUNT(DISTINCT word) FROM t", True),
        ("SELECT kind, COUNT(DISTINCT word) FROM t GROUP BY kind", True),
        ("SELECT word, AVG(x) FROM t GROUP BY word", True),
        ("SELECT DISTINCT word FROM t", True),
        ("SELECT COUNT(DISTINCT word) FROM u", False),
        ("SELECT COUNT(*) FROM v AS a JOIN v AS b ON a.k = b.k", True),
    ],
)
def test_whose_order_it_is_counts_where_not_all_is_kept(sql: str, matters: bool) -> None:
    one, other = (set().union(*addresses(sql, order=order)) for order in ("duckdb 1.5.0", "duckdb 2.0.0"))
    assert one.isdisjoint(other) if matters else one == other


def test_the_order_counts_for_its_own_component_alone() -> None:
    sql = "SELECT COUNT(*), COUNT(DISTINCT word) FROM t"
    one, other = (set().union(*addresses(sql, order=order)) for order in ("duckdb 1.5.0", "duckdb 2.0.0"))
    assert len(one) == len(other) == 2 and len(one & other) == 1


def test_a_public_list_counts_as_it_is_not_as_it_is_written() -> None:
    """A range of numbers, a list of them and a filter that gives the same keys: one question only if the rows agree."""
    written = addresses("SELECT COUNT(*) FROM t WHERE kind IN ('a', 'b', 'c') GROUP BY kind")
    assert written != addresses("SELECT COUNT(*) FROM t GROUP BY kind")  # another filter
    other = policy(TABLES.replace("domain: [a, b, c]", "domain: {values: [a, b, c], null: false}"))
    assert other.hash == POLICY.hash or addresses("SELECT COUNT(*) FROM u GROUP BY kind", of=other)


NESTED = "SELECT COUNT(*) FROM t WHERE x > (SELECT AVG(x) FROM t)"


def test_a_release_that_reads_another_depends_on_its_rows() -> None:
    three, four = (addresses(NESTED, rows={0: [(v,)]})[1] for v in (3.0, 4.0))
    assert three.isdisjoint(four)
    assert addresses(NESTED, rows={0: [(3.0,)]})[1] == three
    assert addresses(NESTED, rows={0: [(3,)]})[1] != three
    assert addresses(NESTED, rows={0: [(5.0,)]})[0] == addresses("SELECT AVG(x) FROM t")[0]


def test_releases_that_gave_the_same_rows_lead_to_the_same_question() -> None:
    """The rows are public: which question they answered, and how noisily, no longer matters."""
    clamped = "SELECT COUNT(*) FROM t WHERE x > (SELECT AVG(x) FROM t WHERE kind = 'a')"
    assert addresses(NESTED, rows={0: [(3.0,)]})[1] == addresses(clamped, rows={0: [(3.0,)]})[1]
    assert addresses(NESTED)[1] != addresses(clamped)[1]


def test_names_to_wait_for_are_those_of_the_groups_not_of_the_numbers() -> None:
    def names(sql: str) -> set[str]:
        plan = planned(sql, POLICY)
        return {Addresses(plan, POLICY).of(at).name for at in range(len(plan.releases))}

    assert names("SELECT COUNT(*) FROM t") == names("SELECT AVG(y), SUM(x) FROM t")
    assert names("SELECT COUNT(*) FROM t").isdisjoint(names("SELECT COUNT(*) FROM t GROUP BY kind"))
    assert names("SELECT COUNT(*) FROM t").isdisjoint(names("SELECT COUNT(*) FROM t WHERE x > 3"))
    assert len(names(NESTED)) == 2 and names("SELECT COUNT(*) FROM t") < names(NESTED)


def test_column_numbers_do_not_matter() -> None:
    """A plan whose columns have other numbers asks the same."""
    from dpsql.core.ir.walk import renumbered

    plan = planned("SELECT kind, word, COUNT(*), AVG(y) FROM t WHERE x > 3 GROUP BY kind, word", POLICY)
    (release,) = plan.releases
    node, _ = renumbered(release.measured.node, lambda c: replace(c, uid=c.uid * 7 + 1000))
    moved = replace(release, measured=replace(release.measured, node=node))
    assert _addresses(plan) == _addresses(plan.with_releases([moved]))


LISTS: list[Sequence[Any]] = [
    (), range(1), range(2), range(-3, 9), (1,), (True,), (1.0,), ("1",), ("1,),(2",), ("1", "2"), ("1,), (2",),
    (False, True), DateRange(dt.date(2024, 2, 1), dt.date(2024, 3, 1)), ("a\x00'é", 'b"'),
]  # fmt: skip


def test_the_digest_of_a_lazy_list_is_that_of_the_same_keys_written_out() -> None:
    found = []
    for values in LISTS:
        for null in (False, True):
            lazy = LazyKeys(Domain(values, null))
            written = tuple(map(tuple, zip([*values, *([None] if null else [])])))
            assert tuple(lazy) == written == tuple(lazy[i] for i in range(len(lazy)))
            assert digest(lazy) == digest(written) == sha256(repr(written).encode()).hexdigest() == digest(lazy)
            found.append(digest(lazy))
    assert len(set(found)) == len(found)  # 1, 1.0 and true are equal in Python, and different keys
