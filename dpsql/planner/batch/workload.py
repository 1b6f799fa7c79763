"""What each number of a batch is a sum of: weights of 0 and 1 on the cells of the columns that its member reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from dpsql.core.ir.expressions import Call, Expr, LiteralValue, columns_of
from dpsql.core.values.meaning import Env
from dpsql.diagnostics.errors import reject
from dpsql.planner.batch.classes import Class, ValueClasses
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
class MemberTable:
    """The answer of a member, still without numbers. keys: of each row. numbers: for each of its calls one for each
    row, which says what rows count."""

    keys: tuple[tuple[LiteralValue, ...], ...]
    numbers: tuple[tuple[Number, ...], ...]


def table_of(member: Member, classes: Mapping[int, ValueClasses], env: Env, kept: dict[Expr, Number]) -> MemberTable:
    """Compute a member's conditions and keys on every cell. A row is where each part of WHERE lets a key be, as in the
    answer of the query alone, in the order of values.

    kept: conditions that were computed before, for other members.
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

    def widened(number: Number) -> NDArray[np.float64]:
        own = iter(number.weights.shape)
        return number.weights.reshape(tuple(next(own) if uid in number.columns else 1 for uid in columns))

    def terms(exprs: Iterable[Expr]) -> Iterator[NDArray[np.float64]]:
        for term in (part for expr in exprs for part in conjuncts(expr)):
            if term not in kept:
                kept[term] = _condition(term, classes, env)
            yield widened(kept[term])

    def holds(parts: Iterable[NDArray[np.float64]]) -> NDArray[np.float64]:
        weights = np.ones(shape)
        for part in parts:
            weights = weights * part
        return weights

    try:
        possible = list(terms(member.where))
        where = holds(possible)
        counts = [where if expr is None else where * holds(terms([expr])) for expr in member.filters]
        masks = _keys(member.keys, classes, env)
        shown = [
            key for key, (_, listed) in masks.items()
            if not member.keys or all((part * widened(listed)).any() for part in possible)
        ]  # fmt: skip
        rows = {key: [weights * widened(masks[key][0]) for weights in counts] for key in shown}
    except Unknown:
        raise reject("DP105", "only the database can compute this member", help=["run it by itself"]) from None
    return MemberTable(
        tuple(rows), tuple(tuple(Number(columns, w[i]) for w in rows.values()) for i in range(len(counts)))
    )


def conjuncts(expr: Expr) -> Iterator[Expr]:
    if isinstance(expr, Call) and expr.function == "and":
        for part in expr.args:
            yield from conjuncts(part)
    else:
        yield expr


def _cells(
    columns: tuple[int, ...], classes: Mapping[int, ValueClasses]
) -> Iterator[tuple[tuple[int, ...], list[Class]]]:
    """The cells of some columns on which members can be computed."""
    for place in product(*(enumerate(classes[uid].classes) for uid in columns)):
        found = [c for _, c in place]
        if all(c.known for c in found):
            yield tuple(i for i, _ in place), found


def _condition(term: Expr, classes: Mapping[int, ValueClasses], env: Env) -> Number:
    """1 where a condition is true, else 0."""
    import numpy as np

    columns = tuple(sorted(columns_of(term)))
    holds = computation(term, env)
    weights = np.zeros(tuple(classes[uid].size for uid in columns))
    for cell, found in _cells(columns, classes):
        weights[cell] = holds({uid: c.example for uid, c in zip(columns, found, strict=True)}) is True
    return Number(columns, weights)


def _keys(
    keys: Sequence[Expr], classes: Mapping[int, ValueClasses], env: Env
) -> dict[tuple[LiteralValue, ...], tuple[Number, Number]]:
    """The keys of listed values, and where rows have them: of any values, and of listed ones alone."""
    import numpy as np

    columns = tuple(sorted({uid for key in keys for uid in columns_of(key)}))
    shape, compute = tuple(classes[uid].size for uid in columns), [computation(key, env) for key in keys]
    masks: dict[tuple[LiteralValue, ...], tuple[Number, Number]] = {}
    cells = list(_cells(columns, classes))
    for cell, found in sorted(cells, key=lambda c: not all(k.listed for k in c[1])):  # those of listed values first
        row = {uid: c.example for uid, c in zip(columns, found, strict=True)}
        key, listed = tuple(c(row) for c in compute), all(c.listed for c in found)
        if key not in masks and listed:
            masks[key] = Number(columns, np.zeros(shape)), Number(columns, np.zeros(shape))
        if key in masks:
            masks[key][0].weights[cell] = 1
            masks[key][1].weights[cell] = listed
    return masks


Marginal = tuple[int, ...]
"""The columns of a marginal, sorted."""


def subsets(columns: Sequence[int]) -> list[Marginal]:
    """All of them, the empty one first."""
    found: list[Marginal] = [()]
    for uid in columns:
        found += [(*s, uid) for s in found]
    return sorted((tuple(sorted(s)) for s in found), key=lambda s: (len(s), s))
