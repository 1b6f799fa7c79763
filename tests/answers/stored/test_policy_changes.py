"""Which addresses a change of the policy moves: one case for each part of a policy, without data."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache

import pytest

from dpsql.answers.stored.address import Addresses
from dpsql.answers.stored.rests_on import of_table
from dpsql.core.ir.public_facts import PublicFacts
from dpsql.core.policy.policy import Policy
from dpsql.core.policy.prepared import as_prepared
from dpsql.diagnostics.diagnostic import Source
from dpsql.planner.compile import compile_query
from dpsql.planner.computed import understood
from dpsql.planner.plan import Plan
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.policy.load import parse_policy
from tests.support.planning import planned
from tests.support.policy_changes import CHANGES, EVERY, POLICY, QUESTIONS, ROWS, changed

STATIC = EVERY - {"city"}
"""The keys of the others are written in the policy."""


COPIED = QUESTIONS["count"], QUESTIONS["riders"], QUESTIONS["repairs"]
SETTINGS = QuerySettings(Fraction(1), Fraction(1, 10**6))


@cache
def addresses(text: str) -> dict[str, frozenset[str]]:
    """Question → the addresses of its numbers."""
    policy = understood(parse_policy(text, "bikes.yaml"))
    return {name: addresses_of(planned(QUESTIONS[name], policy), policy) for name in STATIC}


def addresses_of(plan: Plan, policy: Policy) -> frozenset[str]:
    """Those of the numbers of a plan of one release, and of its private keys."""
    base, node = Addresses(plan, policy).of(0), plan.releases[0].measured.node
    found = frozenset(base.address(c) for c in node.components)
    return found if node.threshold is None else found | {base.address_of_keys()}


@pytest.mark.parametrize("change", [name for name, (words, _) in CHANGES.items() if not ROWS.keys() & words.keys()])
def test_a_change_moves_what_rests_on_it_and_nothing_else(change: str) -> None:
    words, lost = CHANGES[change]
    before, after = addresses(POLICY), addresses(changed(words))
    same = {name for name in STATIC if before[name] == after[name]}
    assert STATIC - same == lost - {"city"}
    for name in STATIC - same - {"note"}:
        assert not before[name] & after[name], name


@pytest.mark.parametrize(
    "words",
    [{"name: bikes\n": "name: rides\n"}, {"approx_dp": "zcdp", "{epsilon: 1000": "{rho: 1000"}],
    ids=["name", "accountant"],
)
def test_another_name_or_accountant_is_another_ledger_and_other_data(words: dict[str, str]) -> None:
    before, after = addresses(POLICY), addresses(changed(words))
    assert all(before[name].isdisjoint(after[name]) for name in STATIC)


def test_each_copy_is_data_of_its_own_and_what_is_not_copied_is_not() -> None:
    kept = {"    max_rows_per_unit: 1\n": "    max_rows_per_unit: 1\n    prepared: auto\n"}
    kept["    max_rows_per_unit: 5\n"] = "    max_rows_per_unit: 5\n    prepared: auto\n"
    policy = understood(parse_policy(changed(kept), "bikes.yaml"))
    found = []
    for of in (policy, as_prepared(policy, "one"), as_prepared(policy, "other")):
        asked = {sql: compile_query(Source(sql), of, PublicFacts(), SETTINGS) for sql in COPIED}
        found.append({sql: addresses_of(plan, of) for sql, plan in asked.items()})
    plain, one, other = found
    for sql in COPIED:
        together = plain[sql], one[sql], other[sql]
        assert len(set(together)) == (1 if "repairs" in sql else 3), sql
    assert plain[COPIED[0]] == addresses(POLICY)["count"]  # that a copy may be made changes nothing
    wider = replace(as_prepared(policy, "one"), hash="wider")
    units = as_prepared(policy, "one", units={"trips": ["fee"]})
    for of in wider, units:
        assert addresses_of(compile_query(Source(COPIED[0]), of, PublicFacts(), SETTINGS), of) == one[COPIED[0]]


def test_a_computed_column_is_lost_with_the_type_of_what_it_is_computed_of() -> None:
    before, after = addresses(POLICY), addresses(changed({"minutes: {type: integer": "minutes: {type: bigint"}))
    assert {name for name in STATIC if before[name] != after[name]} == {"minutes", "long"}


def test_a_table_is_hashed_with_those_on_the_way_to_its_ids() -> None:
    """They are scanned, too, wherever rows have an owner; this does not rest on it."""
    words = {"read_parquet('riders.parquet')": "read_parquet('riders2.parquet')"}
    before, after = (parse_policy(text, "bikes.yaml") for text in (POLICY, changed(words)))
    moved = {name for name in before.tables if of_table(before, name) != of_table(after, name)}
    assert moved == {"riders", "trips"}
