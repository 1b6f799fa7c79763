"""A first policy for a database: what the schema says, closed by default, and never a value that was seen.

Every table is private, and one row is its unit. Nobody is answered until a person has decided what is marked DECIDE
(`decisions.py`): whose rows these are, how much may be learned.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dpsql.core.ir.types import TIMESTAMP, Kind, SqlType, parse_type
from dpsql.core.policy.catalogue import Catalogue, CatalogueColumn, CatalogueTable
from dpsql.core.policy.derived import Derived
from dpsql.core.policy.server_address import names_server
from dpsql.policy.file.scalars import usable_name
from dpsql.policy.tools.struct_fields import fields

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WORDS = {"null", "true", "false"}
_MOST_PROPOSED = 50
"""Longest list of an ENUM that is proposed as a domain."""
_CLOCKS = "   # the clocks of UTC: name another zone. bounds: [first, last]"
_NOT_IN_NAME = re.compile(r"[^A-Za-z0-9_.-]+")


def draft_policy(
    catalogue: Catalogue,
    *,
    name: str = "draft",
    database: str | None = None,
    sources: Mapping[str, str] | None = None,
    partitions: Mapping[str, frozenset[str]] | None = None,
    missing: Mapping[str, Mapping[str, tuple[str, str]]] | None = None,
    single: Mapping[str, frozenset[str]] | None = None,
) -> str:
    """YAML text of a policy for these tables; valid, and it fails closed.

    name: the policy's name. database: path of the DuckDB file, as it is to stand in the policy. sources: table → its
    `source:` call, for tables that are files. partitions: table → the columns that are names of its folders.
    missing: table → column → the word that stands for no value in it, and the type that it has without. single: table →
    the columns that are different in each of its first rows.
    """
    seen = _Seen(partitions or {}, missing or {}, single or {})
    return "\n".join(_lines(catalogue, name, database, sources or {}, seen)) + "\n"


@dataclass(frozen=True, slots=True)
class _Seen:
    """What was seen besides names and types, as `draft_policy` takes it."""

    partitions: Mapping[str, frozenset[str]]
    missing: Mapping[str, Mapping[str, tuple[str, str]]]
    single: Mapping[str, frozenset[str]]


def _lines(
    catalogue: Catalogue,
    name: str,
    database: str | None,
    sources: Mapping[str, str],
    seen: _Seen,
) -> Iterator[str]:
    safe = _NOT_IN_NAME.sub("_", name).lstrip(".-")[:100] or "draft"
    yield "# yaml-language-server: $schema=./dpsql-policy.schema.json"
    yield "#   (an editor completes by it; it is made by  dpsql policy schema > dpsql-policy.schema.json)"
    if any(not source.startswith("read_parquet(") for source in sources.values()):
        yield "# Drafted from schemas; where a file has none, names and types were guessed from its first rows, and a"
        yield "#   name may be a row's value: read them before anybody else does. Go through the lines marked DECIDE."
    else:
        yield "# Drafted from the schema: no value of the data stands here. Go through the lines marked DECIDE."
    yield "version: 1"
    yield f"name: {_scalar(safe)}"
    yield "draft: true   # nobody is answered while this or a DECIDE stands here; --draft asks made-up rows"
    if database is not None:
        yield f"database: {_scalar(database)}"
    yield "privacy: {neighbours: add_remove, accountant: approx_dp}"
    yield "# DECIDE: whom do you protect? If it is a person with many rows, name the unit and give each of its tables"
    yield "#   unit: {column: <id>}   or   unit: {path: [{column: <key>, references: table(key)}]}   and"
    yield "#   max_rows_per_unit: <rows of a person that count>, or where each has one row  primary_key: [<id>]"
    yield "# units:"
    yield "#   person: {table: <table of persons>, key: <id>}"
    yield "# For each column say bounds (what may occur, not what does; SUM and AVG need them), domain (the public"
    yield "#   list of group keys, if there is one). Take out the columns nobody is to ask about."
    yield "#   Where nobody knows bounds, or the rows of an id:  bounds: search,  max_rows_per_unit: search"
    shown = [t for t in catalogue.tables if t.name in sources or t.source or not t.reads[1:]]
    yield "tables:" if any(usable_name(t.name) for t in shown) else "tables: {}"
    for table in catalogue.tables:
        source = sources.get(table.name)
        if source is None and table.reads[1:] and not table.source:
            yield from _view(table)
        else:
            yield from _table(table, catalogue, source or table.source or None, seen, not names_server(database))
    yield "# What a query costs that says nothing else."
    yield "defaults: {epsilon: 0.1, delta: 1e-8}"
    yield "# DECIDE: how much may ever be learned about one unit? The budget is never reset."
    yield "budgets:"
    yield "  total: {epsilon: 1, delta: 1e-7}"


def _view(table: CatalogueTable) -> Iterator[str]:
    """A view of other tables is left out: which unit its rows have, and how many of them one unit moves, it hides."""
    names = [base.rpartition('."')[2].rstrip('"') for base in table.reads[1:] if not base.startswith("'")]
    if len(names) < len(table.reads) - 1:
        yield f"  # {_scalar(table.name)}: a view of files, which a locked database does not open:"
        yield "  #   draft these files, or store the view's rows as a table."
        return
    yield f"  # {_scalar(table.name)}: a view of {', '.join(map(_scalar, names))}. Declare it only with the id"
    yield "  #   of these, and if all that an id has in it comes from rows of that id:  unit: {column: <id>}"


def _table(table: CatalogueTable, catalogue: Catalogue, source: str | None, seen: _Seen, makes: bool) -> Iterator[str]:
    """makes: whether columns may be made of others (`from`), which no server does."""
    if not usable_name(table.name):
        yield f"  # {_scalar(table.name)[:80]}: not a name a policy can hold"
        return
    known = {c.name: t for c in table.columns if usable_name(c.name) and (t := parse_type(c.type)) is not None}
    yield f"  {_scalar(table.name)}:"
    if source is not None:
        yield f"    source: {_scalar(source)}"
    partitions, missing = seen.partitions.get(table.name, frozenset()), seen.missing.get(table.name, {})
    yield from _missing_words(missing)
    single = [c for c in own_ids(table, catalogue) if c in seen.single.get(table.name, ())]
    ids = _candidates(table, known, catalogue, single)
    yield f"    # DECIDE: whose rows are these? One row is protected now.{_candidate_text(ids)}"
    if single:
        names = ", ".join(map(_scalar, single))
        yield f"    #   {names}: different in each of the first rows: as the unit it would protect one row"
    yield "    #   If the table holds nothing about anybody, replace the unit by  public: true"
    yield "    unit: {rows: 1}"
    if table.primary_key and all(c in known for c in table.primary_key):
        yield f"    primary_key: {_list(table.primary_key)}"
    unique = [key for key in table.unique if key and all(c in known for c in key)]
    if unique:
        yield f"    unique: [{', '.join(_list(key) for key in unique)}]"
    yield from _foreign_keys(table, catalogue, known)
    yield "    columns:" if known else "    columns: {}"
    keys = {c for key in (table.primary_key, *table.unique, *(k.columns for k in table.foreign_keys)) for c in key}
    for column in table.columns:
        primary = column.name in table.primary_key
        line = _column(column, known.get(column.name), primary, column.name in keys or not makes)
        yield f"{line}   # names of folders" if column.name in partitions else line
        yield from _fields(column, {c.name.casefold() for c in table.columns})


def _foreign_keys(table: CatalogueTable, catalogue: Catalogue, known: Mapping[str, SqlType]) -> Iterator[str]:
    lines = []
    for key in table.foreign_keys:
        target = catalogue.table(key.table)
        theirs = [] if target is None else [target.column(c) for c in key.references]
        mine = [known.get(c) for c in key.columns]
        same = len(mine) == len(theirs) and bool(mine)
        if same and all(
            a is not None and b is not None and parse_type(b.type) == a for a, b in zip(mine, theirs, strict=True)
        ):
            reference = f"{_reference_name(key.table)}({', '.join(_reference_name(c) for c in key.references)})"
            lines.append(f"      - {{columns: {_list(key.columns)}, references: {_scalar(reference)}}}")
    if lines:
        yield "    foreign_keys:"
        yield from lines


def _column(column: CatalogueColumn, type: SqlType | None, primary: bool, kept: bool) -> str:
    """kept: whether it has to stay what it is in the data."""
    if type is None:
        if not usable_name(column.name):
            return f"      # {_scalar(column.name)}: not a name a policy can hold"
        kind = re.split(r"[(\[]", column.type)[0].strip() or "unknown"
        if column.why:
            return f"      # {_scalar(column.name)}: queries cannot use {column.why}"
        return f"      # {_scalar(column.name)}: of type {kind}, which queries cannot use{_part(column, kind)}"
    if type.kind is Kind.TIMESTAMPTZ and not kept:  # which has no hours and days
        made = _scalar(str(Derived(column.name, zone="UTC")))
        return f"      {_scalar(column.name)}: {{from: {made}, type: timestamp}}{_CLOCKS}"
    parts = [f"type: {_scalar(type.name.lower())}"]
    if column.nullable == primary:
        parts.append(f"nullable: {'true' if column.nullable else 'false'}")
    return f"      {_scalar(column.name)}: {{{', '.join(parts)}}}{_undecided(type, column.enumerated)}"


def _undecided(type: SqlType, enumerated: tuple[str, ...] = ()) -> str:
    """What a person may say of a column of this type, as a comment behind its line."""
    match type.kind:
        case Kind.INTEGER | Kind.DECIMAL | Kind.DOUBLE:
            return "   # bounds: [lower, upper]"
        case Kind.DATE | Kind.TIMESTAMP:
            return "   # bounds: [first, last]"
        case Kind.VARCHAR:
            return f"   # {_proposed(enumerated)}"
        case Kind.LIST:
            return "   # max_length: n"
        case _:
            return ""


def _part(column: CatalogueColumn, kind: str) -> str:
    """How a part of a value is made a column."""
    if kind == "STRUCT" and any(fields(column.type)):
        return ", but its fields"
    name = _reference_name(column.name)
    made = {"STRUCT": f"{name}.field", "JSON": f"{name} ->> '$.field'"}.get(kind)
    return "" if made is None else f"; a field of it:  field: {{from: {_scalar(made)}, type: varchar}}"


def _fields(column: CatalogueColumn, taken: set[str]) -> Iterator[str]:
    """The fields of a STRUCT as columns; queries may write them as they do in the data."""
    for path, type in fields(column.type):
        name = "_".join((column.name, *path))
        while name.casefold() in taken:
            name += "_"
        taken.add(name.casefold())
        if usable_name(name):
            zone = "UTC" if type.kind is Kind.TIMESTAMPTZ else ""
            made, known = _scalar(str(Derived(column.name, path, zone=zone))), TIMESTAMP if zone else type
            line = f"      {_scalar(name)}: {{from: {made}, type: {_scalar(known.name.lower())}}}"
            yield line + (_CLOCKS if zone else _undecided(known))


def _proposed(values: tuple[str, ...]) -> str:
    """What a list of group keys may be; that of the type is for a person to make public: rows may have made it."""
    if not values:
        return "domain: [a, b]"
    if len(values) > _MOST_PROPOSED:
        return f"domain: [a, b]; its type lists {len(values)} values, which no answer shows unless they stand here"
    return f"domain: {_list(values)}   which is what its type lists; as a domain it is public"


def _missing_words(missing: Mapping[str, tuple[str, str]]) -> Iterator[str]:
    """What to add where a column is a text only because of a word."""
    for word in dict.fromkeys(word for word, _ in missing.values()):
        types = ", ".join(f"{_scalar(column)} {type_}" for column, (said, type_) in missing.items() if said == word)
        yield f"    # DECIDE: does {word} stand for no value? Then add  nullstr = ['', '{word}']  to the source, and"
        yield f"    #   write there and under columns:  {types}"


def own_ids(table: CatalogueTable, catalogue: Catalogue) -> list[str]:
    """Columns that look like an id, and that no other table refers to or has: they may be of a row alone."""
    others = [other for other in catalogue.tables if other is not table]
    elsewhere = {c.name.casefold() for other in others for c in other.columns}
    referred = any(key.table == table.name for other in others for key in other.foreign_keys)
    called = any(_called(c.name) in _names_of(table.name) for other in others for c in other.columns)
    kept = elsewhere | {c.casefold() for c in table.primary_key if referred or called}
    kept |= {c.casefold() for key in table.foreign_keys for c in key.columns}
    usable = {c.name for c in table.columns if usable_name(c.name) and (t := parse_type(c.type)) and t.kind in _IDS}
    return [name for name in _id_names(table, catalogue) if name in usable and name.casefold() not in kept]


def _id_names(table: CatalogueTable, catalogue: Catalogue) -> list[str]:
    """Keys, foreign keys, names that end in id, and those that are called like another table."""
    owners = [c.name for c in table.columns if _owner(c.name, table, catalogue) is not None]
    names = [*(c for key in table.foreign_keys for c in key.columns), *owners, *table.primary_key]
    return list(dict.fromkeys([*names, *(c.name for c in table.columns if c.name.casefold().endswith(_ID_ENDINGS))]))


def _candidates(
    table: CatalogueTable, known: Mapping[str, SqlType], catalogue: Catalogue, single: list[str]
) -> list[str]:
    """Columns that look like an id, as the unit of the table, of the type that the key of their table has."""
    owners = {c.name: owner for c in table.columns if (owner := _owner(c.name, table, catalogue)) is not None}
    found = []
    for name in (n for n in _id_names(table, catalogue) if n not in single):
        type_, theirs = known.get(name), owners.get(name)
        if type_ is not None and type_.kind in _IDS:
            as_ = "" if theirs in (None, type_) else f", as: {_scalar(str(theirs).lower())}"
            found.append(f"{{column: {_scalar(name)}{as_}}}")
    return found


_ID_ENDINGS = ("id", "key", "_no", "num", "number", "nr", "nr.", "nummer")
_IDS = (Kind.INTEGER, Kind.VARCHAR, Kind.UUID)


def _owner(name: str, table: CatalogueTable, catalogue: Catalogue) -> SqlType | None:
    """The type of the one key of the table that a column is called after: `user` or `user_id`, of `users`."""
    called = _called(name)
    for other in catalogue.tables:
        key = other.column(other.primary_key[0]) if len(other.primary_key) == 1 else None
        if other is not table and key is not None and called and called in _names_of(other.name):
            type_ = parse_type(key.type)
            return type_ if type_ is not None and type_.kind in _IDS else None
    return None


def _called(column: str) -> str:
    return column.casefold().removesuffix("id").rstrip("_")


def _names_of(table: str) -> tuple[str, str]:
    """What a column that refers to a table may be called after."""
    return table.casefold(), table.casefold().removesuffix("s")


def _candidate_text(ids: list[str]) -> str:
    return f" Or an id: {', '.join(ids[:6])}" if ids else ""


def _scalar(text: str) -> str:
    """A YAML scalar that reads back as this text; plain where that is safe."""
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    return '"' + "".join(_escape(c) for c in text) + '"'


def _escape(c: str) -> str:
    if c in '"\\':
        return "\\" + c
    return c if c.isprintable() and ord(c) < 0x10000 else f"\\U{ord(c):08x}"


def _list(names: tuple[str, ...]) -> str:
    return f"[{', '.join(_scalar(n) for n in names)}]"


def _reference_name(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else '"' + name.replace('"', '""') + '"'
