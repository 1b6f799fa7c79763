"""How a CSV file is written, guessed from its first rows for a draft: options that say it, so that nothing guesses."""

from __future__ import annotations

import codecs
import contextlib
from typing import Any, Final, NamedTuple

import duckdb

from dpsql.core.policy.source import Option, Struct
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


class MissingWord(NamedTuple):
    """word: what stands for a missing value in a column. type: of the column, if it is read so."""

    word: str
    type: str


_MISSING: Final = ("NA", "N/A", "n/a", "NULL", "null", "None", "-", "?", ".")


def missing_words(path: str, options: Options) -> dict[str, MissingWord]:
    """Columns that these options read as texts, and that have another type if one of `_MISSING` is no value."""
    columns = dict(options).get("columns")
    texts = {name for name, type_ in columns.items if type_ == "VARCHAR"} if isinstance(columns, Struct) else set()
    said = tuple((name, str(value)) for name, value in options if name in ("delim", "encoding", "decimal_separator"))
    found: dict[str, MissingWord] = {}
    with start() as connection:
        for word in _MISSING if texts else ():
            with contextlib.suppress(duckdb.Error):
                for column in _sniffed(connection, path, said, f", nullstr = ['', '{word}']")["Columns"]:
                    name, type_ = str(column["name"]), str(column["type"])
                    if name in texts and type_ != "VARCHAR":
                        found.setdefault(name, MissingWord(word, type_))
    return found


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
