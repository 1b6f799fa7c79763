"""A first policy for a database: what the schema says, closed by default, and never a value that was seen.

Every table is private, with the likeliest unit (`likely_units.py`). Nobody is answered until a person has decided what
is marked DECIDE (`decisions.py`): whose rows these are, how much may be learned.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from dpsql.core.ir.types import TIMESTAMP, VARCHAR, Kind, SqlType, parse_type
from dpsql.core.policy.catalogue import Catalogue, CatalogueColumn, CatalogueTable
from dpsql.core.policy.derived import Derived
from dpsql.core.policy.server_address import names_server
from dpsql.policy.file.scalars import usable_name
from dpsql.policy.tools.likely_units import FirstRows, UnitProposal, id_columns, proposals
from dpsql.policy.tools.yaml_words import listing, reference, scalar

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
    told: Mapping[str, Sequence[str]] | None = None,
    seen: Mapping[str, FirstRows] | None = None,
    decided: Decided | None = None,
) -> str:
    """YAML text of a policy for these tables; valid, and nobody is answered under it while a decision is open.

    name: the policy's name. database: path of the DuckDB file, as it is to stand in the policy. sources: table → its
    `source:` call, for tables that are files. partitions: table → the columns that are names of its folders.
    told: table → lines about how its file is read. seen: table → what its first rows tell. decided: already, by a
    person.
    """
    drafted = _Drafted(
        catalogue, database, sources or {}, partitions or {}, told or {}, seen or {}, decided or Decided()
    )
    return "\n".join(drafted.lines(name)) + "\n"


def drafted_tables(catalogue: Catalogue, sources: Mapping[str, object]) -> list[CatalogueTable]:
    """Those of which a person has to say whose rows they are: views of others are left out."""
    return [t for t in catalogue.tables if usable_name(t.name) and not _is_view(t, sources)]


def _is_view(table: CatalogueTable, sources: Mapping[str, object]) -> bool:
    return bool(table.name not in sources and table.reads[1:] and not table.source)


@dataclass(frozen=True, slots=True)
class Decided:
    """What a person has said: units: table → its unit. epsilon: of the budget. Empty: nothing yet."""

    units: Mapping[str, UnitProposal] = field(default_factory=dict)
    epsilon: str = ""


@dataclass(frozen=True, slots=True)
class _Drafted:
    catalogue: Catalogue
    database: str | None
    sources: Mapping[str, str]
    partitions: Mapping[str, frozenset[str]]
    told: Mapping[str, Sequence[str]]
    seen: Mapping[str, FirstRows]
    decided: Decided

    def lines(self, name: str) -> Iterator[str]:
        computing = not names_server(self.database)
        tables = drafted_tables(self.catalogue, self.sources)
        likely = proposals(self.catalogue, self.seen, computing=computing)
        chosen = {t.name: self.decided.units.get(t.name, likely[t.name][0]) for t in tables}
        units = _unit_names(chosen)
        promised = [(p.unique, t in self.decided.units) for t, p in chosen.items() if p.unique is not None]
        unique = {key: all(said for other, said in promised if other == key) for key, _ in promised}
        is_open = set(chosen) - set(self.decided.units) or not self.decided.epsilon
        yield "# yaml-language-server: $schema=./dpsql-policy.schema.json"
        yield "#   (an editor completes by it; it is made by  dpsql policy schema > dpsql-policy.schema.json)"
        if any(not source.startswith("read_parquet(") for source in self.sources.values()):
            yield "# Made from schemas; where a file has none, names and types were guessed from its first rows, and a"
            yield "#   name may be a row's value: read them before anybody else does."
        else:
            yield "# Made from the schema: no value of the data stands here."
        yield "version: 1"
        yield f"name: {scalar(_NOT_IN_NAME.sub('_', name).lstrip('.-')[:100] or 'draft')}"
        if is_open:
            yield "draft: true   # nobody is answered while this stands here: take it out when all is decided"
        yield "search: auto   # a part of a query's ε finds limits and bounds that nobody declares; allow: if it asks"
        if self.database is not None:
            yield f"database: {scalar(self.database)}"
        if units:
            yield f"units: {{{', '.join(f'{scalar(unit)}: {{}}' for unit in units.values())}}}"
        yield "# unit: {column: id} protects all rows of one id together; {rows: 1} one row alone: who has n rows is"
        yield "#   protected n times less. A table about nobody says  public: true  there: everybody may see every row."
        if len({*units, *(t for t, p in chosen.items() if not p.unit and not p.public)}) > 1:
            yield "#   Somebody who is in tables of several units has a budget in each: give them one where you can."
        yield "# Of each column say bounds where they are known (what may occur, not what does; others are searched)"
        yield "#   and domain (the public list of group keys, if any). Take out the columns nobody is to ask about."
        yield "tables:" if tables else "tables: {}"
        for table in self.catalogue.tables:
            if _is_view(table, self.sources):
                yield from _view(table)
            elif table.name not in chosen:
                yield f"  # {scalar(table.name)[:80]}: not a name a policy can hold"
            else:
                yield from self._table(table, chosen, likely[table.name], units, unique, computing)
        yield "# What a query costs that says nothing else."
        yield "defaults: {epsilon: 0.1, delta: 1e-8}"
        yield "# All that may ever be learned about one unit, never reset."
        yield "budgets:"
        mark = "" if self.decided.epsilon else "   # DECIDE: how much? 1 is careful, 3 is usual, 10 is much"
        yield f"  total: {{epsilon: {self.decided.epsilon or 1}, delta: 1e-7}}{mark}"

    def _table(
        self,
        table: CatalogueTable,
        chosen: Mapping[str, UnitProposal],
        likely: Sequence[UnitProposal],
        units: Mapping[str, str],
        unique: Mapping[tuple[str, str], bool],
        computing: bool,
    ) -> Iterator[str]:
        unit, is_open = chosen[table.name], table.name not in self.decided.units
        known = {c.name: t for c in table.columns if usable_name(c.name) and (t := parse_type(c.type)) is not None}
        held = {c for key in (table.primary_key, *table.unique, *(k.columns for k in table.foreign_keys)) for c in key}
        yield f"  {scalar(table.name)}:"
        if source := self.sources.get(table.name) or table.source:
            yield f"    source: {scalar(source)}"
        yield from (f"    # {line}" for line in self.told.get(table.name, ()))
        line = unit.line(
            units[unit.unit] if units and len(units) > 1 and unit.unit else "", self._as(unit, chosen, known)
        )
        yield f"    {line}" + (f"   # DECIDE: who is protected? {unit.means}" if is_open else "")
        if is_open:
            yield f"    #   or  {',  '.join(_short(p) for p in likely if p is not unit)}"
        if unit.limit:
            yield f"    {unit.limit}"
        own = self.seen.get(table.name, FirstRows()).own.get(unit.column, ()) if not unit.to else ()
        if names := [c.name for c in table.columns if c.name in own]:
            yield f"    belongs_to_unit: {listing(names)}   # in the first rows no two {unit.unit} ids share one:"
            yield f"    #   averages over  GROUP BY {reference(names[0])}  need it; no noise rests on it"
        if not unit.public and not unit.to and (not unit.unit or table.primary_key != (unit.column,)):
            yield from _grows(unit, known, held, computing)
        if table.primary_key and all(c in known for c in table.primary_key):
            yield f"    primary_key: {listing(table.primary_key)}"
        keys = [key for key in table.unique if key and all(c in known for c in key)]
        said = {column: is_said for (name, column), is_said in unique.items() if name == table.name}
        if keys or said:
            mark = "" if all(said.values()) else f"   # DECIDE: is each {' and '.join(said)} in one row, now and later?"
            yield f"    unique: [{', '.join(listing(key) for key in (*keys, *((c,) for c in said)))}]{mark}"
        yield from _foreign_keys(table, self.catalogue, known)
        yield "    columns:" if known else "    columns: {}"
        ids = id_columns(table)
        for column in table.columns:
            if column.name == unit.column and known[column.name].kind is Kind.DOUBLE:
                made = scalar(str(Derived(column.name)))
                yield f"      {scalar(column.name)}: {{from: {made}, type: bigint}}   # ids that are stored as DOUBLE"
                continue
            primary = column.name in table.primary_key
            line = _column(column, known.get(column.name), primary, column.name in held or not computing)
            line = line.partition("   # bounds")[0] if column.name in ids else line
            is_folder = column.name in self.partitions.get(table.name, ())
            yield f"{line}   # names of folders" if is_folder else line
            yield from _fields(column, {c.name.casefold() for c in table.columns})

    def _as(self, unit: UnitProposal, chosen: Mapping[str, UnitProposal], known: Mapping[str, SqlType]) -> str:
        """The type of the unit's ids in other tables, where they are texts here and no texts there."""
        if not unit.unit or unit.to or known[unit.column].kind is not Kind.VARCHAR:
            return ""
        for name, other in chosen.items():
            table = self.catalogue.table(name)
            column = None if table is None or other.unit != unit.unit or other.to else table.column(other.column)
            type_ = None if column is None else parse_type(column.type)
            if type_ is not None and type_.kind is not Kind.VARCHAR:
                return "bigint" if type_.kind is Kind.DOUBLE else type_.name.lower()
        return ""


def _grows(unit: UnitProposal, known: Mapping[str, SqlType], held: Collection[str], computing: bool) -> Iterator[str]:
    """As a comment: that rows come in day by day, and keep their day, no schema tells."""
    days = [n for n, t in known.items() if t.kind is Kind.DATE and n not in held]
    times = [n for n, t in known.items() if t.kind is Kind.TIMESTAMP and computing and n not in held]
    if not days and not times:
        return
    by = days[0] if days else "day"
    while not days and by in known:
        by += "_"
    yield "    # If rows come in day by day and keep their day, a dashboard can be refreshed every day, for ever:"
    yield "    #   budgets: {each_period: {epsilon: 1}}  in place of total"
    yield f"    #   grows: {{by: {reference(by)}, every: day, from: YYYY-MM-DD}}"
    if unit.unit:
        yield f"    #   unit: {{of: {_per_day(unit)}, column: {reference(unit.column)}, per: period}}"
    if not days:
        made = f"{{type: date, from: {scalar(f'CAST({reference(times[0])} AS DATE)')}}}"
        yield f"    #   columns: {{{reference(by)}: {made}, …}}"


def _per_day(unit: UnitProposal) -> str:
    return reference(f"{unit.unit}_day")


def _short(proposal: UnitProposal) -> str:
    return proposal.line().removeprefix("unit: ")


def _unit_names(chosen: Mapping[str, UnitProposal]) -> dict[str, str]:
    """What each unit with an id is called; a table whose rows are protected one by one has its own name."""
    rows = {name.casefold() for name, p in chosen.items() if not p.unit and not p.public}
    found = dict.fromkeys(p.unit for p in chosen.values() if p.unit)
    return {unit: f"{unit}_id" if unit in rows else unit for unit in found}


def _view(table: CatalogueTable) -> Iterator[str]:
    """A view of other tables is left out: which unit its rows have, and how many of them one unit moves, it hides."""
    names = [base.rpartition('."')[2].rstrip('"') for base in table.reads[1:] if not base.startswith("'")]
    if len(names) < len(table.reads) - 1:
        yield f"  # {scalar(table.name)}: a view of files, which a locked database does not open:"
        yield "  #   draft these files, or store the view's rows as a table."
        return
    yield f"  # {scalar(table.name)}: a view of {', '.join(map(scalar, names))}. Declare it only with the id"
    yield "  #   of these, and if all that an id has in it comes from rows of that id:  unit: {column: <id>}"


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
            to = f"{reference(key.table)}({', '.join(reference(c) for c in key.references)})"
            lines.append(f"      - {{columns: {listing(key.columns)}, references: {scalar(to)}}}")
    if lines:
        yield "    foreign_keys:"
        yield from lines


def _column(column: CatalogueColumn, type: SqlType | None, primary: bool, kept: bool) -> str:
    """kept: whether it has to stay what it is in the data."""
    if type is None:
        if not usable_name(column.name):
            return f"      # {scalar(column.name)}: not a name a policy can hold"
        kind = re.split(r"[(\[]", column.type)[0].strip() or "unknown"
        if column.why:
            return f"      # {scalar(column.name)}: queries cannot use {column.why}"
        return f"      # {scalar(column.name)}: of type {kind}, which queries cannot use{_part(column, kind)}"
    if type.kind is Kind.TIMESTAMPTZ and not kept:  # which has no hours and days
        made = scalar(str(Derived(column.name, zone="UTC")))
        return f"      {scalar(column.name)}: {{from: {made}, type: timestamp}}{_CLOCKS}"
    parts = [f"type: {scalar(type.name.lower())}"]
    if column.nullable == primary:
        parts.append(f"nullable: {'true' if column.nullable else 'false'}")
    return f"      {scalar(column.name)}: {{{', '.join(parts)}}}{_hint(type, column.enumerated)}"


def _hint(type: SqlType, enumerated: tuple[str, ...] = ()) -> str:
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
    if column.type.endswith("]"):
        return "; it is a list of them: store each element as a row of another table"
    if kind == "STRUCT" and any(type for _, type in fields(column.type)):
        return ", but its fields"
    name = reference(column.name)
    made = {"STRUCT": f"{name}.field", "JSON": f"{name} ->> '$.field'"}.get(kind)
    return "" if made is None else f"; a field of it:  field: {{from: {scalar(made)}, type: varchar}}"


def _fields(column: CatalogueColumn, taken: set[str]) -> Iterator[str]:
    """The fields of a STRUCT as columns; queries may write them as they do in the data."""
    for path, type in fields(column.type):
        if type is None:
            yield f"      # {scalar('.'.join((column.name, *path)))}: of a type that queries cannot use"
            continue
        name = "_".join((column.name, *path))
        while name.casefold() in taken:
            name += "_"
        taken.add(name.casefold())
        if usable_name(name):
            zone = "UTC" if type.kind is Kind.TIMESTAMPTZ else ""
            made, known = scalar(str(Derived(column.name, path, zone=zone))), TIMESTAMP if zone else type
            line = f"      {scalar(name)}: {{from: {made}, type: {scalar(known.name.lower())}}}"
            yield line + (_CLOCKS if zone else _hint(known))


def _proposed(values: tuple[str, ...]) -> str:
    """What a list of group keys may be; that of the type is for a person to make public: rows may have made it."""
    if not values:
        return "domain: [a, b]"
    if len(values) > _MOST_PROPOSED:
        return f"domain: [a, b]; its type lists {len(values)} values, which no answer shows unless they stand here"
    return f"domain: {listing(values)}   which is what its type lists; as a domain it is public"


_FIELD = re.compile(r'("(?:[^"]|"")+"|[^\s(),"\']+) (.+)', re.DOTALL)
_TOKEN = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|.""", re.DOTALL)
_DEEPEST = 5


def fields(type: str, depth: int = 0) -> Iterator[tuple[tuple[str, ...], SqlType | None]]:
    """Each field that is no STRUCT itself, by its path, with its type (of an ENUM VARCHAR); None: no policy has it."""
    if not (type.startswith("STRUCT(") and type.endswith(")")) or depth == _DEEPEST:
        return
    for part in _split(type[len("STRUCT(") : -1]):
        found = _FIELD.fullmatch(part.strip())
        if found is None:
            continue
        name = found[1][1:-1].replace('""', '"') if found[1].startswith('"') else found[1]
        known = VARCHAR if re.fullmatch(r"ENUM\(.*\)", found[2], re.DOTALL) else parse_type(found[2])
        if known is not None or not found[2].startswith("STRUCT(") or not found[2].endswith(")"):
            yield (name,), known
        for path, inner in fields(found[2], depth + 1):
            yield (name, *path), inner


def _split(text: str) -> Iterator[str]:
    """The parts between the commas that stand in no brackets and no quotes."""
    part, open_ = "", 0
    for token in _TOKEN.findall(text):
        open_ += (token == "(") - (token == ")")
        if token == "," and open_ == 0:
            yield part
            part = ""
        else:
            part += token
    yield part
