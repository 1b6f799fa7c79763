"""Every row counts in full: row units, and ids that are proven to have few enough rows. One pass, one GROUP BY."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.components import (
    Comoment,
    Component,
    DistinctCount,
    DistinctSum,
    ProductSum,
    RowCount,
    UnitCount,
    ValueSum,
)
from dpsql.core.ir.nodes import Filter, GroupKeys, Node, Project, Release, Scan
from dpsql.core.ir.types import BIGINT, HUGEINT
from dpsql.core.ir.walk import Tagged
from dpsql.core.measures.all_measures import rule
from dpsql.core.printing.dialect import Dialect
from dpsql.core.printing.expressions import Aliases, Block, Names, TableNames
from dpsql.core.printing.forms.clip import only
from dpsql.core.printing.forms.few_values import at_most_values
from dpsql.core.printing.forms.key_lists import OfGroups
from dpsql.core.printing.forms.sliced import Sets, choices, divided, places, unfiltered, with_numbers
from dpsql.core.printing.grid_integers import addend, comoment, counted_rows, held_in, quantized, uncentered, valid
from dpsql.core.printing.relational_nodes import Emitter
from dpsql.core.printing.shapes.cells import histogram
from dpsql.core.printing.shapes.release_statement import Statement
from dpsql.core.printing.waist import conditions, text, waist


def direct(
    node: Release, below: Tagged[Facts], d: Dialect, tables: TableNames, released: Mapping[Node, str]
) -> tuple[Statement, ...]:
    """SELECT keys, aggregates FROM … GROUP BY keys."""
    found, ids = [], sorted(below.fact.ids)
    plain = [i for i, c in enumerate(node.components) if not rule(c).chosen]
    for sets, own in divided(node, plain):
        asked: list[OfGroups] = []
        block = _rows(node, below, Emitter(d, tables, released, Aliases()), asked)
        sql = _one_level(node, own, block, asked, ids) if not sets else _sliced(node, own, block, asked, ids, sets)
        found.append(Statement(sql, own, "sliced" if sets else "direct"))
    if chosen := choices(node):
        block = _rows(node, below, Emitter(d, tables, released, Aliases()))
        found += [histogram(block, node, at, ids[:1], sets=sets) for sets, at in chosen]
    return tuple(found)


def _one_level(node: Release, own: Sequence[int], block: Block, asked: list[OfGroups], ids: Sequence[int]) -> str:
    def listed(names: Names) -> list[str]:
        keys = [f"{names.sql[k.uid]} AS k{i}" for i, k in enumerate(node.keys)]
        return [*keys, *(f"{_total(i, node.components, names, ids)} AS m{i}" for i in own)]

    items, block = waist(block, listed)
    return f"SELECT {', '.join(items)}\n{block.clause()}{grouping(node.keys)}{_having(block, asked)}"


def _having(block: Block, asked: list[OfGroups]) -> str:
    d = block.names.dialect
    terms = [each.printed(d, block.names.sql[each.key.uid]) for each in asked]
    return f"\n{d.having(' AND '.join(terms))}" if terms else ""


def _sliced(
    node: Release, own: Sequence[int], block: Block, asked: list[OfGroups], ids: Sequence[int], sets: Sets
) -> str:
    """By (keys, slices), and then by keys."""
    d, components, at = block.names.dialect, unfiltered(node.components, sets), places(sets)
    columns: dict[str, str] = {}
    named: dict[int, str] = {}

    def listed(names: Names) -> list[str]:
        for i in own:
            named[i] = columns.setdefault(_total(i, components, names, ids), f"a{len(columns)}")
        keys = [f"{names.sql[k.uid]} AS k{i}" for i, k in enumerate(node.keys)]
        numbers = [f"{names.sql[-i - 1]} AS s{i}" for i in range(len(sets))]
        return [*keys, *numbers, *(f"{sql} AS {name}" for sql, name in columns.items())]

    items, block = waist(block, with_numbers(listed, sets, node.components))
    inner = f"SELECT {', '.join(items)}\n{block.clause()}{grouping([*node.keys, *sets])}{_having(block, asked)}"
    totals = []
    for i in own:
        where = f" FILTER (WHERE g.s{at[i][0]} = {at[i][1]})" if i in at else ""
        counts = not rule(components[i]).adds_values
        added = f"COALESCE({d.total(f'g.{named[i]}', BIGINT if counts else HUGEINT, where)}, 0)"
        totals.append(f"{d.cast(added, BIGINT) if counts else added} AS m{i}")
    keys = [f"g.k{i}" for i in range(len(node.keys))]
    by = f"\nGROUP BY {', '.join(keys)}" if keys else ""
    return f"SELECT {', '.join([*keys, *totals])}\nFROM ({inner}) AS g{by}"


def _rows(node: Release, below: Tagged[Facts], emitter: Emitter, asked: list[OfGroups] | None = None) -> Block:
    """The rows. asked: gets what is left to be asked of the groups.

    That is for the rows of one table: where tables are joined, the fewer rows the better.
    """
    alone = all(isinstance(t.node, (GroupKeys, Filter, Project, Scan)) for t in below.walk())
    if isinstance(below.node, GroupKeys) and alone:
        block = emitter.keyed(below.node, below, asked)
    else:
        block = emitter.block(below)
    return block.filtered(*(f"{block.names.sql[uid]} IS NOT NULL" for uid in sorted(below.fact.ids)[:1]))


def _total(i: int, components: Sequence[Component], names: Names, ids: Sequence[int]) -> str:
    """One component, as `total` has it, its center subtracted once."""
    c, d = components[i], names.dialect
    if d.shifts_totals:
        components = [uncentered(each) if isinstance(each, ValueSum) else each for each in components]
    found = total(components[i], names, components, ids)
    now = components[i]
    if c.center == now.center or not isinstance(now, ValueSum):
        return found
    counting = only(conditions(c, names))
    return f"{found} - {d.wide(str(c.center - now.center))} * COUNT({counted_rows(now, names)}){counting}"


def grouping(keys: Sequence[object]) -> str:
    """GROUP BY over the first columns of a list: as many as there are keys."""
    return f"\nGROUP BY {', '.join(str(i + 1) for i in range(len(keys)))}" if keys else ""


def total(
    c: Component,
    names: Names,
    components: Sequence[Component],
    ids: Sequence[int],
    *,
    rising: bool = False,
    slice_: str = "",
) -> str:
    """The exact integer of one component over a group of rows; never NULL.

    rising: a sum, as `rising_total` has it. slice_: of rows under this condition, in place of its filter.
    """
    d, counting = names.dialect, [slice_] if slice_ else conditions(c, names)
    where = only(counting)
    match c:
        case RowCount():
            return f"COUNT({counted(c, names, components)}){where}"
        case Comoment():
            return comoment(c, names)
        case ValueSum() | ProductSum():
            added, left_out = addend(c, names)
            where = only([*counting, *left_out])
            plain = d.total(added, held_in(c), where, most=c.magnitude)
            return f"COALESCE({d.rising_total(added, where) if rising else plain}, 0)"
        case DistinctCount():
            return at_most_values(d, f"COUNT(DISTINCT {text(c.arg, names)[0]}){where}", c)
        case DistinctSum():
            added = d.total(quantized(c, names), held_in(c), where, distinct=True)
            return at_most_values(d, f"COALESCE({added}, 0)", c)
        case UnitCount():
            return f"COUNT(DISTINCT {names.sql[ids[0]]}){where}"
        case _:
            raise AssertionError("what is chosen has a histogram of its own")


def counted(c: Component, names: Names, components: Sequence[Component]) -> str:
    """What COUNT counts: every row, or those whose argument is valid, as in its sum."""
    if c.arg is None or c.counts_every_row:
        return "*"
    for other in components:
        if isinstance(other, ValueSum) and other.arg == c.arg:
            return counted_rows(other, names)
    return valid(c.arg, names)
