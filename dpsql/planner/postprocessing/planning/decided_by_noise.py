"""Which numbers of a release are made of rows, or of values, that another noisy number decides on.

*Claim.* A component that is not named here has the same rows and values whatever noise the other releases draw, as far
as its groups are shown. *Why.* Noise is in the outputs of releases, and in all that is computed of them; it decides on
rows where a condition reads these, where the first of several rows are taken, and where private keys are shown. A join
by columns that a release is grouped by leaves each of its groups whole, or takes all of it. *When it would be false.*
If a public group that noise has left out were shown, with a count of 0: `rewrites/keys/leave_out_unlisted.py` drops it
where there are joins and filters alone between. No privacy rests on this. *Tested by*
tests/planner/postprocessing/test_decided_by_noise.py
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.expressions import Column, Expr, columns_of
from dpsql.core.ir.nodes import (
    Aggregate,
    Filter,
    GroupKeys,
    Item,
    Join,
    JoinKind,
    Limit,
    Node,
    Project,
    Release,
    SetKind,
    SetOperation,
    Sort,
    Window,
    keyed_by,
    made_columns,
)
from dpsql.core.ir.walk import Tagged, arguments, expressions

Columns = frozenset[int]
_NONE: Final[Columns] = frozenset()


@dataclass(frozen=True, slots=True)
class _Noise:
    """Where there is noise in rows. of: columns with noise. chosen: it decided which rows there are.

    keys: columns that tell released rows apart; None: not known. there: whether a release is below at all.
    """

    of: Columns = _NONE
    chosen: bool = False
    keys: Columns | None = None
    there: bool = False

    def used(self, exprs: Sequence[Expr]) -> bool:
        return any(columns_of(e) & self.of for e in exprs)


def decided_by_noise(release: Tagged[Facts]) -> tuple[bool, ...]:
    """Of each component of a release."""
    node = release.node
    assert isinstance(node, Release)
    keyed, rows = keyed_by(node), release.inputs[0]
    while not isinstance(rows.node, GroupKeys):
        (rows,) = rows.inputs
    noise = _below(rows.inputs[0], _own(keyed.items), keyed.sources is None)
    chosen = noise.chosen or noise.used(expressions(keyed))
    return tuple(chosen or noise.used(c.expressions) for c in node.components)


def _below(tagged: Tagged[Facts], grouped: Columns, private: bool) -> _Noise:
    """grouped: columns of these rows by which the release is grouped. private: its keys."""
    node = tagged.node
    if isinstance(node, Release):
        keys = frozenset(k.uid for k in node.keys)
        return _Noise(frozenset(o.column.uid for o in node.outputs), node.threshold is not None, keys, True)
    found = [_below(t, _own_of(node, grouped, at, private), private) for at, t in enumerate(tagged.inputs)]
    if not any(each.there for each in found):
        return _Noise()
    if isinstance(node, Join):
        return _joined(node, found[0], found[1], grouped)
    noise = _Noise(_NONE.union(*(each.of for each in found)), any(each.chosen for each in found), found[0].keys, True)
    used = noise.used(expressions(node))
    match node:
        case Project(items=items):
            of = frozenset(i.column.uid for i in items if columns_of(i.expr) & noise.of)
            renamed = {i.expr.uid: i.column.uid for i in items if isinstance(i.expr, Column)}
            kept = noise.keys is not None and noise.keys <= renamed.keys()
            return replace(noise, of=of, keys=frozenset(renamed[k] for k in noise.keys or ()) if kept else None)
        case Filter():
            return replace(noise, chosen=noise.chosen or used)
        case Sort():
            return noise
        case Limit():
            return replace(noise, chosen=True)
        case SetOperation(kind=kind, all=keeps_all, columns=columns):
            of = frozenset(c.column.uid for c in columns if noise.used((c.left, c.right)))
            return _Noise(of, noise.chosen or (used and not (kind is SetKind.UNION and keeps_all)), None, True)
        case Window(calls=windows):
            made = frozenset(w.column.uid for w in windows) if used or noise.chosen else _NONE
            return replace(noise, of=noise.of | made)
        case Aggregate(keys=made_by, calls=calls):
            of = frozenset(
                c.column.uid
                for c in calls
                if noise.chosen or noise.used([*arguments(c), *([] if c.filter is None else [c.filter])])
            )
            chosen = bool(made_by) and (noise.chosen or noise.used([k.expr for k in made_by]))
            return _Noise(of, chosen, frozenset(k.column.uid for k in made_by), True)
    made = frozenset(c.uid for c in made_columns(node)) if used else _NONE
    return _Noise(noise.of | made, noise.chosen or used, None, True)


def _joined(node: Join, left: _Noise, right: _Noise, grouped: Columns) -> _Noise:
    both = _Noise(left.of | right.of, False, None, True)
    sides = [(left, [p.right for p in node.equalities], [p.left for p in node.equalities]),
             (right, [p.left for p in node.equalities], [p.right for p in node.equalities])]  # fmt: skip
    chosen = both.used(expressions(node)) or any(
        noise.chosen and not _takes_whole_groups(node, noise, theirs, own, grouped) for noise, theirs, own in sides
    )
    return replace(both, chosen=chosen)


def _takes_whole_groups(
    node: Join, noise: _Noise, theirs: Sequence[Expr], own: Sequence[Expr], grouped: Columns
) -> bool:
    """Whether rows whose choice had noise join, or leave out, all rows of a group. own: what they are joined by."""
    by = frozenset(e.uid for e in theirs if isinstance(e, Column))
    columns = bool(theirs) and all(isinstance(e, Column) for e in theirs)
    if not columns or not by <= grouped:
        return False
    if node.kind is JoinKind.INNER:
        return noise.keys is not None and noise.keys <= frozenset(e.uid for e in own if isinstance(e, Column))
    return node.kind is JoinKind.SEMI or (node.kind is JoinKind.ANTI and node.residual is None)


def _own_of(node: Node, grouped: Columns, at: int, private: bool) -> Columns:
    """The columns of an input of a node that the release is grouped by. at: which input."""
    match node:
        case Filter() | Join(kind=JoinKind.INNER | JoinKind.CROSS):
            return grouped
        case Join(kind=JoinKind.SEMI | JoinKind.ANTI | JoinKind.LEFT) if not at:
            return grouped
        case Project(items=items) if private:
            return _own([i for i in items if i.column.uid in grouped])
    return _NONE


def _own(items: Sequence[Item]) -> Columns:
    return frozenset(i.expr.uid for i in items if isinstance(i.expr, Column))
