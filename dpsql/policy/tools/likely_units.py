"""Whose rows a table may hold: what names, types and first rows suggest, the likeliest first. A person decides."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from dpsql.core.ir.types import Kind, SqlType, parse_type
from dpsql.core.policy.catalogue import Catalogue, CatalogueColumn, CatalogueTable
from dpsql.policy.file.scalars import usable_name
from dpsql.policy.tools.yaml_words import reference, scalar


def _words(name: str) -> frozenset[str]:
    """The words in a name, each also in the singular and without the end of an id."""
    parts = [p for p in re.split(r"[^a-zäöüß]+", name.casefold()) if p]
    return frozenset({*parts, *(p.removesuffix("s") for p in parts), *(p.removesuffix("id") for p in parts)} - {""})


def _listed(words: str) -> frozenset[str]:
    return frozenset(words.split())


_PERSONS: Final = _listed(
    "person people patient customer client user household member employee student subject respondent participant"
    " citizen resident player passenger driver rider pupil teacher worker applicant donor subscriber visitor guest"
    " buyer traveller owner holder borrower insured policyholder contact individual human family voter tenant cust"
    " hh resp kunde patientin haushalt mitarbeiter schueler nutzer versicherte befragte mitglied uid pid ssn email"
    " account tailnum device vehicle aircraft panelist case"
)
"""Words for whom somebody protects."""
_THINGS: Final = _listed(
    "product item sku article store shop branch category type kind country region city state zip postal airport"
    " airline carrier department brand supplier part campaign coupon role status currency color year month week"
    " day hour produkt artikel filiale land ort plz nation warehouse location station course school hospital ward"
    " wave round flight manufacturer vendor hersteller"
)
"""Words for what is nobody."""
_EVENTS: Final = _listed(
    "order basket transaction trans invoice visit event session row line record trip ride call message payment"
    " request bestellung rechnung vorgang log entry index seq admission stay claim"
)
"""Words for what somebody has many of."""
_TIMES: Final = _listed("year month week day date wave round time period quarter jahr monat tag datum welle")
"""Words for when, as in the second column of a panel."""
_ENDINGS: Final = ("id", "key", "_no", "num", "number", "nr", "nr.", "nummer")
_NO_IDS: Final = _listed("paid unpaid prepaid valid invalid void bid grid covid solid avoid hybrid rapid")
_PERSON: Final = 4
"""How much more a word for a person counts than that an id stands in several tables."""
_KINDS: Final = (Kind.INTEGER, Kind.VARCHAR, Kind.UUID)
_MOST: Final = 4
"""Other ids of a table that are proposed."""
_MOST_OWN: Final = 8
"""Ids of a table that are looked at for being one unit's own."""


@dataclass(frozen=True, slots=True)
class FirstRows:
    """What the first rows of a table tell of columns that may be ids. single: no two rows share a value. whole: all
    are whole numbers. own: id → columns of which no two of its values share a value, though rows do."""

    single: frozenset[str] = frozenset()
    whole: frozenset[str] = frozenset()
    own: Mapping[str, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class UnitProposal:
    """means: whom it protects, in plain words. unit: what is protected; "": a row, or with `public` nobody.

    column: that holds its ids, or with `to` that refers to this key of another table. as_: their type, if another.
    limit: what stands below it about the rows of one. unique: the table and column of `to` that have to promise it.
    """

    means: str
    unit: str = ""
    column: str = ""
    to: str = ""
    as_: str = ""
    limit: str = ""
    unique: tuple[str, str] | None = None
    public: bool = False

    def line(self, of: str = "", as_: str = "") -> str:
        """As it stands in a table. of: the unit's name, where there are several."""
        if self.public:
            return "public: true"
        if not self.unit:
            return "unit: {rows: 1}"
        if self.to:
            return f"unit: {{path: [{{column: {scalar(self.column)}, references: {scalar(self.to)}}}]}}"
        of, as_ = (f"of: {scalar(of)}, " if of else ""), as_ or self.as_
        return f"unit: {{{of}column: {scalar(self.column)}{f', as: {scalar(as_)}' if as_ else ''}}}"


ROW: Final = UnitProposal(
    "one row alone: right where each row is another person; who has n rows is protected n times less"
)
NOBODY: Final = UnitProposal("nobody: everybody may see every row", public=True)
_LIMIT: Final = "max_rows_per_unit: search   # or how many rows of one count"


def proposals(
    catalogue: Catalogue, seen: Mapping[str, FirstRows], *, computing: bool = True
) -> dict[str, tuple[UnitProposal, ...]]:
    """Table → the units that it may have, the likeliest first, always among them a row, and nobody.

    computing: whether columns may be made of others.
    """
    tables = [t for t in catalogue.tables if usable_name(t.name)]
    found = {t.name: list(_ids(t, catalogue, seen.get(t.name, FirstRows()), computing)) for t in tables}
    likeliest = _likeliest(found)
    enough = _PERSON if any(i.score >= _PERSON for ids in found.values() for i in ids) else 0
    owned = {name for name, ids in found.items() if any(i.root == likeliest for i in ids)}
    made: dict[str, tuple[UnitProposal, ...]] = {}
    for table in tables:
        ids = sorted(found[table.name], key=lambda i: (i.root != likeliest, -i.score))
        own = [_of(i, table) for i in ids if i.score >= enough or i.root == likeliest]
        others = [_of(i, table) for i in ids if i.score < enough and i.root != likeliest]
        paths = [] if table.name in owned else list(_paths(table, catalogue, found, owned, likeliest))
        followed = [] if ids else list(_followed(table, catalogue))
        made[table.name] = (*paths, *own, ROW, *others[:_MOST], *followed, NOBODY)
    return made


def _followed(table: CatalogueTable, catalogue: Catalogue) -> Iterator[UnitProposal]:
    """The first column of a panel, whatever it is called: whom the second column, a time, follows."""
    first, then = (*table.columns, None, None)[:2]
    if first is None or then is None or not _words(then.name) & _TIMES or _words(first.name) & (_THINGS | _TIMES):
        return
    type_ = parse_type(first.type)
    if type_ is not None and type_.kind in _KINDS and usable_name(first.name):
        yield _of(_Id(first.name, type_, _root(table, first.name, catalogue), 0, single=False), table)


def own_columns(table: CatalogueTable, likely: Sequence[UnitProposal], seen: FirstRows) -> dict[str, list[str]]:
    """Each id that may be a unit → other ids that may be its own, such as a basket: no things, and none of a row."""
    ids = [c for c in id_columns(table) if not _words(c) & _THINGS and c not in seen.single][:_MOST_OWN]
    units = [p.column for p in likely if p.column and not p.to and p.column not in seen.single]
    return {unit: others for unit in units if (others := [c for c in ids if c != unit and not _words(c) & _PERSONS])}


def id_columns(table: CatalogueTable) -> list[str]:
    """Columns that may be ids, of which first rows are looked at."""
    return [c.name for c in table.columns if usable_name(c.name) and _may_be_id(c, table)]


@dataclass(frozen=True, slots=True)
class _Id:
    column: str
    type: SqlType
    root: str
    score: int
    single: bool
    as_: str = ""


def _ids(table: CatalogueTable, catalogue: Catalogue, seen: FirstRows, computing: bool) -> Iterator[_Id]:
    for column in table.columns:
        type_ = parse_type(column.type)
        if type_ is None or not usable_name(column.name) or not _may_be_id(column, table):
            continue
        if type_.kind is Kind.DOUBLE and not (computing and column.name in seen.whole):
            continue
        root = _root(table, column.name, catalogue)
        elsewhere = sum(
            any(_may_be_id(c, t) and _root(t, c.name, catalogue) == root for c in t.columns)
            for t in catalogue.tables
            if t.name != table.name
        )
        is_key = table.primary_key == (column.name,) or (column.name,) in table.unique
        single = column.name in seen.single or is_key
        words = _words(root)
        score = _PERSON if words & _PERSONS else -4 if words & _THINGS else -1 if words & _EVENTS else 1
        if single and not elsewhere and not words & _PERSONS:
            score = -2  # of a row alone
        theirs = _owner(column.name, table, catalogue)
        as_ = "" if theirs in (None, type_) or type_.kind is Kind.DOUBLE else str(theirs).lower()
        yield _Id(column.name, type_, root, score + min(2, elsewhere), single, as_)


def _likeliest(found: Mapping[str, list[_Id]]) -> str:
    """The id that most of the database is about: of the best name, in most tables."""
    scores, numbers = dict[str, int](), Counter[str]()
    for ids in found.values():
        for one in ids:
            scores[one.root] = max(scores.get(one.root, one.score), one.score)
        numbers.update({one.root for one in ids})
    good = [root for root, score in scores.items() if score >= 0]
    return max(good, key=lambda root: (scores[root], numbers[root]), default="")


def _of(one: _Id, table: CatalogueTable) -> UnitProposal:
    is_key = table.primary_key == (one.column,)
    if one.single:
        what = "in each row another one" if is_key else "in each of the first rows another one"
        limit = "" if is_key else "max_rows_per_unit: 1"
    else:
        what, limit = "all rows of one together", _LIMIT
    return UnitProposal(f"each {scalar(one.column)}: {what}", one.root, one.column, as_=one.as_, limit=limit)


def _paths(
    table: CatalogueTable, catalogue: Catalogue, found: Mapping[str, list[_Id]], owned: set[str], likeliest: str
) -> Iterator[UnitProposal]:
    """Through a key of a table that has the unit's id: declared, or a column of the same name that never repeats."""
    declared = set[str]()
    for key in table.foreign_keys:
        other = catalogue.table(key.table)
        if other is not None and other.name in owned and len(key.columns) == 1 and key.references == other.primary_key:
            declared |= set(key.columns)
            yield _path(key.columns[0], other.name, key.references[0], likeliest)
    for one in (i for i in found[table.name] if i.column not in declared):
        for other in (t for t in catalogue.tables if t.name in owned):
            target = next((i for i in found[other.name] if i.root == one.root and i.single), None)
            if target is not None and target.type.kind is one.type.kind is not Kind.DOUBLE:
                path = _path(one.column, other.name, target.column, likeliest)
                is_key = other.primary_key == (target.column,)
                yield path if is_key else replace(path, unique=(other.name, target.column))


def _path(column: str, table: str, key: str, unit: str) -> UnitProposal:
    return UnitProposal(
        f"each {unit}, found by {scalar(column)} in {scalar(table)}: all rows of one together",
        unit, column, f"{reference(table)}({reference(key)})", limit=_LIMIT,
    )  # fmt: skip


def _may_be_id(column: CatalogueColumn, table: CatalogueTable) -> bool:
    type_ = parse_type(column.type)
    if type_ is None or type_.kind not in (*_KINDS, Kind.DOUBLE):
        return False
    keys = {c for key in (table.primary_key, *(k.columns for k in table.foreign_keys)) for c in key}
    name = column.name.casefold()
    return column.name in keys or (name.endswith(_ENDINGS) and name not in _NO_IDS) or bool(_words(name) & _PERSONS)


def _root(table: CatalogueTable, column: str, catalogue: Catalogue) -> str:
    """What an id is an id of: `household` of household_id, `user` of users.id, `cust` of c_custkey."""
    for key in table.foreign_keys:
        other = catalogue.table(key.table)
        if key.columns == (column,) and key.references and other not in (None, table):
            return _root(other, key.references[0], catalogue)
    name = column.casefold()
    prefix = name.partition("_")[0] + "_"
    if len(prefix) <= 4 and all(c.name.casefold().startswith(prefix) for c in table.columns) and table.columns[1:]:
        name = name.removeprefix(prefix)
    for ending in _ENDINGS:
        if name.endswith(ending) and name not in _PERSONS:
            name = name.removesuffix(ending)
            break
    name = re.sub(r"[^a-z0-9]+", "_", name).strip("_")
    return name or table.name.casefold().rpartition(".")[2].removesuffix("s") or "person"


def _owner(name: str, table: CatalogueTable, catalogue: Catalogue) -> SqlType | None:
    """The type of the one key of the table that a column is called after: `user` or `user_id`, of `users`."""
    called = name.casefold().removesuffix("id").rstrip("_")
    for other in catalogue.tables:
        key = other.column(other.primary_key[0]) if len(other.primary_key) == 1 else None
        names = (other.name.casefold(), other.name.casefold().removesuffix("s"))
        if other is not table and key is not None and called and called in names:
            type_ = parse_type(key.type)
            return type_ if type_ is not None and type_.kind in _KINDS else None
    return None
