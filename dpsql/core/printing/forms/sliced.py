"""Slices (F3): a row counts in the first of some conditions that it satisfies, and nowhere else of their set.

*Claim.* Of the components in different slices of a set a row of the local block changes one at most, whatever the
conditions are and mean. *Why.* `s = CASE WHEN c1 THEN 0 WHEN c2 THEN 1 … END`, of conditions or of columns that hold
them, is one number, or NULL, for each row.
Where rows count as they are, rows are grouped by (keys, s): a row is in one group, and an outer GROUP BY adds up the
groups of a slice, whose number is a column of groups by then. So it is for several sets, of which a group has several
numbers. Under limits s is a column of a subquery that the engine does not merge with what reads it, each slice counts
by `FILTER (WHERE s = i)`, and the number of rows of an (id, group) is no less than those of all slices of a set
together: a row in two slices would weigh two rows; and no component adds more than the rows of its slice can. So the
price holds there even of an engine that merges them. An (id, group) with rows in several slices counts among the ids of
the first. *When it would be false.* A condition that is read beside the
number; a number that is computed in two places; a total that is not the sum of those of its groups, over several sets
or of no slice (different values, ids: these have statements of their own).
*Proved by* Rules.slices_stable, Bounds.parallel_laplace, Bounds.parallel_gauss.
*Tested by*
tests/deep/core/printing/test_sliced.py, tests/deep/core/noise/test_parallel_composition.py.

The SQL of every engine, where rows count as they are, and under limits (p, from which weights go on as ever):

    SELECT k0, COALESCE(SUM(a0) FILTER (WHERE s0 = 0), 0) AS m0, COALESCE(SUM(a0) FILTER (WHERE s0 = 1), 0) AS m1
    FROM (SELECT city AS k0, CASE WHEN age < 30 THEN 0 WHEN age < 60 THEN 1 END AS s0, COUNT(*) AS a0 FROM people
    GROUP BY 1, 2) AS g GROUP BY 1

    SELECT u, k0, m0, m1, LEAST(GREATEST(m2, -(B * m1)), B * m1) AS m2, GREATEST(n, m0 + m1) AS n
    FROM (SELECT x.c1 AS u, x.c2 AS k0, COUNT(*) AS n, COUNT(*) FILTER (WHERE x.s0 = 0) AS m0, … FROM (SELECT …) AS x
    GROUP BY 1, 2) AS b
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from dpsql.core.ir.components import Comoment, Component, ProductSum, RowCount, UnitCount, ValueSum
from dpsql.core.ir.expressions import Call, walk
from dpsql.core.ir.nodes import Release
from dpsql.core.ir.slice_sets import SliceSet
from dpsql.core.measures.all_measures import rule
from dpsql.core.measures.quantile import histograms, of_any_slice
from dpsql.core.printing.dialect import Dialect
from dpsql.core.printing.expressions import Block, Names, spell
from dpsql.core.printing.waist import Level, Listed, text, waist
from dpsql.core.value_classes import replace

LONG = 8
"""Values of a list from which on it is a column of its own."""
MOST_CELLS = 1024
"""Groups of one key, by the slices of several sets, up to which one statement has these sets."""

Sets = tuple[SliceSet, ...]


def number(each: SliceSet, components: Sequence[Component], names: Names) -> str:
    """The slice of a row: the first whose condition is TRUE, or NULL."""
    arms = (f"WHEN {text(c, names)[0]} THEN {i}" for i, c in enumerate(each.conditions(components)))
    return f"CASE {' '.join(arms)} END"


def divided(node: Release, plain: Sequence[int]) -> list[tuple[Sets, tuple[int, ...]]]:
    """The components of a release whose rows count as they are, by statements, each with its slice sets."""
    once = (RowCount, ValueSum, ProductSum)
    adds = {i for i in plain if isinstance(c := node.components[i], once) and not isinstance(c, Comoment)}
    found: list[tuple[Sets, tuple[int, ...]]] = []
    left = list(plain)
    for each in node.slices:
        others = [i for i in left if i in each.members and i not in adds]
        own = [i for i in left if i in each.members and i in adds]
        cells = prod(len(s.slices) + 1 for s in (*(found[-1][0] if found else ()), each))
        if own and found and not others and cells <= MOST_CELLS and adds.issuperset(found[-1][1]):
            found[-1] = (*found[-1][0], each), (*found[-1][1], *own)
        elif own or others:
            found.append(((each,), (*own, *others)))
        left = [i for i in left if i not in each.members]
    if found and (rest := tuple(i for i in left if i in adds)):
        found[0] = found[0][0], (*found[0][1], *rest)
        left = [i for i in left if i not in adds]
    return [*found, ((), tuple(left))] if left else found


def choices(node: Release) -> list[tuple[Sets, tuple[int, ...]]]:
    """What is chosen by one histogram each: those of slices of a set by one with its numbers."""
    found: list[tuple[Sets, tuple[int, ...]]] = []
    placed = set[int]()
    for each in node.slices:
        alike: dict[Component | None, list[int]] = {}
        for i in each.members:
            if rule(node.components[i]).chosen:
                alike.setdefault(of_any_slice(node.components[i]), []).append(i)
                placed.add(i)
        found += [((each,), tuple(own)) for own in alike.values()]
    return [*found, *(((), at) for at in histograms(node.components) if placed.isdisjoint(at))]


def unfiltered(components: Sequence[Component], sets: Sets) -> list[Component]:
    """Without the conditions of these sets, which their numbers stand for."""
    members = {i for each in sets for i in each.members}
    return [replace(c, filter=None) if i in members else c for i, c in enumerate(components)]


def places(sets: Sets) -> dict[int, tuple[int, int]]:
    """Component → the set that it is in, and its slice."""
    return {i: (at, number) for at, each in enumerate(sets) for i, number in each.members.items()}


def _number(each: SliceSet, components: Sequence[Component], names: Names) -> str:
    """A slice's number as a column.

    Within a CASE DuckDB compares a list value by value, 20 times the whole query, of 300 texts: long lists are columns.
    """
    if names.apart is None:
        return number(each, components, names)
    below, parts = names.apart.below, names.apart.parts
    if parts is not None:
        for e in (e for c in each.conditions(components) for e in walk(c)):
            if isinstance(e, Call) and e.function == "in" and len(e.args) > LONG:
                parts.keep(spell(e, below)[0])
    return names.apart.column(Level.TEXTS, number(each, components, below))


def with_numbers(listed: Listed, sets: Sets, components: Sequence[Component]) -> Listed:
    """What lists columns of rows, with the slice of each row in the set at place i as column -i - 1."""

    def numbered(names: Names) -> list[str]:
        numbers = {-at - 1: _number(each, components, names) for at, each in enumerate(sets)}
        if names.apart is None:
            return listed(Names({**names.sql, **numbers}, names.env, names.dialect))
        names.apart.update(numbers)
        return listed(names)

    return numbered if sets else listed


def grouped(block: Block, sets: Sets, components: Sequence[Component], listed: Listed, keys: int) -> str:
    """GROUP BY the first columns of a list.

    With slices, n is no less than what those of a set count together, and none adds more than its rows can.
    """
    items, block = waist(block, with_numbers(listed, sets, components))
    by = ", ".join(str(i + 1) for i in range(keys))
    found = f"SELECT {', '.join(items)}\n{block.clause()}\nGROUP BY {by}"
    if not sets:
        return found
    d, rows = block.names.dialect, rows_of_slices(sets, components)
    held = {f"m{i}": within_rows(d, i, components[i], rows[at][slice_]) for i, (at, slice_) in places(sets).items()}
    kept = [held.get(name, name) for item in items if (name := item.rpartition(" AS ")[2]) != "n"]
    return f"SELECT {', '.join([*kept, f'{no_fewer(d, rows)} AS n'])}\nFROM ({found}) AS b"


def rows_of_slices(sets: Sets, components: Sequence[Component]) -> list[list[str]]:
    """Under limits: for each set the names of the numbers of rows of its slices, of a COUNT(*) where there is one."""
    return [
        [
            next((f"m{i}" for i in own if _is_count_of_rows(components[i])), f"n{at}_{slice_}")
            for slice_, own in enumerate(each.slices)
        ]
        for at, each in enumerate(sets)
    ]


def _is_count_of_rows(c: Component) -> bool:
    return isinstance(c, UnitCount) or (isinstance(c, RowCount) and c.arg is None)


def is_present(i: int, sets: Sets, components: Sequence[Component]) -> str:
    """Under limits: whether an id counts in a group, by its rows there: of a set in the first slice that has some."""
    at, slice_ = places(sets).get(i, (0, 0))
    earlier = rows_of_slices(sets, components)[at][:slice_] if slice_ else []
    return f"CASE WHEN {' AND '.join([f'm{i} > 0', *(f'{rows} = 0' for rows in earlier)])} THEN 1 ELSE 0 END"


def no_fewer(d: Dialect, rows: Sequence[Sequence[str]]) -> str:
    """The rows of an (id, group): n, or those of all slices of a set together where these are more."""
    found = "n"
    for each in rows:
        found = d.greatest(found, " + ".join(each))
    return found


def within_rows(d: Dialect, i: int, c: Component, rows: str) -> str:
    """What a component adds, no more than so many rows can: were its number computed in another place than theirs."""
    if rows == f"m{i}":
        return rows
    end = f"{d.wide(str(c.magnitude))} * {d.wide(rows)}"
    return f"{d.least(d.greatest(d.wide(f'm{i}'), f'-({end})'), end)} AS m{i}"


def in_slice(at: int, slice_: int, names: Names) -> str:
    """The condition on rows to be in a slice of the set at this place."""
    return f"{names.sql[-at - 1]} = {slice_}"


def sliced_sets(node: Release, components: Sequence[int]) -> Sets:
    """The sets of a release under limits that some of these components are in: they are weighed as rows are."""
    return tuple(each for each in node.slices if not each.members.keys().isdisjoint(components))
