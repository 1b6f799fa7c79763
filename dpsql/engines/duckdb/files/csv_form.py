"""How a CSV file is written, guessed from its first rows for a draft: options that say it, so that nothing guesses."""

from __future__ import annotations

import codecs
import contextlib
from typing import Any, Final, NamedTuple

import duckdb

from dpsql.core.policy.source import Option, SourceCall, Struct
from dpsql.engines.duckdb.locked.connections import Connection, start

_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_COMMAS: tuple[tuple[tuple[str, str], ...], ...] = (
    (("decimal_separator", ","),),
    (("decimal_separator", ","), ("thousands", ".")),
)
_TIMES = ("%d.%m.%Y %H:%M:%S", "%d.%m.%Y %H:%M", "%d.%m.%Y, %H:%M")
"""Forms of times that DuckDB does not try by itself."""
_NONE = ("(empty)", "", None)

Options = tuple[tuple[str, Option], ...]


def csv_options(path: str) -> Options:
    """Options of `read_csv` for this file, its columns and their types among them; none if DuckDB makes no sense of it.

    Numbers have a decimal comma if more columns are numbers then, and none has a decimal point. Times are written as
    in `_TIMES` if more columns are times then.
    """
    with start() as connection:
        for encoding in _encodings(path):
            with contextlib.suppress(duckdb.Error):
                plain = _sniffed(connection, path, encoding)
                found, said = plain, encoding
                for more in _COMMAS if plain["Delimiter"] != "," and "DOUBLE" not in _types(plain) else ():
                    other = _sniffed(connection, path, (*encoding, *more))
                    if _numbers(other) > _numbers(found):
                        found, said = other, (*encoding, *more)
                for form in _TIMES if "VARCHAR" in _types(found) else ():
                    other = _sniffed(connection, path, (*said, ("timestampformat", form)))
                    if _types(other).count("TIMESTAMP") > _types(found).count("TIMESTAMP"):
                        found = {**other, "TimestampFormat": form}
                return _as_options(found, said)
    return ()


class MissingWords(NamedTuple):
    """options: of the file, with `nullstr`. words: that stand for no value. columns: that are texts only because
    of them, with the types that they have without."""

    options: Options
    words: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]


_MISSING: Final = ("NA", "N/A", "n/a", "NULL", "null", "None", "-", "?", ".", "k.A.", "NaN")
_FIRST: Final = 20_000
_FEW: Final = 5
"""Words of a column that are no numbers; and how often each stands in the first rows at least, to be named."""
_NUMBER: Final = "[-+]?[0-9][0-9 .,]*([eE][-+]?[0-9]+)?"


def missing_words(path: str, options: Options) -> MissingWords | None:
    """What to read as no value so that columns of numbers, dates and truth are none of texts; None: nothing.

    Those of `_MISSING` that a text column holds, and the few words of a column whose other texts are numbers.
    """
    columns = dict(options).get("columns")
    texts = [name for name, type_ in columns.items if type_ == "VARCHAR"] if isinstance(columns, Struct) else []
    if not texts or not isinstance(columns, Struct):
        return None
    as_texts = Struct(tuple((name, "VARCHAR") for name, _ in columns.items))
    call = SourceCall("read_csv", (path,), (*((n, v) for n, v in options if n != "columns"), ("columns", as_texts)))
    said = tuple((name, str(value)) for name, value in options if name in ("delim", "encoding", "decimal_separator"))
    with start() as connection, contextlib.suppress(duckdb.Error):
        connection.execute(f"CREATE TEMP TABLE g AS SELECT * FROM {call.sql()} LIMIT {_FIRST}")
        words = list(dict.fromkeys(word for text in texts for word in _words(connection, text)))
        if words:
            listed = ", ".join("'" + word.replace("'", "''") + "'" for word in ("", *words))
            found = _sniffed(connection, path, said, f", nullstr = [{listed}]")["Columns"]
            types = {str(column["name"]): str(column["type"]) for column in found}
            changed = tuple((n, types[n]) for n in texts if types.get(n, "VARCHAR") != "VARCHAR")
            new = Struct(tuple((n, dict(changed).get(n, type_)) for n, type_ in columns.items))
            rest = tuple((n, v) for n, v in options if n != "columns")
            made = MissingWords((*rest, ("nullstr", ("", *words)), ("columns", new)), tuple(words), changed)
            return made if changed else None
    return None


def _words(connection: Connection, column: str) -> list[str]:
    """Texts of a column that may stand for no value."""
    name = '"' + column.replace('"', '""') + '"'
    missing = ", ".join(f"'{word}'" for word in _MISSING)
    number = f"regexp_full_match({name}, '{_NUMBER}')"
    found = connection.execute(f"SELECT COUNT(*) FILTER ({number}), COUNT({name}) FROM g WHERE {name} <> ''").fetchall()
    numbers, texts = found[0]
    of_missing = f"SELECT DISTINCT {name} FROM g WHERE {name} IN ({missing}) ORDER BY 1"
    words = [str(word) for (word,) in connection.execute(of_missing).fetchall()]
    if 2 * numbers >= texts:
        others = f"SELECT {name}, COUNT(*) FROM g WHERE {name} <> '' AND NOT {number}"
        rows = connection.execute(f"{others} GROUP BY 1 ORDER BY 1 LIMIT {_FEW + 1}").fetchall()
        if len(rows) <= _FEW and all(n >= _FEW or word in _MISSING for word, n in rows):
            words += [str(word) for word, _ in rows]
    return words


def _encodings(path: str) -> list[tuple[tuple[str, str], ...]]:
    head = b""
    with contextlib.suppress(OSError), open(path, "rb") as file:
        head = file.read(2)
    if head in _UTF_16:
        return [(("encoding", "utf-16"),)]
    return [(), (("encoding", "latin-1"),)]


def _sniffed(connection: Connection, path: str, options: tuple[tuple[str, str], ...], more: str = "") -> dict[str, Any]:
    said = more + "".join(f", {name} = '{value}'" for name, value in options)
    found = connection.execute(f"SELECT * FROM sniff_csv(?{said})", [path])
    names = [str(column[0]) for column in found.description or []]
    return dict(zip(names, found.fetchall()[0], strict=True))


def _types(found: dict[str, Any]) -> list[str]:
    return [str(column["type"]) for column in found["Columns"]]


def _numbers(found: dict[str, Any]) -> int:
    return sum(type_ in ("BIGINT", "DOUBLE") for type_ in _types(found))


def _as_options(found: dict[str, Any], given: tuple[tuple[str, str], ...]) -> Options:
    """Quotes are left at what is usual: that the first rows have none says nothing of the others."""
    options: list[tuple[str, Option]] = [("auto_detect", False), ("header", bool(found["HasHeader"]))]
    options.append(("delim", str(found["Delimiter"])))
    for name, key, usual in (("quote", "Quote", '"'), ("escape", "Escape", '"'), ("comment", "Comment", "")):
        if found[key] not in (*_NONE, usual):
            options.append((name, str(found[key])))
    if found["SkipRows"]:
        options.append(("skip", int(found["SkipRows"])))
    for name, key in (("dateformat", "DateFormat"), ("timestampformat", "TimestampFormat")):
        if found[key] not in _NONE:
            options.append((name, str(found[key])))
    columns = Struct(tuple((str(column["name"]), str(column["type"])) for column in found["Columns"]))
    return (*options, *given, ("columns", columns))
