"""The keys of one kind of row: which tables of public values say what its group columns can be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from dpsql.core.analysis.derive import derive_once
from dpsql.core.ir.conditions import conjuncts
from dpsql.core.ir.expressions import Call, Cast, Column, Expr, Literal, LiteralValue, columns_of, walk
from dpsql.core.ir.expressions import transform as transform_expr
from dpsql.core.ir.nodes import Scan, Values
from dpsql.core.ir.public_facts import KeysOf
from dpsql.core.ir.types import Kind
from dpsql.core.numbers.interval import Interval
from dpsql.core.policy.tables import TableDomain
from dpsql.core.value_classes import replace
from dpsql.core.values.domains import ENUMERABLE
from dpsql.core.values.value import Domain, Value
from dpsql.diagnostics.errors import Rejected
from dpsql.functions.domains.made_domains import whole
from dpsql.functions.expression_values import evaluate
from dpsql.planner.group_keys.closed import told
from dpsql.planner.group_keys.compute import Computation, Condition, Unknown, computation, decided_by
from dpsql.planner.group_keys.key_tables import KeyTable, by_variable, combined, without_null
from dpsql.planner.group_keys.narrow import (
    Narrowed,
    bins,
    bins_between,
    is_trivial,
    narrowed,
    replaced,
    subjects,
    variables,
)
from dpsql.planner.group_keys.row_origins import Origin, Padding, RelationRows
from dpsql.planner.rewrites.rewrite_context import RewriteContext

Keys = Callable[[RelationRows, Origin], tuple[Domain | None, bool]]


class TooLong(Exception):
    """A public table has more distinct keys than may be released."""

    def __init__(self, table: str, scan: int) -> None:
        self.table, self.scan = table, scan


@dataclass(frozen=True, slots=True)
class KeyPart:
    """Keys of some of the expressions, by position: tuples, or a domain where there is one expression.

    covers: every row's key is among them. tables: where they come from (`VALUES` for a list in the query).
    unread: they stand in a public table that has not been read. listed: the query's own conditions list them.
    closed: a row can have no other (see closed.py).
    """

    positions: tuple[int, ...]
    keys: tuple[tuple[LiteralValue, ...], ...]
    domain: Domain | None
    covers: bool
    tables: tuple[str, ...]
    unread: bool = False
    listed: bool = False
    closed: bool = False

    @property
    def size(self) -> int:
        """Number of keys."""
        return len(self.keys) if self.domain is None else self.domain.size


class KeySearch:
    """One conjunctive query: columns that are equal are one variable, and tables of public rows meet in variables.

    Its rows are those that exactly the `active` ones of the `distinguished` paddings made up. unusable: scans (by their
    first column) whose keys are too many. keys_of: domains of columns that are no table's.
    """

    def __init__(
        self, rows: RelationRows, active: frozenset[Padding], distinguished: frozenset[Padding],
        unusable: frozenset[int],
        ctx: RewriteContext, keys_of: Keys,
    ) -> None:  # fmt: skip
        self.rows, self.ctx, self.keys_of = rows, ctx, keys_of
        self.null_columns = frozenset(uid for padding in active for uid in padding)
        inactive = distinguished - active
        hidden = frozenset(uid for padding in rows.paddings - inactive for uid in padding)
        terms = [
            t for term in rows.terms if term.unless <= inactive for t in conjuncts(self._with_nulls(term.condition))
        ]
        self.variable = variables(terms)
        self.present = frozenset(v for uid, v in self.variable.items())
        self.terms = [t for t in map(self._renamed, terms) if not is_trivial(t)]
        self.scans = {
            o.source.columns[0].uid: o.source
            for uid, o in rows.origins.items()
            if isinstance(o.source, (Scan, Values)) and o.public and uid not in hidden and o.source.columns
            and o.source.columns[0].uid not in unusable
        }  # fmt: skip
        in_scans = {c.uid for s in self.scans.values() for c in s.columns}
        self.own = [o for uid, o in rows.origins.items() if uid not in self.null_columns and uid not in in_scans]
        self.env: dict[int, Value] = {}
        for uid, o in sorted(rows.origins.items()):
            self.env.setdefault(self._variable(uid), o.value.without_domain())
        self.unread: set[int] = set()
        self.narrow: dict[int, Narrowed] = {}

    def _with_nulls(self, expr: Expr) -> Expr:
        if not self.null_columns & columns_of(expr):
            return expr
        return transform_expr(
            expr, lambda e: Literal(None, e.type) if isinstance(e, Column) and e.uid in self.null_columns else e
        )

    def _variable(self, uid: int) -> int:
        return self.variable.get(uid, uid)

    def _renamed(self, expr: Expr) -> Expr:
        def change(e: Expr) -> Expr:
            if not isinstance(e, Column) or self._variable(e.uid) == e.uid:
                return e
            return replace(e, uid=self._variable(e.uid))

        return transform_expr(expr, change)

    def parts(self, exprs: Sequence[Expr]) -> list[KeyPart] | None:
        """Keys of these expressions in its rows; [] if it has none; None if an expression has no public keys.

        Raises TooLong.
        """
        nothing = [Condition(t, self.env, frozenset()) for t in self.terms if not columns_of(t)]
        if not all(t.may_hold({}) for t in nothing):
            return []
        items = [self._renamed(self._with_nulls(e)) for e in exprs]
        items = self._with_subjects(items)
        read = frozenset(uid for i in items for uid in columns_of(i))
        tables, missing, names = self._tables(read)
        for uid in sorted(read - {v for t in tables for v in t.columns} - missing):
            domain = self._narrowed(uid).domain
            if domain is not None and domain.size <= ENUMERABLE and uid not in self.unread:
                covers = self._narrowed(uid).covers
                tables.append(KeyTable((uid,), tuple(zip(domain.keys())), covers, False))
        tables = [without_null(t, self.present) for t in tables]
        joined = combined(tables, items, self.terms, self.env, self.ctx.analysis.max_keys)
        found = self._assigned(items, joined, missing, names)
        return None if found is None else [told(part, items, self.env, self.terms) for part in found]

    # --- variables of their own ------------------------------------------------------------------------------------

    def _narrowed(self, uid: int) -> Narrowed:
        """Keys of a variable that no table holds."""
        known = self.narrow.get(uid)
        if known is None:
            known = self.narrow[uid] = self._own_keys(uid)
        return known

    def _own_keys(self, uid: int) -> Narrowed:
        best: Narrowed | None = None
        for origin in self.own:
            if self._variable(origin.column.uid) != uid:
                continue
            value, bounds = self._natural(origin)
            column = replace(origin.column, uid=uid)
            found = narrowed(column, value, bounds, self.terms)
            if found.domain is None:
                best = best or found
            elif best is None or best.domain is None or found.domain.size < best.domain.size:
                best = found
        if best is None:
            return Narrowed(None)
        if best.domain is not None:
            self.unread.discard(uid)
        return best

    def _natural(self, origin: Origin) -> tuple[Value, Interval | None]:
        """A column's keys before conditions, and the bounds that conditions may complete."""
        uid = origin.column.uid
        domain, unread = self.keys_of(self.rows, origin)
        if unread or self._is_unread(origin):
            self.unread.add(self._variable(uid))
        bounds = self._declared(origin)
        if isinstance(origin.source, Scan):
            return replace(origin.value, domain=domain), None if domain is not None else bounds
        value = replace(origin.value, domain=domain if domain is not None else whole(origin.value, self._most()))
        return value, None if value.domain is not None else bounds

    def _declared(self, origin: Origin) -> Interval | None:
        """Bounds that the policy gives a table's column, open at one end or both."""
        if not isinstance(origin.source, Scan):
            held = origin.value.interval
            return held if held.lo is not None or held.hi is not None else None
        hint = derive_once(origin.source, self.ctx.analysis).fact.columns[origin.column.uid].hint
        return None if hint is None else hint.bounds

    def _is_unread(self, origin: Origin) -> bool:
        """Whether the domain is a column of a public table that has not been read, or the days that are closed: the
        static check plans without.
        """
        if not isinstance(origin.source, Scan):
            return False
        read = origin.source.periods
        if read is not None and read.by == origin.column.name and read.days[-1][1] is None:
            return True
        declared = self.ctx.analysis.table(origin.source.table).column(origin.column.name)
        if declared is None or not isinstance(declared.domain, TableDomain):
            return False
        listed = KeysOf(declared.domain.table, (declared.domain.column,), self._most())
        return not self.ctx.analysis.public.knows(listed)

    def _most(self) -> int:
        return self.ctx.analysis.max_keys

    def _with_subjects(self, items: list[Expr]) -> list[Expr]:
        """Expressions that conditions list or bound become variables, unless all that they read has keys already."""
        held = {self._variable(c.uid) for s in self.scans.values() for c in s.columns}

        def enumerable(uid: int) -> bool:
            domain = None if uid in held else self._narrowed(uid).domain
            return uid in held or (domain is not None and domain.size <= ENUMERABLE)

        compared = subjects(self.terms, items)
        for subject in [*compared, *bins(items)]:
            if not any(subject in walk(i) for i in items) or all(enumerable(uid) for uid in columns_of(subject)):
                continue
            env = {uid: self._value(uid) for uid in columns_of(subject)}
            try:
                value = evaluate(subject, env)
            except Rejected:
                continue
            within = {uid: replace(v, interval=self._bounds(uid) or v.interval) for uid, v in env.items()}
            known = value.domain or whole(value, self._most()) or bins_between(subject, within)
            if known is None and subject not in compared:
                continue
            uid = min([0, *self.env]) - 1
            column = Column(uid, "expression", value.type)
            items = [replaced(i, subject, column) for i in items]
            self.terms = [replaced(t, subject, column) for t in self.terms]
            self.env[uid] = replace(value, domain=None)
            self.narrow = {}
            self.own.append(Origin(column, replace(value, domain=known)))
        return items

    def _bounds(self, uid: int) -> Interval | None:
        """Both ends that the policy gives a variable; None if it does not."""
        found = (self._declared(o) for o in self.own if self._variable(o.column.uid) == uid)
        return next((b for b in found if b is not None and b.bounded), None)

    def _value(self, uid: int) -> Value:
        """What is known of a variable, with its keys."""
        column = frozenset({uid})
        tests = [Condition(t, self.env, column) for t in self.terms if uid in columns_of(t)]
        nullable = self.env[uid].nullable and uid not in self.present and all(t.may_hold({uid: None}) for t in tests)
        return replace(self.env[uid], domain=self._narrowed(uid).domain, nullable=nullable)

    # --- tables ----------------------------------------------------------------------------------------------------

    def _tables(self, read: frozenset[int]) -> tuple[list[KeyTable], frozenset[int], dict[int, str]]:
        """Public tables that hold variables that are read, and those joined to them. Variables that are yet unread."""
        columns = {first: {self._variable(c.uid) for c in s.columns} for first, s in self.scans.items()}
        shared = {v for v in self.variable.values() if sum(v in held for held in columns.values()) > 1}
        chosen = [first for first, held in columns.items() if held & read]
        needed = frozenset(chosen)
        for first in chosen:  # grows while it is read
            links = columns[first] & shared
            chosen += [f for f, held in columns.items() if f not in chosen and held & links]
        own = list(map(self._narrowed, read))
        few = {uid for uid, n in zip(read, own, strict=True) if n.domain is not None and n.domain.size <= ENUMERABLE}
        around = frozenset(v for first in chosen for v in columns[first]) | few
        tested = frozenset(uid for t in self.terms for uid in decided_by(t, around))
        met = frozenset(v for v in shared if sum(v in columns[f] for f in chosen) > 1)
        tables: list[KeyTable] = []
        missing: set[int] = set()
        names: dict[int, str] = {}
        for first in sorted(chosen):
            scan, held = self.scans[first], columns[first]
            wanted = [held & (read | met | tested), held & (read | tested), held & read]
            if isinstance(scan, Values):
                wanted = [held]
            attempts = [w for i, w in enumerate(wanted) if w and w not in wanted[:i]]
            if first not in needed:
                attempts = attempts[:1]
            table, unread = self._read(scan, attempts)
            names.update({v: scan.table if isinstance(scan, Scan) else "VALUES" for v in held & read})
            if unread:
                missing |= held & read
                if first not in needed:
                    missing |= read & frozenset(v for f in needed for v in columns[f])
            elif table is not None:
                tables.append(table)
            elif first in needed:
                raise TooLong(names[min(held & read)], first)
        return tables, frozenset(missing), names

    def _read(self, scan: Scan | Values, attempts: Sequence[set[int]]) -> tuple[KeyTable | None, bool]:
        """The first of the column sets of which there are not too many keys; whether they have yet to be read."""
        for wanted in attempts:
            grouped: dict[int, list[Column]] = {}
            for c in scan.columns:
                if self._variable(c.uid) in wanted:
                    grouped.setdefault(self._variable(c.uid), []).append(c)
            held = [c for same in grouped.values() for c in same]
            found: Sequence[tuple[LiteralValue, ...]] | None
            if isinstance(scan, Values):
                at = [scan.columns.index(c) for c in held]
                found = [tuple(row[i] for i in at) for row in scan.rows]
            else:
                request = KeysOf(scan.table, tuple(c.name for c in held), self._most())
                found = self.ctx.analysis.public.key_list(request)
                if found is None and not self.ctx.analysis.public.knows(request):
                    return None, True
            if found is not None:
                return by_variable(grouped, held, found, isinstance(scan, Scan)), False
        return None, False

    # --- items -----------------------------------------------------------------------------------------------------

    def _assigned(
        self, items: Sequence[Expr], tables: Sequence[KeyTable], missing: frozenset[int], names: dict[int, str]
    ) -> list[KeyPart] | None:
        found: list[KeyPart] = []
        left = dict(enumerate(items))
        unread = sorted(at for at, i in left.items() if columns_of(i) & missing)
        if unread:
            origin = _named(names, [left.pop(at) for at in unread])
            found.append(KeyPart(tuple(unread), (), None, True, origin, unread=True))
        for table in tables:
            here = [at for at, i in left.items() if columns_of(i) and columns_of(i) <= set(table.columns)]
            part = self._table_part({at: left[at] for at in here}, table, names) if here else None
            if part is not None:
                found.append(part)
                for at in here:
                    del left[at]
        for at, item in left.items():
            single = self._single(at, item)
            if single is None:
                return None
            found.append(single)
        return sorted(found, key=lambda p: p.positions)

    def _table_part(self, items: dict[int, Expr], table: KeyTable, names: dict[int, str]) -> KeyPart | None:
        read = frozenset(uid for i in items.values() for uid in columns_of(i))
        tables = _named(names, items.values())
        rows = table.project(read)
        listed = not tables and table.covers
        if not tables and len(items) == 1 and len(rows.columns) == 1:
            ((at, item),) = items.items()
            if isinstance(item, Column):
                return KeyPart((at,), (), _domain(rows), table.covers, (), listed=listed)
        try:
            compute: list[Computation] = [computation(i, self.env) for i in items.values()]
            keys = dict.fromkeys(
                tuple(f(values) for f in compute)
                for row in rows.rows
                for values in (dict(zip(rows.columns, row, strict=True)),)
            )
        except Unknown:
            return None
        kinds = [item.type.kind for item in items.values()]
        keys = {key: None for key in keys if all(map(_holds, kinds, key))}
        ordered = (
            sorted(keys, key=_order) if table.sort else sorted(keys, key=_nulls) if len(items) == 1 else list(keys)
        )
        return KeyPart(tuple(items), tuple(ordered), None, table.covers, tables, listed=listed)

    def _single(self, at: int, item: Expr) -> KeyPart | None:
        """Keys of one expression by the rules of its functions, without going through rows."""
        read = columns_of(item)
        env = {uid: self._value(uid) for uid in read}
        try:
            value = evaluate(item, env)
        except Rejected:
            return None
        domain = value.domain
        if domain is None and not isinstance(item, Column):
            domain = whole(value, self._most())
        if domain is None:
            return KeyPart((at,), (), None, False, (), unread=True) if read & self.unread else None
        own = [self._narrowed(uid) for uid in read]
        if domain.size > self._most() and own and not all(n.declared for n in own):
            return None  # the policy has no list of these, and one that nobody asked for is no reason to refuse
        covers = all(n.covers for n in own) and (domain.null or not isinstance(item, (Call, Cast)))
        return KeyPart((at,), (), domain, covers, (), listed=covers and bool(own))


def _named(names: dict[int, str], items: Iterable[Expr]) -> tuple[str, ...]:
    read = {uid for i in items for uid in columns_of(i)}
    return tuple(dict.fromkeys(name for uid, name in names.items() if uid in read))


def _domain(table: KeyTable) -> Domain:
    held = tuple(row[0] for row in table.rows)
    return Domain(tuple(v for v in held if v is not None), None in held)


def _holds(kind: Kind, value: LiteralValue) -> bool:
    """False for dates and times that Python has no value for: they arrive as text, and no row keeps such a key."""
    return not isinstance(value, str) or kind is Kind.VARCHAR


def _nulls(key: tuple[LiteralValue, ...]) -> bool:
    return key[0] is None


def _order(key: tuple[LiteralValue, ...]) -> tuple[tuple[bool, object], ...]:
    return tuple((v is None, "" if v is None else v) for v in key)
