"""Every MODE gets the public list of values that it is chosen from: those that its argument would have as a group key.

Rows with another value, and NULLs, count nowhere.

Example:
    >>> before_after(list_choices, "SELECT MODE(region) FROM patients")
    release MODE(region)  →  release MODE(region) of 'north', 'south'
    └─ scan patients         └─ scan patients
"""

from __future__ import annotations

from dataclasses import replace

from dpsql.core.analysis.derive import derive_once
from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.components import Component, KeySource, ModeChoice
from dpsql.core.ir.expressions import Column, Expr
from dpsql.core.ir.nodes import Item, Node, Release, keyed_by
from dpsql.core.ir.short_text import expression
from dpsql.core.ir.types import Kind
from dpsql.core.ir.walk import transform
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.planner.group_keys.key_search import TooLong
from dpsql.planner.group_keys.public import public_keys, source_of
from dpsql.planner.rewrites.bounds.choose_grids import MOST_VALUES, most_choices
from dpsql.planner.rewrites.keys.add_group_keys import KEY_KINDS, as_whole, origin_of_keys
from dpsql.planner.rewrites.rewrite_context import RewriteContext


def list_choices(root: Node, ctx: RewriteContext) -> Node:
    """Look for the values of every MODE. Raises Rejected DP304 where they are not known, or too many."""

    def change(node: Release) -> Node:
        if not any(isinstance(c, ModeChoice) for c in node.components):
            return node
        return replace(node, components=tuple(_with_choices(c, node, ctx) for c in node.components))

    return transform(root, Release, change)


def _with_choices(c: Component, node: Release, ctx: RewriteContext) -> Component:
    if not isinstance(c, ModeChoice):
        return c
    below, most = keyed_by(node).input, most_choices(node, MOST_VALUES)
    facts = derive_once(below, ctx.analysis).fact
    found = _listed(c.arg, facts, below, ctx)
    if len(found.keys) > most:
        raise _refused(
            c.arg, f"{len(found.keys):,} values are listed, of which MODE would choose one in each group; "
            f"at most {most:,} are possible here", [f"take a coarser value, or restrict {_name(c.arg)} in WHERE"],
        )  # fmt: skip
    return replace(c, choices=found)


def _listed(arg: Expr, facts: Facts, below: Node, ctx: RewriteContext) -> KeySource:
    """The list of what the argument can be, NULL left out."""
    type_ = facts.value(arg).type
    if type_.kind not in KEY_KINDS:
        advice = as_whole(arg, facts) if type_.kind is Kind.DOUBLE else "take it of a number, text, date or boolean"
        raise _refused(arg, f"MODE of {type_} is not supported: its values cannot be listed", [advice])
    try:
        parts = public_keys([arg], below, ctx)
    except TooLong as long:
        advice = f"take a coarser value, or restrict {_name(arg)} in WHERE"
        raise _refused(arg, f"{long.table} has more than {ctx.analysis.max_keys:,} values", [advice]) from None
    if parts is None:
        raise _refused(arg, f"no public list of the values of {_name(arg)} is known", _lists(arg))
    (part,) = parts
    keys = tuple(key for key in part.keys if key != (None,))
    domain = None if part.domain is None else replace(part.domain, null=False)
    source = source_of(replace(part, keys=keys, domain=domain), "")
    if not len(source.keys) and not part.unread:
        raise _refused(arg, f"no value of {_name(arg)} is possible here", ["leave out the conditions on it"])
    item = Item(Column(-1, expression(arg), type_), arg)
    return replace(source, origin=origin_of_keys([item], part, facts))


def _lists(arg: Expr) -> list[str]:
    """Where a list can come from."""
    name = _name(arg)
    within = f"{name} IN (…)"
    if arg.type.kind in (Kind.INTEGER, Kind.DATE):
        within = f"{name} BETWEEN … AND …"
    found = [f"restrict it in the query:  WHERE {within}"]
    if isinstance(arg, Column):
        found.append(f"or, custodian: declare  domain: […]  for {name}")
    return found


def _name(arg: Expr) -> str:
    return expression(arg)


def _refused(arg: Expr, message: str, help: list[str]) -> Rejected:
    return reject("DP304", message, span=arg.span, help=help)
