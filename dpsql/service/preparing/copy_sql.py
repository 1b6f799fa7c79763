"""The SQL of a prepared table: of each owner the first rows, with the owner.

*Claim.* Between neighbouring databases the copies of a unit's tables differ in the rows of the units that differ, and
no owner has more rows than the limit. *Why.* The rows come from a plan that the analysis judges like any query's: a
scan, the join with the copy of the table through which the owner is found, rows without an owner left out, the first C
rows of each owner kept (core/analysis/rules/truncate.py). What the analysis does not prove is not written. A child is
cut among the rows of kept parents, which are a function of the same owner's rows. *When it would be false.* A limit per
spelling of an id, where two are one unit: the table is read with the ids that the policy makes. An order that reads the
place of a row, or rows of other owners. *Tested by* tests/service/test_prepared.py,
tests/deep/service/test_prepared_neighbours.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count

from dpsql.core.analysis.context import Context
from dpsql.core.analysis.derive import derive
from dpsql.core.ir.components import ValueSum
from dpsql.core.ir.expressions import Call, Column
from dpsql.core.ir.nodes import (
    Equality,
    Filter,
    Item,
    Join,
    JoinKind,
    Node,
    Project,
    Scan,
    Truncate,
    Window,
    WindowCall,
    output_columns,
)
from dpsql.core.ir.public_facts import PublicFacts
from dpsql.core.ir.types import BIGINT, BOOLEAN
from dpsql.core.numbers.cap import Finite
from dpsql.core.policy.carried import carried
from dpsql.core.policy.policy import Policy
from dpsql.core.policy.prepared import TOTAL, limit_of, owner_column, units_column
from dpsql.core.policy.tables import Table
from dpsql.core.policy.units import PathUnit
from dpsql.core.printing.dialect import Dialect
from dpsql.core.printing.expressions import Aliases, Block, Names
from dpsql.core.printing.forms.kept_first import SALT
from dpsql.core.printing.grid_integers import quantized
from dpsql.core.printing.relational_nodes import Emitter
from dpsql.core.printing.waist import waist
from dpsql.planner.rewrites.bounds.read_stored_integers import stored_form


def copy_sql(table: Table, policy: Policy, dialect: Dialect, tables: Callable[[str], str], salt: int) -> str:
    """The SELECT that gives a table's copy.

    policy: in which the tables that were copied before are described as copies. tables: name → where it is read: of
    those the copy. salt: what decides, with the rows themselves, which of them are kept.
    """
    numbers = count(1)

    def scan(of: Table) -> Scan:
        columns = []
        for c in of.all_columns:
            assert c.sql_type is not None
            columns.append(Column(next(numbers), c.name, c.sql_type))
        return Scan(of.name, tuple(columns), None, of.name)

    def called(node: Scan, name: str) -> Column:
        return next(c for c in node.columns if c.name.casefold() == name.casefold())

    own = scan(table)
    node: Node = own
    columns = list(own.columns)
    if isinstance(table.protection, PathUnit):
        hop = table.protection.path[0]
        parent = policy.tables[hop.table]
        above = scan(parent)
        pairs = zip(hop.columns, hop.references, strict=True)
        found = called(above, owner_column(parent, policy.tables).name)
        node = Join(JoinKind.INNER, own, above, tuple(Equality(called(own, c), called(above, r)) for c, r in pairs))
        owner = Column(next(numbers), owner_column(table, policy.tables).name, found.type)
        node = Filter(node, Call("is_not_null", (found,), BOOLEAN))
        renamed = [Column(next(numbers), c.name, c.type) for c in columns]
        node = Project(node, (*(Item(n, c) for n, c in zip(renamed, columns, strict=True)), Item(owner, found)))
        columns = [*renamed, owner]
    else:
        owner = called(own, owner_column(table, policy.tables).name)
        node = Filter(node, Call("is_not_null", (owner,), BOOLEAN))
    limit = limit_of(table)
    assert limit is not None
    total = () if limit.assumed else (Column(next(numbers), TOTAL.name, BIGINT),)
    node = Window(node, tuple(WindowCall("count", (), c, (owner,)) for c in total)) if total else node
    columns = [*columns, *total]
    proven = derive(node, Context(policy, PublicFacts())).fact.most_rows(frozenset({owner.uid}))
    if not (isinstance(proven, Finite) and proven.value <= limit.rows):
        node = Truncate(node, (owner,), limit.rows)
    printed = {c.uid: c.name for c in columns}
    for each in carried(table, policy.tables, owner_column(table, policy.tables)):
        other = scan(policy.tables[each.table])
        link = {name: uid for uid, name in printed.items()}
        at = {c.uid: c for c in (*columns, *output_columns(node))}
        equal = [Equality(at[link[c]], called(other, k)) for c, k in zip(each.links, each.keys, strict=True)]
        if not policy.tables[each.table].public and each.links != (owner.name,):
            equal.append(Equality(owner, called(other, owner_column(policy.tables[each.table], policy.tables).name)))
        node = Join(JoinKind.LEFT, node, other, tuple(equal))
        beside = {called(other, name): column.name for name, column in each.columns.items()}
        printed |= {c.uid: name for c, name in beside.items()}
        columns = [*columns, *beside]
    judged = derive(node, Context(policy, PublicFacts()))
    most = judged.fact.most_rows(frozenset({owner.uid}))
    assert owner.uid in judged.fact.ids and isinstance(most, Finite) and most.value <= limit.rows, table.name
    emitter = Emitter(dialect, tables, {}, Aliases())
    names = Names({c.uid: f"kept.c{c.uid}" for c in columns}, judged.fact.env, dialect)
    integers = ((name, replace(form, arg=_of(form, columns, name))) for name, form in stored_forms(table).items())
    wanted = [(units_column(name).name, form) for name, form in integers]

    def listed(over: Names) -> list[str]:
        own = [f"{over.sql[c.uid]} AS {dialect.identifier(printed[c.uid])}" for c in columns]
        return [*own, *(f"{quantized(form, over)} AS {dialect.identifier(name)}" for name, form in wanted)]

    inner = emitter.query(judged).replace(SALT, str(salt))
    items, block = waist(Block(f"({inner}) AS kept", (), names), listed)
    return f"SELECT {', '.join(items)}\n{block.clause()}"


def stored_forms(table: Table) -> dict[str, ValueSum]:
    """Name of a column → the sum whose integers stand beside it in the copy."""
    taken = {c.name.casefold() for c in table.columns.values()}
    forms = {
        c.name: stored_form(c, Column(0, c.name, c.sql_type))
        for c in table.columns.values()
        if c.sql_type is not None and units_column(c.name).name.casefold() not in taken
    }
    return {name: form for name, form in forms.items() if form is not None}


def _of(form: ValueSum, columns: Sequence[Column], name: str) -> Call:
    """The clip of a form, of the column of this name."""
    assert isinstance(form.arg, Call)
    column = next(c for c in columns if c.name == name)
    return replace(form.arg, args=(column, *form.arg.args[1:]))


def staged(policy: Policy, table: Table, copied: Table) -> Policy:
    """The policy in which one more table is a copy."""
    return replace(policy, tables={**policy.tables, table.name: copied})
