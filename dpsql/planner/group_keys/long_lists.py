"""Public lists that are longer than may be released: their keys are private instead, and stay within the lists.

A policy that says `private_keys: auto` lets partition selection take the place of such lists. Rows with other values
are dropped all the same, column by column: what a list forbids is not shown, however many units have it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dpsql.core.ir.components import KeySource
from dpsql.core.ir.nodes import GroupKeys
from dpsql.core.policy.policy import Policy
from dpsql.planner.group_keys.key_search import TooLong
from dpsql.planner.group_keys.public import public_keys, source_of
from dpsql.planner.rewrites.rewrite_context import RewriteContext


def long_lists_give_way(policy: Policy) -> bool:
    """Whether a list that is too long makes private keys; without a δ there are none."""
    return policy.defaults.private_keys == "auto" and policy.privacy.accountant != "pure_dp"


def within_lists(keyed: GroupKeys, ctx: RewriteContext) -> GroupKeys:
    """The node with private keys, each in its list."""
    return replace(keyed, sources=None, within=tuple(_lists(keyed, ctx)))


def _lists(keyed: GroupKeys, ctx: RewriteContext) -> Iterator[KeySource]:
    for at, item in enumerate(keyed.items):
        try:
            parts = public_keys([item.expr], keyed.input, ctx)
        except TooLong as long:  # a column of a public table that the rows are joined with: they have no other values
            yield KeySource((at,), (), long.table, covers=True)
            continue
        for part in parts or ():
            yield source_of(replace(part, positions=(at,), covers=part.covers or part.unread), item.column.name)
