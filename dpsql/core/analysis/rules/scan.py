"""Scan of a table.

Claim: a public table never differs. A private table differs in at most k rows (`unit: {rows: k}`; where neighbours
    replace rows: k replaced ones, or 2k as removals and insertions) or in all rows of one id (two ids where ids are
    replaced). Rows whose id is found through a path are of any number until they are joined to it.
    Of a growing table it has the rows of the periods that it names, which are whole ones, closed and kept. Where the
    unit is an id in one period, the id itself is a function of it, and so is a day that is a period.
    What a prepared copy carries by its id is a function of the id, and so is what it carries by such columns.
Why: that is the definition of neighbouring databases. A scan's periods are its innermost filter
    (core/printing/relational_nodes.py), so that what holds of filtered rows holds of these.
When it would be false: a declared `unique` over nullable columns as a key that counts NULL as a value (SQL's UNIQUE
    admits many NULLs): it gives a frequency for `=` only. An *enforced* limit is no fact here: nothing has enforced
    it yet; only promises (`assume`) hold at the scan. An id with equal values that are not one value (0.0 and -0.0) as
    a function of itself: what is computed from it can differ among one id's rows.
Not proved: these are the premises, `neighbours` and `promised` of Plan.v
Tested by: tests/deep/core/analysis/test_stability.py, tests/core/analysis/test_scan.py, tests/planner/test_growing.py,
tests/core/analysis/test_zeros_of_ids.py, tests/core/policy/test_period_ids.py, tests/core/policy/test_carried.py

Example:
    >>> facts("SELECT * FROM icd10")
    scan icd10   public
    >>> facts("SELECT * FROM calls")
    scan calls   stability calls=2 rows
    >>> facts("SELECT * FROM sensors")
    scan sensors   stability sensors=2 rows (1 replaced) · always 1,000 rows
    >>> facts("SELECT * FROM visits", "keys")
    scan visits   stability patient=1 id · key (visit)
"""

from __future__ import annotations

from fractions import Fraction

from dpsql.core.analysis.context import Context
from dpsql.core.analysis.declared_columns import column_fact, reads_measured_keys
from dpsql.core.analysis.facts import Columns, Facts, HopFact
from dpsql.core.analysis.rules.filter import filter_
from dpsql.core.ir.nodes import Filter, Scan
from dpsql.core.ir.periods import ReadPeriods, covers
from dpsql.core.numbers.cap import ONE, Cap, Unbounded, finite, smaller
from dpsql.core.policy.growing import Growth
from dpsql.core.policy.period_ids import of_functions
from dpsql.core.policy.tables import Table
from dpsql.core.policy.units import IdUnit, PathUnit, RowUnit
from dpsql.core.value_classes import replace
from dpsql.core.values.domains import DateRange, from_keys
from dpsql.core.values.value import Domain
from dpsql.diagnostics.diagnostic import Reason


def scan(node: Scan, ctx: Context) -> Facts:
    """Facts of a table as it stands in the database.

    They follow from the policy alone, unless the rows' owner is found elsewhere or keys of a column are measured: then
    they are kept with the policy, for the table under these very names, types and numbers of columns.
    """
    table, kept = ctx.table(node.table), ctx.policy.scanned
    named = node.table, tuple([(c.uid, c.name, c.type.name) for c in node.columns])
    known = kept.get(named)
    if known is None:
        known = _scan(node, table, ctx)
        if not isinstance(table.protection, PathUnit) and not reads_measured_keys(table):
            if len(kept) >= MOST_SCANS:
                kept.clear()
            kept[named] = known
    if node.periods is not None or not (table.grows is None or ctx.drafting):
        return _of_periods(node, known, table.grows, ctx)
    return replace(known)  # with nothing known yet of expressions: each derivation works them out for itself


def _of_periods(node: Scan, known: Facts, grows: Growth | None, ctx: Context) -> Facts:
    """Facts of the rows that are read of a growing table. Raises AssertionError: it is not said, or is not allowed."""
    read = node.periods
    if read is None or grows is None or (read.by, read.every) != (grows.by, grows.every):
        raise AssertionError(f"a scan of {node.table} that says nothing, or something else, of its periods")
    allowed = grows.readable(ctx.public.closed(node.table))
    if not read.days or read.days != grows.whole(read.days) or not covers(allowed, read.days):
        raise AssertionError(f"a scan of {node.table} of parts of periods, or of some that are not closed and kept")
    found = filter_(Filter(node, read.condition(node.columns)), replace(known))
    day = next(c.uid for c in node.columns if c.name == read.by)
    fact = found.columns[day]
    value = replace(fact.value, nullable=False, domain=fact.value.domain or _days(read))
    columns = {**found.columns, day: replace(fact, value=value)}
    return replace(found, columns=columns, rule="table", note=known.note)


def _days(read: ReadPeriods) -> Domain | None:
    """The group keys of the day: those that are read; None where the last one is not known."""
    ranges = [DateRange(first, last) for first, last in read.days if last is not None]
    if len(ranges) < len(read.days):
        return None
    return Domain(ranges[0]) if len(ranges) == 1 else from_keys(day for each in ranges for day in each)


MOST_SCANS = 256
"""Most facts of tables that a policy keeps: a table's columns have other numbers where it stands elsewhere in FROM."""


def _scan(node: Scan, table: Table, ctx: Context) -> Facts:
    numbers = {c.name.lower(): c.uid for c in node.columns}
    columns = {c.uid: column_fact(c, table, node, ctx) for c in node.columns}
    keys, frequency = _keys_and_frequencies(table, numbers)
    promised_keys = _promised_keys(table, numbers)
    match table.protection:
        case None:
            note = "public" if table.public else ""
            return Facts(
                columns, keys=keys, frequency=frequency, promised_keys=promised_keys, rule="table", note=note
            )  # fmt: skip
        case RowUnit(name=name, rows=rows, neighbours=neighbours):
            replaced = neighbours == "replace_one"
            return Facts(
                columns, {name: finite(2 * rows if replaced else rows)}, keys=keys, frequency=frequency,
                promised_keys=promised_keys, replaced=replaced,
                replaced_rows={name: finite(rows)} if replaced else None, size=table.size if replaced else None,
                rule="table", note=f"unit: {rows} row(s)",
            )  # fmt: skip
        case IdUnit(name=name, column=column, neighbours=neighbours):
            replaced = neighbours == "replace_one"
            ids = frozenset({numbers[column.lower()]})
            if table.max_rows_per_unit is not None and table.max_rows_per_unit.assumed:
                promised: Cap = finite(table.max_rows_per_unit.rows)
                frequency[ids] = smaller(frequency[ids], promised) if ids in frequency else promised
            # Else two values may be one id (zeros of either sign), and what is computed from them can differ.
            own = ids if all(columns[uid].value.type.one_form for uid in ids) else frozenset()
            own |= {numbers[c.lower()] for c in of_functions(table)}
            if table.copied is not None:  # one partner, named by the id or by what it names: the same in all its rows
                for carried in table.copied.carried:
                    if {numbers[c.lower()] for c in carried.links} <= own:
                        own |= {numbers[c.name.lower()] for c in carried.columns.values()}
            by_id = frozenset(numbers.values()) if ids in keys else own
            return Facts(
                columns, {name: finite(2) if replaced else ONE}, ids=ids, keys=keys, frequency=frequency, by_id=by_id,
                promised_keys=promised_keys, replaced=replaced, rule="table",
                note=f"unit: {column}" if table.copied is None else f"prepared, unit: {column}",
            )  # fmt: skip
        case PathUnit(name=name, path=path, neighbours=neighbours):
            # The owner stands at the end of the path: until the rows are joined to it, no limit on them is known.
            first = path[0]
            hop = HopFact(tuple(numbers[c.lower()] for c in first.columns), first.table, first.references)
            return Facts(
                columns, {name: Unbounded((_ownerless(node, table),))}, keys=keys, frequency=frequency,
                hops=frozenset({hop}), promised_keys=promised_keys, replaced=neighbours == "replace_one", rule="table",
                note=f"unit: through {first.table}",
            )  # fmt: skip


def _promised_keys(table: Table, numbers: dict[str, int]) -> frozenset[HopFact]:
    """The keys by which a foreign key may name a row of a private table: promised ones only."""
    if table.public:
        return frozenset()
    promised = [k.columns for k in table.keys if k.assumed and all(c.lower() in numbers for c in k.columns)]
    return frozenset(HopFact(tuple(numbers[c.lower()] for c in key), table.name, key) for key in promised)


def _ownerless(node: Scan, table: Table) -> Reason:
    return Reason(
        "DP220",
        f"the rows of {table.name} are not joined to their privacy unit",
        node.span,
        "their owner is found through foreign keys",
        ("join the tables of the path on their foreign keys",),
    )


def _keys_and_frequencies(table: Table, numbers: dict[str, int]) -> tuple[frozenset[Columns], dict[Columns, Cap]]:
    """Keys and frequencies that the policy promises (on public tables: whatever it declares, re-checked at the run)."""
    keys: set[Columns] = set()
    frequency: dict[Columns, Cap] = {}
    for key in table.keys:
        columns = _numbers(key.columns, numbers)
        if columns is None or not (key.assumed or table.public):
            continue
        frequency[columns] = ONE
        declared = [table.column(c) for c in key.columns]
        if all(c is not None and not c.is_nullable for c in declared):
            keys.add(columns)
    for limit in table.max_frequency:
        columns = _numbers(limit.columns, numbers)
        if columns is not None and (limit.assumed or table.public):
            cap: Cap = finite(Fraction(limit.rows))
            frequency[columns] = smaller(frequency[columns], cap) if columns in frequency else cap
    return frozenset(keys), frequency


def _numbers(names: tuple[str, ...], numbers: dict[str, int]) -> Columns | None:
    found = [numbers.get(n.lower()) for n in names]
    return None if None in found else frozenset(n for n in found if n is not None)
