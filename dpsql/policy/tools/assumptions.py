"""What the guarantee rests on: every promise that is trusted rather than enforced, and what breaks if it is false."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from dpsql.core.policy.period_ids import in_words, whose
from dpsql.core.policy.policy import Policy
from dpsql.core.policy.positions import Loc
from dpsql.core.policy.tables import Column, Table, TableDomain
from dpsql.core.policy.units import IdUnit, PathUnit, RowUnit, Unit
from dpsql.policy.issues import dotted

Kind = Literal[
    "public", "unit", "primary_key", "unique", "foreign_key", "max_frequency", "max_rows_per_unit", "nobody_has_more",
    "belongs_to_unit", "not_null", "size",
]  # fmt: skip

PAGES = "docs/reference/promises"
MISSED = "ε is as stated, for the limit is enforced; but intervals miss the numbers that it cuts"
SHARED = "ε is as stated, but a group of several units counts as several groups, one for each"
DANGLING = "ε is as stated, but answers about joined rows leave out the rows that refer to nothing"


@dataclass(frozen=True, slots=True)
class Promise:
    """One trusted claim. `where`: its dotted path. `unit`: whose protection rests on it (None: anybody's).

    column: of a claim about one column, its table and its name.
    """

    kind: Kind
    where: str
    claim: str
    when_false: str
    unit: str | None = None
    column: tuple[str, str] | None = None

    @property
    def page(self) -> str:
        """The page of the documentation about this kind of promise."""
        return f"{PAGES}/{self.kind}.md"


def promises(policy: Policy) -> tuple[Promise, ...]:
    """Every promise of the policy, in its order. Promises on public tables that every run checks are not listed."""
    found = []
    for table in policy.tables.values():
        private = _private(table, table.unit in policy.by_period, policy.privacy.accountant == "zcdp")
        found += list(_public(table) if table.public else private)
        found += [p for column in table.columns.values() for p in _column(table, column)]
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Promised:
    """Promises of one kind that have one consequence. heading: what they say; claims: one line for each thing said."""

    kind: Kind
    heading: str
    when_false: str
    promises: tuple[Promise, ...]

    @property
    def page(self) -> str:
        """As of a promise."""
        return self.promises[0].page

    @property
    def claims(self) -> tuple[str, ...]:
        """What is promised; the columns that are never NULL on one line for each table."""
        if self.kind != "not_null":
            return tuple(p.claim for p in self.promises)
        tables: dict[str, list[str]] = {}
        for table, column in (p.column for p in self.promises if p.column is not None):
            tables.setdefault(table, []).append(column)
        return tuple(f"of {table}: {', '.join(columns)}" for table, columns in tables.items())


_HEADINGS: dict[Kind, str] = {
    "public": "Public tables tell nothing about anybody",
    "unit": "The rows belong to whom the policy says",
    "primary_key": "Primary keys never repeat",
    "unique": "Keys never repeat",
    "foreign_key": "What is referred to is there",
    "max_frequency": "Values repeat no more often than declared",
    "max_rows_per_unit": "Nobody has more rows than declared",
    "nobody_has_more": "Limits on rows take nothing away",
    "belongs_to_unit": "Nobody shares these values",
    "not_null": "These columns are never NULL",
    "size": "Sizes are known to everybody",
}


_OF_LISTS = "Lists of groups were not made of private rows"


def grouped(policy: Policy) -> tuple[Promised, ...]:
    """The promises, those of one kind with one consequence together; kinds in the order of `Kind`."""
    found: dict[tuple[Kind, str], list[Promise]] = {}
    for promise in promises(policy):
        found.setdefault((promise.kind, promise.when_false), []).append(promise)
    order = list(_HEADINGS)
    return tuple(
        Promised(
            kind,
            _OF_LISTS if kind == "public" and together[0].column is not None else _HEADINGS[kind],
            when_false,
            tuple(together),
        )
        for (kind, when_false), together in sorted(found.items(), key=lambda item: order.index(item[0][0]))
    )


def protection(policy: Policy) -> tuple[str, ...]:
    """How strongly someone in several units is protected, one line per neighbouring relation.

    ε, or ρ, is what each unit has been charged. Someone with a rows of A (unit {rows: k_A}) and b rows of B counts as
    ⌈a/k_A⌉ + ⌈b/k_B⌉ units; all rows of one id count as one.
    """
    lines = []
    for neighbours, words in (("add_remove", "added or removed"), ("replace_one", "replaced")):
        units = [u for u in policy.units.values() if u.neighbours == neighbours and u.tables]
        if not units:
            continue
        terms = [term for unit in units for term in _terms(policy, unit)]
        formula = as_units(" + ".join(terms), policy.privacy.accountant == "zcdp")
        lines.append(f"{words}: {formula}   where {'; '.join(_legend(u) for u in units)}")
    return tuple(lines)


def as_units(number: str, in_rho: bool) -> str:
    """The loss of somebody who is so many units: m·ε, and m²·ρ, for he moves totals m times as far.

    δ is at most m·e^((m − 1)·ε)·δ; of a δ beside ρ nothing is known (core/ledger/losses/many_periods.py).
    """
    whole = f"({number})" if " + " in number else number
    if number == "1":
        return "ρ" if in_rho else "ε"
    return f"{whole}²·ρ" if in_rho else f"{whole}·ε"


def _terms(policy: Policy, unit: Unit) -> list[str]:
    if unit.kind == "id":
        return ["1"]
    terms = []
    for name in unit.tables:
        owner = policy.tables[name].protection
        rows = owner.rows if isinstance(owner, RowUnit) else 1
        terms.append(f"n({name})" if rows == 1 else f"⌈n({name})/{rows}⌉")
    return terms if len(terms) == 1 else [f"max({', '.join(terms)})"]


def _legend(unit: Unit) -> str:
    if unit.kind == "id":
        return f"1 stands for all rows of one {unit.name} in {', '.join(unit.tables)}"
    return f"n({', n('.join(f'{t})' for t in unit.tables)} counts one's rows there"


def _public(table: Table) -> Iterator[Promise]:
    yield Promise(
        "public",
        dotted(("tables", table.name, "public")),
        f"{table.name} holds nothing about any unit",
        "its rows are shown without noise: ε is unlimited for whoever they tell about, and the ledger records 0",
    )


def _private(table: Table, by_period: bool, in_rho: bool) -> Iterator[Promise]:
    loc: Loc = ("tables", table.name)
    unit = table.unit
    match table.protection:
        case RowUnit(rows=rows):
            claim = f"whoever is to be protected has at most {rows} row{'s' if rows > 1 else ''} of {table.name}"
            effect = f"someone with n rows is protected at {as_units(f'⌈n/{rows}⌉' if rows > 1 else 'n', in_rho)} only"
            if table.grows is not None and by_period:
                claim += f", whose {table.grows.by} never comes to lie in another {table.grows.every}"
                effect += "; a row that was in several periods is protected at the sum of what they were charged"
                effect += ", of ρ at the square of the sum of the roots" if in_rho else ""
            yield Promise("unit", dotted((*loc, "unit")), claim, effect, unit)
        case IdUnit(column=column):
            claim = f"all rows of one {unit} in {table.name} carry the same {in_words(column)}, and it is nobody else's"
            effect = f"someone with n ids is protected at {as_units('n', in_rho)} only; rows without an id are left out"
            if table.per is not None and table.grows is not None:
                every = table.grows.every
                claim += f"; {table.grows.by} never comes to lie in another {every}"
                effect += (
                    f". The unit is one {whose(table)}: over d {every}s of a {table.per} the loss may be "
                    f"{'d²' if in_rho else 'd'} times it"
                )
            yield Promise("unit", dotted((*loc, "unit")), claim, effect, unit)
        case PathUnit(path=path):
            trail = " → ".join(hop.table for hop in path)
            claim = f"{table.name} → {trail} leads from each row to the {unit} it belongs to"
            effect = (
                f"a row that leads to another {unit} is protected as that one's: someone whose rows lead to n of them "
                f"is protected at {as_units('n', in_rho)} only; rows that lead nowhere are left out"
            )
            yield Promise("unit", dotted((*loc, "unit")), claim, effect, unit)
        case None:
            pass
    yield from _keys(table, loc, in_rho)
    for i, key in enumerate(table.foreign_keys):
        claim = f"every {_names(key.columns)} of {table.name} occurs in {key.table}({', '.join(key.references)})"
        yield Promise("foreign_key", dotted((*loc, "foreign_keys", i)), claim, DANGLING, unit)
    for i, f in enumerate(table.max_frequency):
        if f.assumed:
            claim = f"at most {f.rows} rows of {table.name} share {_names(f.columns)}, whoever is added or removed"
            most = f"where n rows share it, a join on it may move n where the noise covers {f.rows}"
            effect = f"{most}: {_times(f.rows, in_rho)}"
            yield Promise("max_frequency", dotted((*loc, "max_frequency", i)), claim, effect, unit)
    limit = table.max_rows_per_unit
    if limit is not None and limit.assumed:
        claim = f"no {unit} has more than {limit.rows} rows of {table.name}"
        effect = f"a {unit} with n rows is protected at {as_units(f'⌈n/{limit.rows}⌉', in_rho)} only"
        yield Promise("max_rows_per_unit", dotted((*loc, "max_rows_per_unit")), claim, effect, unit)
    elif limit is not None and limit.nobody_has_more:
        claim = f"no {unit} has more than {limit.rows} rows of {table.name}, so that the limit takes nothing away"
        where = dotted((*loc, "max_rows_per_unit", "nobody_has_more"))
        yield Promise("nobody_has_more", where, claim, MISSED, unit)
    for i, column in enumerate(table.belongs_to_unit):
        claim = f"all rows of {table.name} with one {column} are of one {unit}"
        yield Promise("belongs_to_unit", dotted((*loc, "belongs_to_unit", i)), claim, SHARED, unit)
    if table.size is not None:
        claim = f"{table.name} has exactly {table.size} rows, and everybody may know it"
        effect = "counts and averages are wrong, at the stated ε; if the size is not public, it is given away at ε 0"
        yield Promise("size", dotted((*loc, "size")), claim, effect, unit)


def _keys(table: Table, loc: Loc, in_rho: bool) -> Iterator[Promise]:
    named: list[tuple[Kind, Loc]] = [("primary_key", (*loc, "primary_key"))] if table.primary_key is not None else []
    named += [("unique", (*loc, "unique", i)) for i in range(len(table.unique))]
    for (kind, where), key in zip(named, table.keys, strict=True):
        if key.assumed:
            claim = f"no two rows of {table.name} share {_names(key.columns)}, whoever is added or removed"
            effect = (
                "where n rows share it, one unit may move an answer that joins on it n times as far as the noise "
                f"covers, or be counted in n of its groups: {_times(1, in_rho)}"
            )
            yield Promise(kind, dotted(where), claim, effect, table.unit)


def _column(table: Table, column: Column) -> Iterator[Promise]:
    loc: Loc = ("tables", table.name, "columns", column.name)
    if not column.is_nullable:
        source = "" if column.nullable is not None else " (a primary key)"
        claim = f"{table.name}.{column.name} is never NULL{source}"
        effect = (
            "rows without a value are counted as if they had one, so that counts are wrong, at the stated ε; joins on "
            "a key that such a column is part of may protect less"
        )
        if table.protection is not None and table.protection.neighbours == "replace_one":
            effect += (
                "; and a sum may move further than its noise covers: ε is then as many times what is stated as the "
                "larger end of the bounds is of their width"
            )
        yield Promise("not_null", dotted((*loc, "nullable")), claim, effect, table.unit, (table.name, column.name))
    if isinstance(column.domain, TableDomain) and not table.public:
        domain = column.domain
        claim = f"{domain.table}.{domain.column} was not chosen by looking at {table.name}"
        effect = "the list of groups gives away which values occur: ε is unlimited for who alone has one of them"
        yield Promise("public", dotted((*loc, "domain")), claim, effect, table.unit, (table.name, column.name))


def _times(rows: int, in_rho: bool) -> str:
    times = "n" if rows == 1 else f"⌈n/{rows}⌉"
    return f"{'ρ' if in_rho else 'ε'} is {times}{'²' * in_rho} times what is stated"


def _names(columns: tuple[str, ...]) -> str:
    return columns[0] if len(columns) == 1 else f"({', '.join(columns)})"
