"""Public lists that are longer than may be released: refused, or shown from a threshold on where the policy says so."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest

from dpsql.core.ir.components import KeySource
from dpsql.core.ir.nodes import key_sources, keyed_by
from dpsql.core.ir.public_facts import PublicFacts
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import CannotOpen, Rejected
from dpsql.planner.compile import compile_query
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.policy.policy import Policy
from tests.support.key_plans import TABLES, keys, plan, policy

AUTO = policy(max_keys=100, private_keys="auto")
LONG = {**TABLES, "supplier": (TABLES["supplier"][0], tuple((i, i % 7, f"p{i}") for i in range(1_500)))}


def lists(sql: str, rules: Policy = AUTO) -> tuple[KeySource, ...]:
    """The lists that the private keys of the only release are in."""
    (release,) = plan(sql, rules, LONG).releases
    assert release.measured.threshold is not None and key_sources(release.measured.node) is None
    return keyed_by(release.measured.node).within


def conditions(sql: str, rules: Policy = AUTO) -> str:
    """What rows and groups of the statement are asked."""
    (release,) = plan(sql, rules, LONG).releases
    (statement,) = release.statements
    return "\n".join(re.findall(r"(?:WHERE|HAVING) (.*)", statement.sql))


@pytest.mark.parametrize(
    ("key", "condition"),
    [
        ("wide", 't1."wide" BETWEEN 0 AND CAST(1000000000000 AS BIGINT)'),
        ("day", "t1.\"day\" BETWEEN DATE '2024-01-01' AND DATE '2024-12-31'"),
        ("at", "t1.\"at\" BETWEEN TIMESTAMP '2024-01-01 00:00:00' AND TIMESTAMP '2024-12-31 00:00:00'"),
        ("day, region", "IN ('n', 's', 'e')"),
        ("maybe, wide", "IN ('x', 'y') OR t1.\"maybe\" IS NULL"),
        ("age, at", 't1."age" BETWEEN 0 AND 9'),
        ("date_trunc('hour', at)", "AND TIMESTAMP '2024-12-31 00:00:00'"),
    ],
)
def test_rows_outside_of_the_lists_are_dropped(key: str, condition: str) -> None:
    sql = f"SELECT {key}, COUNT(*) AS n FROM visits GROUP BY ALL"
    with pytest.raises(Rejected) as refusal:
        plan(sql, policy(max_keys=100))
    (found,) = refusal.value.diagnostics
    assert found.code == "DP302" and "defaults: {private_keys: auto}" in found.help[-1]
    assert len(lists(sql)) == len(key.split(", ")) - ("trunc" in key)
    assert condition in conditions(sql)
    (note,) = [n for n in plan(sql, AUTO).notes if n.startswith("more groups")]
    assert note.endswith("rows with other values are left out")


def test_a_list_that_is_short_enough_is_shown() -> None:
    for sql in ("SELECT region, COUNT(*) FROM visits GROUP BY region", "SELECT COUNT(*) FROM visits"):
        assert keys(sql, AUTO) == keys(sql)
    assert keys("SELECT num, COUNT(*) FROM visits GROUP BY num", AUTO) is None
    assert lists("SELECT num, COUNT(*) FROM visits GROUP BY num") == ()


def test_each_set_of_groups_by_itself() -> None:
    """What fits is shown whole; the sets that would be too many together are not."""
    sql = "SELECT region, day, COUNT(*) AS n FROM visits GROUP BY ROLLUP (region, day)"
    shown = [key_sources(r.measured.node) for r in plan(sql, AUTO).releases]
    assert [None if s is None else [len(one.keys) for one in s] for s in shown] == [None, [3], []]


def test_rows_of_a_public_table_have_its_keys() -> None:
    sql = "SELECT s_phone, COUNT(*) AS n FROM visits JOIN supplier ON suppkey = s_suppkey GROUP BY s_phone"
    (found,) = lists(sql)
    assert found.covers and conditions(sql) == ""
    both = sql.replace("SELECT", "SELECT region,").replace("BY", "BY region,")
    assert [s.covers for s in lists(both)] == [False, True] and "IN ('n', 's', 'e')" in conditions(both)


def test_a_threshold_needs_a_delta() -> None:
    sql = "SELECT wide, COUNT(*) AS n FROM visits GROUP BY wide"
    with pytest.raises(Rejected) as refusal:
        compile_query(Source(sql), AUTO, PublicFacts(), QuerySettings(Fraction(1)))
    (found,) = refusal.value.diagnostics
    assert found.code == "DP402" and found.label == "the policy says  private_keys: auto"
    with pytest.raises(CannotOpen, match="private_keys must be unlisted under pure_dp"):
        policy(accountant="pure_dp", private_keys="auto")
    with pytest.raises(Rejected) as refusal:
        plan(sql, policy(accountant="pure_dp"))
    assert refusal.value.diagnostics[0].help[-1] == "custodian: defaults.max_keys"
    assert lists(sql, policy(accountant="zcdp", private_keys="auto"))


def test_groups_of_one_unit_each_are_refused_all_the_same() -> None:
    document = dict(policy(private_keys="auto").document)
    document["tables"] = {**document["tables"], "visits": {**document["tables"]["visits"], "unique": [["wide"]]}}
    document["tables"]["visits"]["columns"]["wide"]["nullable"] = False
    with pytest.raises(Rejected, match="each group of wide belongs to one row"):
        plan("SELECT wide, COUNT(*) AS n FROM visits GROUP BY wide", Policy.model_validate(document))


def test_what_the_policy_says_by_default() -> None:
    assert policy().defaults.private_keys == "unlisted" == policy(private_keys="unlisted").defaults.private_keys
    assert "private_keys" not in policy().document["defaults"], "policies that say nothing keep their hash"
