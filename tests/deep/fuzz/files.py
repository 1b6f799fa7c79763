"""Damage to SQLite files, written as a script: one edit a line, and whatever line cannot be done is left out.

    flip FILE BIT            one bit                       cut FILE LENGTH      what lies behind this byte
    set FILE AT HEX          bytes written over            add FILE HEX         bytes at the end
    zero FILE PAGE           a page of 512 bytes           put FILE HEX         in place of all
    copy FILE FROM TO        one page over another         remove FILE          the file itself
    sql STATEMENT            run in the main file, past its triggers, which are put back
    schema STATEMENT         run in the main file, and whatever it does to triggers and tables stays

Numbers are taken modulo the length of the file. FILE is a name that the target gives: the main file comes first.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from random import Random

PAGE = 512
HEX = ("", "00", "ff", "0a0b", "00" * 16, "ff" * 40, "53514c69746520666f726d6174203300", "7b7d", "5b5d", "6e756c6c")


def apply(line: str, files: Mapping[str, Path]) -> str | None:
    """Do one edit. Returns the name of the file that was edited; None if the line says nothing that can be done."""
    word, _, rest = line.partition(" ")
    main = next(iter(files))
    if word in ("sql", "schema"):
        return main if files[main].exists() and _execute(files[main], rest, word == "sql") else None
    name, *arguments = rest.split(" ")
    if name not in files:
        return None
    try:
        return name if _edit(word, files[name], arguments) else None
    except (ValueError, IndexError, FileNotFoundError):
        return None


def _edit(word: str, path: Path, arguments: Sequence[str]) -> bool:
    if word == "put":
        path.write_bytes(bytes.fromhex(arguments[0] if arguments else ""))
        return True
    if word == "remove":
        path.unlink()
        return True
    data = bytearray(path.read_bytes())
    size, pages = max(1, len(data)), max(1, len(data) // PAGE)
    numbers = [abs(int(text[:9])) for text in arguments[: 2 if word == "copy" else 1]]
    match word:
        case "flip":
            at = numbers[0] % (8 * size)
            data[at // 8] ^= 1 << at % 8
        case "set":
            new, at = bytes.fromhex(arguments[1]), numbers[0] % size
            data[at : at + len(new)] = new
        case "cut":
            del data[numbers[0] % size :]
        case "add":
            data += bytes.fromhex(arguments[0])
        case "zero":
            at = numbers[0] % pages * PAGE
            data[at : at + PAGE] = bytes(PAGE)
        case "copy":
            source, to = (number % pages * PAGE for number in numbers)
            data[to : to + PAGE] = data[source : source + PAGE]
        case _:
            return False
    path.write_bytes(data)
    return True


def _execute(path: Path, statement: str, keep_triggers: bool) -> bool:
    """Run one statement; False if SQLite refuses it. No other file can be reached from it."""
    with closing(sqlite3.connect(path, isolation_level=None, timeout=0.1)) as connection:
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 1_000_000)
        connection.set_progress_handler(lambda: 1, 1_000_000)
        try:
            triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
            for name, _ in triggers if keep_triggers else ():
                connection.execute(f'DROP TRIGGER "{name}"')
            try:
                connection.execute(statement).fetchall()
            finally:
                for _, sql in triggers if keep_triggers else ():
                    connection.execute(sql)
        except (sqlite3.Error, UnicodeError, sqlite3.Warning):
            return False
    return True


def line(rng: Random, files: Sequence[str], statements: Sequence[str]) -> bytes:
    """An edit, drawn at random. statements: SQL to choose from."""
    name, at = rng.choice(files), rng.randrange(1 << 20)
    if rng.random() < 0.4:
        return f"{rng.choice(('sql', 'sql', 'sql', 'schema'))} {rng.choice(statements)}".encode()
    return rng.choice(
        (f"flip {name} {at}",) * 6
        + (f"set {name} {at} {rng.choice(HEX)}", f"set {name} {at} {rng.randbytes(rng.choice((1, 2, 9))).hex()}")
        + (f"cut {name} {at}", f"cut {name} {at // PAGE * PAGE}", f"zero {name} {at}", f"add {name} {rng.choice(HEX)}")
        + (f"copy {name} {at} {rng.randrange(64)}", f"put {name} {rng.choice(HEX)}", f"remove {name}")
    ).encode()
