"""A question read: checked against the lists, its values put in, its columns named and typed; what DuckDB is asked."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Final

import sqlglot
from sqlglot import exp

from dpsql.frontend.catalogue.answer_names import output_name, outputs, type_of_cast
from dpsql.frontend.catalogue.answer_types import LISTED, ctes_around, result_of, type_of, written_out
from dpsql.frontend.catalogue.known import TEXT, CatalogueQuestion, KnownNames, NotListed, unknown_result
from dpsql.frontend.catalogue.writing import as_duckdb
from dpsql.frontend.parse import MAX_DEPTH, UNREADABLE, trees_of
from dpsql.frontend.text.spans import remember

MAX_LENGTH: Final = 30_000
"""Longest question that is read, in characters; the longest that a driver is known to ask has 23,000."""
MOST_SUBSCRIPTS: Final = 30
"""Of each, sqlglot looks at all of what stands before it: `x[1][1]…` takes time that grows with the cube."""
MOST_READ: Final = 500
"""Relations that a question may read, those of a WITH counted at each of its uses: nesting multiplies."""
MOST_JOINED: Final = 60
"""Texts that a question puts together."""
MOST_COLUMNS: Final = 1_664
"""Columns of an answer, as PostgreSQL has it."""
SCHEMAS = ("pg_catalog", "information_schema")


@dataclass(slots=True)
class Reading:
    known: KnownNames
    values: Sequence[str | None] | None
    parameters: dict[int, str] = field(default_factory=dict)


_ARRAYS_OF_OIDS = re.compile(r"::\s*(?:pg_catalog\.)?(?:oid|regtype)\s*\[\]", re.IGNORECASE)


@cache
def _words(constants: tuple[str, ...]) -> re.Pattern[str]:
    """What every statement about the schema has in it."""
    return re.compile(r"\bpg_|\binformation_schema\b|" + "|".join(rf"\b{re.escape(c)}\b" for c in constants))


def asks_catalogue(sql: str, constants: tuple[str, ...]) -> bool:
    """Whether a statement asks about the schema: it reads relations of the catalogue alone, or none, and calls one of
    the listed functions."""
    lowered = sql.lower()
    if not _words(constants).search(lowered):
        return False
    try:
        tree = parsed(sql)
    except NotListed:
        return bool(re.search(r"\bfrom\s+(pg_|information_schema\s*\.)", lowered))
    made = {cte.alias_or_name.lower() for cte in tree.find_all(exp.CTE)}
    tables = [t for t in tree.find_all(exp.Table) if isinstance(t.this, exp.Identifier) and t.name.lower() not in made]
    if tables:
        return all(t.db.lower() in SCHEMAS or (not t.db and t.name.lower().startswith("pg_")) for t in tables)
    return any(_function_name(n) for n in tree.walk())


def _function_name(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous | exp.CurrentDatabase | exp.CurrentUser | exp.SessionUser | exp.CurrentSchema
                      | exp.CurrentVersion | exp.CurrentSchemas | exp.CurrentRole | exp.CurrentCatalog)  # fmt: skip


def read_question(sql: str, known: KnownNames, values: Sequence[str | None] | None = None) -> CatalogueQuestion:
    """What to ask DuckDB. values: one text for each of `$1`, …; None while they are not known yet.

    Raises: NotListed.
    """
    tree = parsed(sql)
    rename_ctes(tree)
    reading = Reading(known, values)
    names = [output_name(e) for e in outputs(tree)]
    missing = qualify(tree, known)
    put_values(tree, reading)
    types = [type_of(e, known, tree) for e in outputs(tree)]
    if any(type_of(e, known, tree).endswith("[]") for array in tree.find_all(exp.Array) for e in array.expressions):
        raise NotListed("an array of arrays")
    columns = written_out(tree, names, types, known)
    if len(columns) > MOST_COLUMNS:
        raise NotListed(f"an answer of more than {MOST_COLUMNS:,} columns")
    needed = tuple(reading.parameters.get(i, TEXT) for i in range(1, max(reading.parameters, default=0) + 1))
    if is_empty(tree, known):
        return CatalogueQuestion(None, columns, needed, missing)
    return CatalogueQuestion(as_duckdb(tree, known), columns, needed, missing)


def rename_ctes(tree: exp.Expr) -> None:
    """A WITH gets a name that nothing in DuckDB has: outside of its scope it must not mean one of DuckDB's views."""
    made = {cte.alias_or_name.lower(): f"with {i}" for i, cte in enumerate(tree.find_all(exp.CTE))}
    for table in tree.find_all(exp.Table):
        new = made.get(table.name.lower()) if not table.db else None
        if new is not None:
            if not table.alias:
                table.set("alias", exp.TableAlias(this=exp.to_identifier(table.name.lower())))
            table.set("this", exp.to_identifier(new, quoted=True))
    for cte in tree.find_all(exp.CTE):
        cte.args["alias"].set("this", exp.to_identifier(made[cte.alias_or_name.lower()], quoted=True))


def parsed(sql: str) -> exp.Query:
    """The one query of a text that takes little time to work with, whatever it says. Raises NotListed."""
    if len(sql) > MAX_LENGTH:
        raise NotListed(f"a question of more than {MAX_LENGTH:,} characters")
    if sql.count("[") > MOST_SUBSCRIPTS:
        raise NotListed("a question of so many subscripts")
    # sqlglot reads `x::oid` and not `x::oid[]`; as arrays of numbers they are the same to whoever asks
    text = _ARRAYS_OF_OIDS.sub("::int8[]", sql) if "[]" in sql else sql
    reader = sqlglot.Dialect.get_or_raise("postgres")
    try:
        trees = trees_of(reader.tokenize(text), text, reader)
    except UNREADABLE:
        raise NotListed("this spelling") from None
    tree = trees[0] if len(trees) == 1 else None
    if not isinstance(tree, exp.Query):
        raise NotListed("anything but one SELECT")
    if remember(tree) > MAX_DEPTH:
        raise NotListed("a question that is nested so deeply")
    _require_few_relations(tree)
    _require_few_joined(tree)
    return tree


def _require_few_joined(tree: exp.Query) -> None:
    """What makes long texts of short ones: parts of each are counted, and `replace` makes a text twice as long at most.

    Each result is cut (`writing.py`), so that all of them, over the rows that DuckDB works on at one time, are within
    some hundred MB.
    """
    parts = 0
    for node in tree.walk():
        match node:
            case exp.DPipe():
                parts += 2
            case exp.Concat() | exp.Array():
                parts += sum(not isinstance(e, exp.Literal | exp.Cast) for e in node.expressions)
            case exp.Anonymous() if str(node.this).lower() in ("json_build_object", "quote_ident"):
                parts += len(node.expressions)
            case exp.Replace():
                old, new = node.expression, node.args.get("replacement")
                if not (isinstance(old, exp.Literal) and isinstance(new, exp.Literal)
                        and len(new.name) <= 2 * len(old.name)):  # fmt: skip
                    raise NotListed("this replace()")
                parts += 2
    if parts > MOST_JOINED:
        raise NotListed("a question that joins so many texts")


def _require_few_relations(tree: exp.Query) -> None:
    """Count what a question reads; a WITH counts one more than its relations at each use, itself within once."""
    within: dict[str, list[exp.Expr]] = {}
    for cte in tree.find_all(exp.CTE):
        within.setdefault(cte.alias_or_name.lower(), []).append(cte.this)
    found: dict[str, int] = {}

    def read(node: exp.Expr) -> int:
        total = 1
        for part in node.walk(prune=lambda n: isinstance(n, exp.With)):
            if isinstance(part, exp.Table):
                name = part.name.lower()
                total += of(name) if not part.db and name in within else 1
                if total > MOST_READ:
                    raise NotListed("a question that reads so many relations")
        return total

    def of(name: str) -> int:
        if name not in found:
            found[name] = 1
            found[name] = sum([read(query) for query in within[name]])
        return found[name]

    try:
        read(tree)
    except RecursionError:
        raise NotListed("a question that is nested so deeply") from None


def qualify(tree: exp.Expr, known: KnownNames) -> tuple[str, ...]:
    """Check every node against the lists, give relations their schemas, and take the schema from columns and calls.

    Returns: functions and relations of the catalogue that are not known here.
    """
    missing: list[str] = []
    made = {cte.alias_or_name.lower() for cte in tree.find_all(exp.CTE)}
    _read_calls_as_relations(tree, known)
    for node in list(tree.walk()):
        if not isinstance(node, LISTED):
            raise NotListed(node.sql("postgres")[:40])
        match node:
            case exp.Dot(this=exp.Identifier() as schema, expression=exp.Anonymous() as call) if (
                schema.name.lower() in SCHEMAS
            ):
                node.replace(call)
            case exp.Column() if node.db.lower() in SCHEMAS:
                node.set("db", None)
            case exp.Table() if isinstance(node.this, exp.Identifier):
                if not node.db and node.name.lower() in made:
                    continue
                place = (node.db.lower() or "pg_catalog", node.name.lower())
                if known.is_missing(place):
                    if place[0] == "pg_catalog" and not place[1].startswith("pg_"):
                        raise NotListed(f"the relation {'.'.join(place)}")
                    missing.append(".".join(place))
                if not node.alias:
                    node.set("alias", exp.TableAlias(this=exp.to_identifier(node.name.lower())))
                node.set("db", exp.to_identifier(place[0]))
                node.set("this", exp.to_identifier(place[1]))
            case exp.Table() if not isinstance(node.this, exp.Anonymous):
                node.set("db", None)
            case exp.Table():
                node.set("db", None)
                result_of(str(node.this.this).lower(), len(node.this.expressions), known)
            case exp.Anonymous():
                name, count = str(node.this).lower(), len(node.expressions)
                if name != "all":
                    result_of(name, count, known)
                if unknown_result(name) and count not in known.functions.get(name, {}) and name not in known.constants:
                    missing.append(f"{name}()")
    return tuple(dict.fromkeys(missing))


_CALLED_IN_FROM = {"pg_show_all_settings": "pg_settings"}


def _read_calls_as_relations(tree: exp.Expr, known: KnownNames) -> None:
    """A function of the catalogue in FROM that is not listed is a relation that says nothing; one has the settings.

    And `EXISTS (SELECT FROM …)` gets an item, which DuckDB asks for.
    """
    for node in tree.find_all(exp.Table):
        call = node.this
        if isinstance(call, exp.Dot) and call.this.name.lower() == "pg_catalog":
            call = call.expression
        name = str(call.this).lower() if isinstance(call, exp.Anonymous) else ""
        if name in _CALLED_IN_FROM or (unknown_result(name) and name not in known.functions):
            node.set("this", exp.to_identifier(_CALLED_IN_FROM.get(name, name)))
            node.set("db", exp.to_identifier("pg_catalog"))
            if not node.alias:
                node.set("alias", exp.TableAlias(this=exp.to_identifier(name)))
    for exists in tree.find_all(exp.Exists):
        if isinstance(exists.this, exp.Select) and not exists.this.expressions:
            exists.this.set("expressions", [exp.Literal.number(1)])


def put_values(tree: exp.Expr, reading: Reading) -> None:
    """Put values in place of `$n`, and note of which type each is: of its cast, or of what it is compared with."""
    for node in list(tree.find_all(exp.Parameter, exp.Placeholder)):
        number = int(node.this.name) if isinstance(node.this, exp.Literal) else 0
        if number < 1:
            raise NotListed("a parameter that is not $1, $2, …")
        parent = node.parent
        kind = type_of_cast(parent)[0] if isinstance(parent, exp.Cast) else TEXT
        if isinstance(parent, exp.EQ | exp.NEQ | exp.In):
            other = parent.expression if parent.this is node else parent.this
            kind = type_of(other, reading.known, tree) if isinstance(other, exp.Column) else TEXT
        reading.parameters.setdefault(number, kind)
        if reading.values is not None:
            if number > len(reading.values):
                raise NotListed(f"${number} without a value")
            value = reading.values[number - 1]
            node.replace(exp.null() if value is None else exp.Literal.string(value))
        else:
            node.replace(exp.null())


def is_empty(tree: exp.Expr, known: KnownNames) -> bool:
    """Whether an answer has no rows since it reads, below no aggregate and no outer join, a relation that has none."""
    match tree:
        case exp.Subquery():
            return is_empty(tree.this, known)
        case exp.Union():
            return is_empty(tree.this, known) and is_empty(tree.expression, known)
        case exp.Select():
            if not tree.args.get("group") and any(_aggregates(e) for e in tree.expressions):
                return False
            from_ = tree.args.get("from_")
            joins = tree.args.get("joins") or ()
            if from_ is None or any(j.side in ("RIGHT", "FULL") for j in joins):
                return False
            needed = [from_.this] + [j.this for j in joins if j.side != "LEFT"]
            ctes = {c.alias_or_name.lower(): c.this for c in ctes_around(tree)}
            return any(_no_rows(source, known, ctes) for source in needed)
    return False


def _no_rows(source: exp.Expr, known: KnownNames, ctes: Mapping[str, exp.Expr]) -> bool:
    if isinstance(source, exp.Table):
        if isinstance(source.this, exp.Identifier):
            inner = None if source.db else ctes.get(source.name.lower())
            place = (source.db, source.name)
            return place in known.empty or known.is_missing(place) if inner is None else is_empty(inner, known)
        return False
    return isinstance(source, exp.Subquery) and is_empty(source.this, known)


def _aggregates(item: exp.Expr) -> bool:
    return any(isinstance(n, exp.AggFunc) and n.find_ancestor(exp.Window, exp.Subquery) is None for n in item.walk())
