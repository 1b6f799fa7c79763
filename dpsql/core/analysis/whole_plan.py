"""What a finished plan must be before anything is measured: refusals of whole plans, not of single operators."""

from __future__ import annotations

from collections.abc import Sequence

from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.nodes import Aggregate, Join, Release, Scan
from dpsql.core.ir.short_text import qualified
from dpsql.core.ir.walk import Tagged
from dpsql.diagnostics.errors import reject


def require_public(tree: Tagged[Facts]) -> None:
    """The answer must not contain private rows. Raises Rejected DP110."""
    if tree.fact.public:
        return
    private = next(t.node for t in tree.walk() if isinstance(t.node, Scan) and not t.fact.public)
    assert isinstance(private, Scan)
    raise reject(
        "DP110", f"this query would return rows of {private.table}", span=private.span, label="a private table",
        help=[
            "aggregate it:  SELECT COUNT(*) …,  SELECT AVG(x) … GROUP BY …",
            f"what columns it has, for nothing:  DESCRIBE {qualified(private.table)}",
        ],
    )  # fmt: skip


def require_releases(tree: Tagged[Facts]) -> None:
    """Bounds and intervals of single aggregates belong to releases: elsewhere they would be passed over in silence.

    Raises Rejected DP014.
    """
    for tagged in tree.walk():
        for call in tagged.node.calls if isinstance(tagged.node, Aggregate) else ():
            if call.per_group is not None or call.end:
                what = "bounds per group" if call.per_group is not None else "an interval"
                why = "reads public rows" if tagged.inputs[0].fact.public else "is part of another aggregate"
                raise reject(
                    "DP014", f"{what} for an aggregate that {why}", span=call.span, help=["leave it out here"]
                )  # fmt: skip


def require_public_correlation(tree: Tagged[Facts]) -> None:
    """A correlated subquery that is released needs public groups: rows of hidden ones would vanish in silence.

    Raises Rejected DP111.
    """
    for tagged in tree.walk():
        join = tagged.node
        if not isinstance(join, Join) or not join.scalar or not join.equalities:
            continue
        for release in (t.node for t in tagged.inputs[1].walk()):
            if isinstance(release, Release) and release.threshold is not None:
                names = ", ".join(k.name for k in release.keys)
                raise reject(
                    "DP111", f"the subquery is computed for each {names}, whose values are private", span=release.span,
                    label="no public list of these values is known",
                    help=[
                        f"custodian: declare a  domain  for {names}",
                        f"or correlate it with a public table's {names}",
                    ],
                )  # fmt: skip


def require_one_relation(releases: Sequence[Tagged[Facts]]) -> None:
    """All units of one query have one neighbouring relation: the query makes one promise, not several.

    Raises Rejected DP230.
    """
    for tagged in releases:
        if tagged.inputs[0].fact.replaced != releases[0].inputs[0].fact.replaced:
            assert isinstance(tagged.node, Release)
            raise reject(
                "DP230", "the tables of this query change in different ways between neighbouring databases",
                span=tagged.node.span, label="here rows are replaced, elsewhere added or removed, or the reverse",
                help=[
                    "ask for each of the two numbers in a query of its own",
                    "custodian: give all units that are queried together the same `neighbours`",
                ],
            )  # fmt: skip
