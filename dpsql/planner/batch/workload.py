"""What each number of a batch is a sum of: weights of 0 and 1 on the cells of the columns that its member reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from dpsql.core.analysis.expression_values import Env
from dpsql.core.ir.expressions import LiteralValue, columns_of
from dpsql.diagnostics.errors import reject
from dpsql.planner.batch.classes import Classes
from dpsql.planner.batch.members import Member
from dpsql.planner.group_keys.compute import Unknown, computation

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_CELLS = 1_000_000
MOST_COLUMNS = 8


@dataclass(frozen=True, slots=True)
class Number:
    """One number of an answer: a sum over cells. columns: their numbers, sorted. weights: an axis for each of them."""

    columns: tuple[int, ...]
    weights: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Table:
    """The answer of a member, still without numbers. keys: of each row. numbers: for each count one for each row."""

    keys: tuple[tuple[LiteralValue, ...], ...]
    numbers: tuple[tuple[Number, ...], ...]


def table_of(member: Member, classes: Mapping[int, Classes], env: Env) -> Table:
    """Compute a member's conditions and keys on every cell. A row is where a key is possible, in the order of values.

    Raises Rejected DP302: there are too many cells; DP105: only the engine could tell.
    """
    import numpy as np

    columns = tuple(sorted({uid for e in member.expressions for uid in columns_of(e)}))
    shape = tuple(classes[uid].size for uid in columns)
    if len(columns) > MOST_COLUMNS or np.prod(shape, dtype=float) > MOST_CELLS:
        raise reject(
            "DP302", f"this member reads {len(columns)} columns with {np.prod(shape, dtype=float):,.0f} cells",
            help=[f"at most {MOST_COLUMNS} columns and {MOST_CELLS:,} cells go into a batch; run it by itself"],
        )  # fmt: skip
    try:
        keys = [computation(e, env) for e in member.keys]
        counts = [[computation(t, env) for t in count.terms] for count in member.counts]
        rows: dict[tuple[LiteralValue, ...], list[NDArray[np.float64]]] = {}
        for cell in product(*(range(len(classes[uid].values)) for uid in columns)):
            row = {uid: classes[uid].values[i][0] for uid, i in zip(columns, cell, strict=True)}
            holds = [all(t(row) is True for t in terms) for terms in counts]
            if not any(holds):
                continue
            key = tuple(k(row) for k in keys)
            if key not in rows:
                rows[key] = [np.zeros(shape) for _ in counts]
            for weights, counted in zip(rows[key], holds, strict=True):
                weights[cell] = counted
    except Unknown:
        raise reject("DP105", "only the database can compute this member", help=["run it by itself"]) from None
    if not keys and not rows:
        rows[()] = [np.zeros(shape) for _ in counts]
    return Table(tuple(rows), tuple(tuple(Number(columns, w[i]) for w in rows.values()) for i in range(len(counts))))


Marginal = tuple[int, ...]
"""The columns of a marginal, sorted."""


def subsets(columns: Sequence[int]) -> list[Marginal]:
    """All of them, the empty one first."""
    found: list[Marginal] = [()]
    for uid in columns:
        found += [(*s, uid) for s in found]
    return sorted((tuple(sorted(s)) for s in found), key=lambda s: (len(s), s))
