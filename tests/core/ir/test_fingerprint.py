"""Equal queries have one identity, whatever their spelling; different ones have different identities."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import pytest

from dpsql.core.ir.fingerprint import fingerprint
from dpsql.core.ir.public_facts import FrequencyOf, PublicFacts
from dpsql.diagnostics.diagnostic import Source
from dpsql.planner.compile import compile_query
from dpsql.planner.plan import Plan
from dpsql.planner.settings.query_settings import QuerySettings
from tests.support.planning import UNITS, planned, policy

TABLES = """
t:
  unit: {column: id}
  max_rows_per_unit: 5
  columns:
    id: {type: bigint, nullable: false}
    kind: {type: varchar, domain: [a, b, c], nullable: false}
    day: {type: date, bounds: [2024-01-01, 2024-12-31], nullable: false}
    word: {type: varchar}
    x: {type: integer, bounds: [0, 10]}
"""
POLICY = policy(TABLES)
SAME = [
    [
        "SELECT kind, COUNT(*) AS n FROM t GROUP BY kind",
        "select T.Kind,\n\n  count( * ) n\nfrom t group by 1 -- by kind",
        "SELECT kind, COUNT(1) AS n FROM t AS u GROUP BY u.kind",
        "SELECT kind, COUNT(*) AS n FROM t GROUP BY ALL",
        'SELECT "kind", COUNT() AS n FROM "t" GROUP BY "kind"',
    ],
    [
        "SELECT SUM(CLIP(x, 0, 5)) AS s FROM t WHERE day >= DATE '2024-05-01'",
        "SELECT SUM(LEAST(GREATEST(x, 0), 5)) AS s FROM t WHERE day >= '2024-05-01'",
        "SELECT SUM(GREATEST(0, LEAST(5, (x)))) AS s FROM t WHERE (day >= CAST('2024-05-01' AS DATE))",
    ],
]
DIFFERENT = [
    "SELECT COUNT(*) AS n FROM t",
    "SELECT COUNT(*) AS m FROM t",
    "SELECT COUNT(x) AS n FROM t",
    "SELECT COUNT(DISTINCT x) AS n FROM t",
    "SELECT COUNT(*) AS n FROM t WHERE x > 3",
    "SELECT COUNT(*) AS n FROM t WHERE x > 4",
    "SELECT COUNT(*) AS n FROM t WHERE x >= 4",
    "SELECT COUNT(*) AS n FROM t WHERE word = 'span=Span(start=1, end=2)'",
    "SELECT COUNT(*) AS n FROM t WHERE word = 'span=None'",
    "SELECT COUNT(*) AS n FROM t WHERE word = '3'",
    "SELECT COUNT(*) + 1 AS n FROM t",
    "SELECT COUNT(*) AS n FROM t GROUP BY kind",
    "SELECT COUNT(*) AS n FROM t GROUP BY word",
    "SELECT COUNT(*) AS n FROM t GROUP BY kind ORDER BY n",
    "SELECT COUNT(*) AS n FROM t GROUP BY kind ORDER BY n DESC",
    "SELECT COUNT(*) AS n FROM t GROUP BY kind LIMIT 1",
    "SELECT COUNT(*) FILTER (WHERE x > 3) AS n FROM t",
    "SELECT SUM(x) AS n FROM t",
    "SELECT AVG(x) AS n FROM t",
    "SELECT day, COUNT(*) AS n FROM t GROUP BY day",
    "SELECT day, COUNT(*) AS n FROM t WHERE day < DATE '2024-06-01' GROUP BY day",
]


@pytest.mark.parametrize("spellings", SAME, ids=[texts[0] for texts in SAME])
def test_spelling_does_not_matter(spellings: list[str]) -> None:
    plans = [planned(sql, POLICY) for sql in spellings]
    assert len({plan.hash for plan in plans}) == 1
    assert len({str(plan.notes) for plan in plans}) == 1


def test_every_difference_matters() -> None:
    hashes = {sql: planned(sql, POLICY).hash for sql in DIFFERENT}
    assert [(a, b) for a, b in combinations(DIFFERENT, 2) if hashes[a] == hashes[b]] == []


def test_price_and_policy_are_part_of_it() -> None:
    plain = planned(DIFFERENT[0], POLICY)
    assert planned(DIFFERENT[0], POLICY).hash == plain.hash
    assert planned(DIFFERENT[0], POLICY, epsilon="2").hash != plain.hash
    assert (
        planned(DIFFERENT[0], policy(TABLES.replace("max_rows_per_unit: 5", "max_rows_per_unit: 6"))).hash != plain.hash
    )
    assert planned(DIFFERENT[0], policy(TABLES, UNITS + "data_version: '2'\n")).hash != plain.hash


def test_pieces_cannot_be_regrouped() -> None:
    assert (
        len({fingerprint(*v) for v in [("ab", "c"), ("a", "bc"), ("abc",), (("a", "b"), "c"), ("a", ("b", "c"))]}) == 5
    )
    assert fingerprint(1) != fingerprint("1") != fingerprint(True) and fingerprint((1,)) == fingerprint([1])


JOINED = policy(
    """
t:
  unit: {rows: 1}
  columns:
    kind: {type: integer, nullable: false}
p:
  public: true
  columns:
    kind: {type: integer, nullable: false}
"""
)


def test_measured_public_facts_that_decide_the_noise_are_part_of_it() -> None:
    """How many public rows a private row meets is written in no statement, and scales the noise."""

    def at(most: int) -> Plan:
        public = PublicFacts({FrequencyOf("p", ("kind",)): most}, {})
        settings = QuerySettings(Fraction(1), Fraction(1, 10**9))
        plan = compile_query(Source("SELECT COUNT(*) AS n FROM t JOIN p USING (kind)"), JOINED, public, settings)
        assert not public.missing
        return plan

    two, five = at(2), at(5)
    scales = [p.releases[0].measured.measurements[0].mechanism for p in (two, five)]
    assert scales[0] != scales[1] and two.hash != five.hash and two.hash == at(2).hash
