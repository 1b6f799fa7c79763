"""What a stored view reads: the tables and files that its rows are made of, through other views and macros.

DuckDB's own parser says it (`json_serialize_sql`); nothing is bound and nothing is read. Where a name could mean
several relations, the view counts as reading all of them; where a text is not understood, all whose names stand in it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dpsql.engines.duckdb.files.parquet import Place, folded

Rows = Callable[[str], list[tuple[Any, ...]]]

_VIEWS = "SELECT database_name, schema_name, view_name, sql FROM duckdb_views() WHERE NOT internal"
_MACROS = "SELECT function_name, macro_definition FROM duckdb_functions() WHERE NOT internal"
NAME = r'(?:"(?:[^"]|"")*"|[^\s".(),]+)'
_BODY = re.compile(rf"CREATE (?:TEMP |TEMPORARY )?VIEW {NAME}(?:\.{NAME})* (?:\({NAME}(?:, ?{NAME})*\) )?AS ")
_PATH = re.compile(r"'((?:[^']|'')*[./](?:[^']|'')*)'")
_WORD = re.compile(r"\w+")
_BY_NAME = frozenset({"query", "query_table"})
"""Table functions whose argument names tables."""


@dataclass(slots=True)
class _Read:
    """What one text reads: names of tables, in their parts; names that WITH defines in it, which may be tables all the
    same; files; functions; and the words of what is not understood."""

    tables: set[tuple[str, ...]] = field(default_factory=set)
    defined: set[str] = field(default_factory=set)
    files: set[str] = field(default_factory=set)
    functions: set[str] = field(default_factory=set)
    words: set[str] = field(default_factory=set)


def reads_of(rows: Rows, relations: Sequence[Place]) -> Mapping[Place, tuple[str, ...]]:
    """For each relation what its rows are made of: itself first, and then, of a view, whatever it reads."""
    views = {(database, schema, name): sql for database, schema, name, sql in rows(_VIEWS) if sql}
    if not views:
        return {place: (identity(place),) for place in relations}
    macros: dict[str, _Read] = {}
    for name, sql in rows(_MACROS):
        _add(rows, sql or "", macros.setdefault(folded(name), _Read()))
    known = {place: _add(rows, _body(sql), _Read()) for place, sql in views.items()}
    return {place: tuple(dict.fromkeys(_bases(place, known, macros, relations))) for place in relations}


def identity(place: Place) -> str:
    """What a relation is called in `reads_of`."""
    return ".".join('"' + part.replace('"', '""') + '"' for part in place)


def file_identity(path: str) -> str:
    """What a file is called in `reads_of`."""
    return f"'{path if '://' in path else os.path.realpath(path)}'"


def _bases(
    start: Place, views: Mapping[Place, _Read], macros: Mapping[str, _Read], relations: Sequence[Place]
) -> Iterator[str]:
    seen: set[Place] = set()
    called: set[str] = set()
    places, reads = [start], list[_Read]()
    while places or reads:
        if places:
            place = places.pop()
            if place not in seen:
                seen.add(place)
                yield identity(place)
                reads += [views[place]] if place in views else []
            continue
        read = reads.pop()
        yield from map(file_identity, read.files)
        reads += [macros[name] for name in (read.functions | read.words) & macros.keys() - called]
        called |= read.functions | read.words
        places += [r for r in relations if folded(r[2]) in read.words]
        for name in read.tables:
            meant = [r for r in relations if _means(name, r)]
            places += meant
            if not meant and not (len(name) == 1 and folded(name[0]) in read.defined):
                yield file_identity(name[-1])  # FROM 'visits.csv'


def _means(name: tuple[str, ...], place: Place) -> bool:
    """Whether a name of one to three parts may stand for a relation. The first of two may be schema or database."""
    database, schema, table = map(folded, place)
    *above, last = map(folded, name)
    return last == table and all(part in (database, schema) for part in above)


def _body(sql: str) -> str:
    found = _BODY.match(sql)
    return sql if found is None else sql[found.end() :].rstrip().rstrip(";")


def _add(rows: Rows, sql: str, read: _Read) -> _Read:
    """Note what a query, or an expression, reads."""
    for text in (sql, f"SELECT {sql}"):
        quoted = text.replace("'", "''")
        ((found,),) = rows(f"SELECT json_serialize_sql('{quoted}')")
        tree = json.loads(found)
        if not tree["error"]:
            _walk(tree, read)
            return read
    read.words |= {folded(word) for word in _WORD.findall(sql)}
    read.files |= {path.replace("''", "'") for path in _PATH.findall(sql)}
    return read


def _walk(tree: object, read: _Read) -> None:
    todo = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, list):
            todo += node
        if not isinstance(node, dict):
            continue
        todo += node.values()
        match node.get("type"):
            case "BASE_TABLE":
                parts = (node.get("catalog_name"), node.get("schema_name"), node["table_name"])
                read.tables.add(tuple(part for part in parts if part))
            case "TABLE_FUNCTION":
                _called(node["function"], read)
            case "FUNCTION":
                read.functions.add(folded(node["function_name"]))
        if isinstance(node.get("cte_map"), dict):
            read.defined |= {folded(entry["key"]) for entry in node["cte_map"]["map"]}


def _called(function: Mapping[str, Any], read: _Read) -> None:
    """A table function: what stands in its arguments without a name are files, or names of tables."""
    name = folded(function.get("function_name", ""))
    given = function.get("arguments", ())
    arguments = [a.get("expression", a) for a in given if not a.get("name")]
    texts = [list(_texts(a)) for a in arguments if a.get("type") != "COMPARE_EQUAL"]
    if name in _BY_NAME:
        read.words |= {folded(word) for text in texts for t in text for word in _WORD.findall(t)}
    elif len(texts) == 1:
        read.files |= set(texts[0])
    elif any(texts):  # a file, and a table in it
        read.files.add(f"{name}://" + " ".join(t for text in texts for t in text))


def _texts(tree: object) -> Iterator[str]:
    todo = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, list):
            todo += node
        elif isinstance(node, dict):
            todo += node.values()
            if node.get("type") == "VALUE_CONSTANT":
                literal = node.get("literal", {})
                if literal.get("kind") == "STRING" and isinstance(literal.get("text"), str):
                    yield literal["text"]
