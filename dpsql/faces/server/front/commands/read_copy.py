"""COPY (query) TO STDOUT, in the form of now and in that of old versions."""

from __future__ import annotations

from dpsql.faces.server.front.commands.commands import Command, CopyOut, QueryCommand, Write
from dpsql.faces.server.front.commands.reader import Reader
from dpsql.faces.server.front.error_fields import ProtocolFault


def read_copy(found: Reader) -> Command:
    found.take()
    query = _copied(found)
    if not found.accept("TO"):
        if found.accept("FROM"):
            return Write("COPY FROM")
        raise found.wrong(found.peek())
    if not found.accept("STDOUT"):
        raise ProtocolFault("42501", "COPY TO a file or a program is not possible here", "COPY (query) TO STDOUT")
    return _with_options(found, query)


def _copied(found: Reader) -> QueryCommand:
    """A query in brackets, or a table with or without a list of columns."""
    if not found.accept("("):
        start = found.peek()
        table = found.dotted()
        end = found.last
        columns = "*"
        if found.accept("("):
            names, depth = found.last, 1
            while depth:
                depth += {"(": 1, ")": -1}.get(found.take().upper, 0)
            columns = found.text[names : found.last - 1]
        assert start is not None and table
        return QueryCommand(f"SELECT {columns} FROM {found.text[start.start : end]}", None)
    first = found.peek()
    depth, start_of = 1, found.last if first is None else first.start
    end_of = start_of
    while depth:
        token = found.take()
        depth += {"(": 1, ")": -1}.get(token.upper, 0)
        end_of = token.start
    return QueryCommand(found.text[start_of:end_of].rstrip(), start_of)


def _with_options(found: Reader, query: QueryCommand) -> CopyOut:
    given: dict[str, str] = {}
    found.accept("WITH")
    if found.accept("("):
        while True:
            name = found.name()
            token = found.peek()
            given[name] = "true"
            if token is not None and token.upper not in (",", ")"):
                given[name] = found.take().value
            if found.accept(")"):
                break
            if not found.accept(","):
                raise found.wrong(found.peek())
    else:  # the form of old versions: WITH CSV HEADER DELIMITER AS ','
        while word := found.one_of("CSV", "BINARY", "HEADER", "DELIMITER", "DELIMITERS", "NULL", "QUOTE", "ESCAPE"):
            if word in ("CSV", "BINARY"):
                given["format"] = word.lower()
            elif word == "HEADER":
                given["header"] = "true"
            else:
                found.accept("AS")
                given[word.lower().removesuffix("s")] = found.take().value
    found.end()
    return _copy_out(query, given)


def _copy_out(query: QueryCommand, given: dict[str, str]) -> CopyOut:
    format = given.pop("format", "text")
    csv = format == "csv"
    header = given.pop("header", "false") in ("true", "on", "1", "match")
    made = CopyOut(
        query, format, given.pop("delimiter", "," if csv else "\t"), given.pop("null", "" if csv else "\\N"), header,
        quote := given.pop("quote", '"'), given.pop("escape", quote),
    )  # fmt: skip
    if given.pop("encoding", "utf8").lower().replace("-", "") != "utf8":
        raise ProtocolFault("0A000", "COPY gives UTF-8 only")
    if given:
        raise ProtocolFault("0A000", f'COPY option "{next(iter(given))[:100]}" is not supported')
    if format not in ("text", "csv", "binary"):
        raise ProtocolFault("22023", f'COPY format "{format[:100]}" not recognized')
    if any(len(mark) != 1 or mark in "\r\n" for mark in (made.delimiter, made.quote, made.escape)):
        raise ProtocolFault("22023", "COPY delimiter, quote and escape are one character each")
    if format == "text" and (made.delimiter == "\\" or made.delimiter.isalnum() or made.delimiter == "."):
        raise ProtocolFault("22023", "this delimiter would be read as part of a value")
    if any(mark in made.null for mark in ("\r", "\n", made.delimiter)):
        raise ProtocolFault("22023", "COPY null must not hold a delimiter or the end of a line")
    return made
