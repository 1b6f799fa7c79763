"""Each statement of the fixtures, read back by DuckDB's own parser: local and bounded, or the rule it lacks is named.

The reader (tests/support/statement_reader.py) knows nothing of plans. Spoiled statements are refused, or it is said why
what was spoiled does no harm.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache

from dpsql.core.ir.nodes import Scan
from dpsql.core.ir.walk import walk
from dpsql.core.policy.units import IdUnit
from dpsql.core.release.planned import PlannedRelease
from dpsql.policy.policy import Policy
from tests.fixtures.cases import files, outcome_of, policy
from tests.support.statement_reader import LacksError, Reader, RefusedError, Source, Tree, nodes, tree_of

LACKING = {
    "row units: how often keys of a join repeat": "it is promised or measured, and stands in no statement",
    "row units: groups that stay private": "2k: a rule of how far groups move",
    "row units: set operations": "a rule that adds up what two branches move",
    "a statement that DuckDB does not serialize": "it reads rows that an earlier release gave",
    "several rows of an id": "weights by all groups of an id, kept groups, or a promise of how many rows it has",
    "no ends of what is added": "a weight that divides what n rows add up to by n: two columns bound each other",
    "different values": "values that are numbered, or cut to V, or a promise",
    "SUM DISTINCT": "the same",
    "slices": "that a row counts in one slice of a set alone, so that the set costs its dearest member",
}
"""Rules that the reader lacks, and what makes the price true there."""


def sources(release: PlannedRelease, of: Policy) -> dict[str, Source]:
    """The tables that a release reads, as the policy says."""
    found = {}
    for scan in (node for node in walk(release.measured.node) if isinstance(node, Scan)):
        table = of.table(scan.table)
        assert table is not None
        columns, owner = tuple(c.name for c in scan.columns), table.protection
        private = owner is not None and not isinstance(owner, IdUnit)
        found[scan.table] = Source(columns, owner.column if isinstance(owner, IdUnit) else None, private)
    return found


@cache
def statements() -> dict[str, Mapping[str, Source]]:
    """Every statement of the fixtures' plans for DuckDB, with its tables."""
    found: dict[str, Mapping[str, Source]] = {}
    for file in files():
        for case in file.cases:
            plan = outcome_of(case) if case.settings.get("dialect", "duckdb") == "duckdb" else ()
            if not isinstance(plan, tuple):
                for release in plan.releases:
                    tables = sources(release, policy(case.settings["policy"]))
                    found |= {statement.salted(7): tables for statement in release.statements}
    return found


def verdict(tree: Tree, tables: Mapping[str, Source]) -> list[str]:
    """What the reader lacks for a statement. Raises RefusedError."""
    try:
        return sorted(set(Reader(tables).released(tree)))
    except LacksError as lacking:
        return [str(lacking)]


def test_each_statement_is_local_and_bounded_or_the_rule_that_is_missing_has_a_name() -> None:
    told: Counter[str] = Counter()
    for sql, tables in statements().items():
        try:
            lacking = verdict(tree_of(sql), tables)
        except LacksError as why:
            lacking = [str(why)]
        except RefusedError as why:
            raise AssertionError(f"{why}\n{sql}") from None
        told.update(lacking or ["bounded"])
    assert set(told) <= {"bounded", *LACKING}, told
    assert set(LACKING) <= set(told), "a rule that nothing lacks any more"
    assert told["bounded"] > 0.5 * len(statements())


# --- spoiled ---------------------------------------------------------------------------------------------------------

HARMLESS = {
    "the condition of a join is left out": "with a public table: rows stay one id's, and are weighed "
    "after the join; or it decides about rows of its own alone",
    "the first key of a GROUP BY is left out": "the id is still among the keys, and rows below are one id's",
    "a filter of SUM is left out": "it is the analyst's, or what is added has ends without it",
    "a division is left out": "it is the analyst's: what is added is cut outside of it",
    "a CASE is its first value": "it is no clip: a key, or a value that is cut outside of it",
}
"""Spoiled statements that are accepted, by what was done to them, and why they tell no more than is paid for."""

UNREAD = {"a division is left out"}
"""Spoiled weights are in statements of which the reader says that it lacks their rule: that of weights."""

OF_ROWS = {
    "the condition of a join is left out", "a filter reads other rows", "the first key of a GROUP BY is left out",
    "a window has no partition", "a LEFT join keeps both sides",
}  # fmt: skip
"""What is done to whose rows meet; all else to ends, which are looked at where the reader finds all of them."""


def spoiled(tree: Tree) -> Iterator[tuple[str, Tree]]:
    """The statement with one thing less, for each thing that it has."""
    for number, node in enumerate(nodes(tree)):
        for name, change in CHANGES.items():
            if (found := change(node)) is not None:
                other = copy.deepcopy(tree)
                target = next(each for place, each in enumerate(nodes(other)) if place == number)
                target.clear()
                target.update(found)
                yield name, other


def _constant() -> Tree:
    return {"class": "CONSTANT", "type": "VALUE_CONSTANT", "alias": "", "literal": {"kind": "BOOLEAN", "text": "true"}}


def _no_condition(node: Tree) -> Tree | None:
    if node.get("type") != "JOIN" or not (node["condition"] or node["using_columns"]):
        return None
    return {**node, "condition": _constant(), "using_columns": []}


def _subquery(node: Tree) -> Tree | None:
    if node.get("type") != "SELECT_NODE" or node["from_table"]["type"] == "EMPTY":
        return None
    inner = {"class": "SUBQUERY", "type": "SUBQUERY", "alias": "", "subquery": {"node": copy.deepcopy(node)}}
    both = [term for term in (node["where_clause"], inner) if term is not None]
    return {**node, "where_clause": {"class": "CONJUNCTION", "type": "CONJUNCTION_AND", "alias": "", "children": both}}


def _fewer_groups(node: Tree) -> Tree | None:
    if node.get("type") != "SELECT_NODE" or len(node["group_expressions"]) < 2:
        return None
    return {**node, "group_expressions": node["group_expressions"][1:]}


def _unfiltered(node: Tree) -> Tree | None:
    return {**node, "filter": None} if node.get("class") == "FUNCTION" and node["filter"] is not None else None


def _undivided(node: Tree) -> Tree | None:
    if node.get("class") != "FUNCTION" or node["function_name"] != "//":
        return None
    return {**node["arguments"][0]["expression"], "alias": node["alias"]}


def _unclipped(node: Tree) -> Tree | None:
    if node.get("class") != "CASE":
        return None
    values = [check["then_expr"] for check in node["case_checks"]] + [node["else_expr"]]
    chosen = next((value for value in values if value["class"] not in ("CONSTANT",)), None)
    return None if chosen is None else {**chosen, "alias": node["alias"]}


def _no_partition(node: Tree) -> Tree | None:
    return {**node, "partitions": []} if node.get("class") == "WINDOW" and node["partitions"] else None


def _all_kept(node: Tree) -> Tree | None:
    return {**node, "join_type": "FULL"} if node.get("type") == "JOIN" and node["join_type"] == "LEFT" else None


CHANGES = {
    "the condition of a join is left out": _no_condition,
    "a filter reads other rows": _subquery,
    "the first key of a GROUP BY is left out": _fewer_groups,
    "a filter of SUM is left out": _unfiltered,
    "a division is left out": _undivided,
    "a CASE is its first value": _unclipped,
    "a window has no partition": _no_partition,
    "a LEFT join keeps both sides": _all_kept,
}


def test_spoiled_statements_are_refused_or_do_no_harm() -> None:
    refused: Counter[str] = Counter()
    accepted: Counter[str] = Counter()
    for sql, tables in statements().items():
        try:
            tree = tree_of(sql)
            lacking = verdict(tree, tables)
        except LacksError:
            continue
        if set(lacking) & {name for name in LACKING if name.startswith("row units")}:
            continue  # of these the reader says nothing
        for name, other in spoiled(tree):
            if lacking and name not in OF_ROWS:
                continue
            try:
                now = verdict(other, tables)
            except RefusedError:
                refused[name] += 1
                continue
            (accepted if now == lacking else refused)[name] += 1
    assert set(accepted) <= set(HARMLESS), (accepted, refused)
    assert set(CHANGES) - set(refused) == UNREAD, refused
    assert refused.total() > accepted.total(), (accepted, refused)
