"""Rows have one unit: tables whose rows are made of the same table or file may not be declared as different units'.

*Claim.* What is told of a row is charged to one account, by whatever table of the policy it is asked for. *Why.* Tables
that read the same table or file, one of them through a view, say, have the same unit, unless the policy has that very
table or file as a public one. *When it would be false.* If a view reads what is not seen
(engines/duckdb/views/views.py); if two tables or two files hold copies of the same rows; if what a public view shows of
tables that the policy does not list is not public, which is a promise. *Tested by*
tests/deep/policy/test_one_person_two_budgets.py, tests/policy/test_one_unit.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dpsql.core.policy.catalogue import Catalogue
from dpsql.core.policy.policy import Policy
from dpsql.core.policy.tables import Table
from dpsql.core.policy.units import IdUnit, Protection, RowUnit
from dpsql.policy.issues import Issue

Reads = Mapping[str, tuple[str, ...]]


def rows_have_one_unit(policy: Policy, catalogue: Catalogue) -> Iterator[Issue]:
    """A mistake (DP004) for each table that reads rows which are another unit's in another table."""
    found = {name: catalogue.table(name) for name in policy.tables}
    reads = {name: table.reads for name, table in found.items() if table is not None}
    blamed: set[str] = set()
    for base in dict.fromkeys(base for bases in reads.values() for base in bases):
        readers = [policy.tables[name] for name, bases in reads.items() if base in bases]
        owner = _owner(base, readers, reads)
        if owner is None:  # what a public table shows of it is a promise
            readers = [t for t in readers if not t.public]
        elif owner.public:
            continue
        for table in readers:
            first = owner or readers[0]
            if table.unit != first.unit and table.name not in blamed:
                blamed.add(table.name)
                yield _issue(table, first, base, owner is not None)


def _owner(base: str, readers: Sequence[Table], reads: Reads) -> Table | None:
    """The table of the policy that is this table, or has this file as its source; a private one, if there are both."""
    owners = [t for t in readers if reads[t.name][0] == base or t.source is not None]
    return min(owners, key=lambda t: t.public, default=None)


def _issue(table: Table, first: Table, base: str, owned: bool) -> Issue:
    other = f"`{first.name}`" if owned else f"{base}, as `{first.name}` does"
    message = f"reads {other}, which holds rows of unit `{first.unit}`, but is declared "
    if table.public:
        message += "public"
        help = ["if what it shows is public, put a table that holds it in place of the view:  CREATE TABLE … AS …"]
    else:
        message += f"as rows of unit `{table.unit}`: the same rows would have two budgets"
        help = [*_same_unit(table.protection, first)]
        if not owned:
            help.append(f"or, if {base} holds nobody's rows, list it as a table that is  public: true")
    return Issue(("tables", table.name), message, about=False, key=True, help=tuple(help), code="DP004")


def _same_unit(own: Protection | None, first: Table) -> Iterator[str]:
    match own, first.protection:
        case RowUnit(rows=rows), RowUnit(name=name):
            yield f"give it the same unit:  unit: {{rows: {rows}, of: {name}}}"
        case IdUnit(column=column), IdUnit(name=name):
            yield f"give it the same unit:  unit: {{column: {column}, of: {name}}}"
        case _:
            yield "give both the same unit, or take one of them out of the policy"
