"""A disk that is written down: every write, flush, creation and removal of SQLite's files and of a ledger's head.

`Disk.cut` makes the folder that a power cut at some moment may leave: of each file what was flushed, and of what was
written since then nothing, all, or any part of it, torn at sectors; of names those that a flush of their folder covers.
SQLite is watched where it calls the system: in the methods of each file that it opens (its virtual file system).
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Protocol

import pytest

from dpsql.core.ledger.chain import head
from dpsql.core.ledger.files import durable_files

SECTOR = 512


def library() -> ctypes.CDLL | None:
    """The SQLite that Python's module uses, if it is a shared one that can be watched."""
    if sys.platform != "linux":
        return None
    maps = Path("/proc/self/maps").read_text().splitlines()
    found = {line.split(maxsplit=5)[-1] for line in maps if "libsqlite3" in line}
    return ctypes.CDLL(found.pop()) if len(found) == 1 else None


@dataclass(frozen=True)
class Write:
    """Bytes at a place."""

    at: int
    data: bytes


@dataclass(frozen=True)
class Truncate:
    size: int


@dataclass
class File:
    """What was written to one file since it was made; how much of that a flush covers, and whether its name is kept."""

    operations: list[Write | Truncate] = field(default_factory=list)
    flushed: int = 0
    named: bool = False

    def left(self, how: Left) -> bytes:
        """What was flushed, and of the rest what is left."""
        found = bytearray()
        for operation in self.operations[: self.flushed]:
            _apply(found, operation)
        for operation in self.operations[self.flushed :]:
            if how.keeps():
                _apply(found, how.torn(operation))
        return bytes(found)


class Left(Protocol):
    """What a power cut leaves of what was not flushed."""

    def keeps(self) -> bool:
        """Whether the next thing is on the disk."""
        ...

    def torn(self, operation: Write | Truncate) -> Write | Truncate:
        """What of it is."""
        ...


@dataclass(frozen=True)
class Nothing:
    def keeps(self) -> bool:
        return False

    def torn(self, operation: Write | Truncate) -> Write | Truncate:
        return operation


@dataclass(frozen=True)
class Everything:
    def keeps(self) -> bool:
        return True

    def torn(self, operation: Write | Truncate) -> Write | Truncate:
        return operation


@dataclass(frozen=True)
class Something:
    """More than half of it, some of that torn at a sector."""

    dice: Random

    def keeps(self) -> bool:
        return self.dice.random() < 0.6

    def torn(self, operation: Write | Truncate) -> Write | Truncate:
        if isinstance(operation, Truncate) or self.dice.random() < 0.5:
            return operation
        return Write(operation.at, operation.data[: SECTOR * self.dice.randrange(len(operation.data) // SECTOR + 1)])


def _apply(content: bytearray, operation: Write | Truncate) -> None:
    if isinstance(operation, Truncate):
        del content[operation.size :]
        content.extend(bytes(operation.size - len(content)))
        return
    content.extend(bytes(max(0, operation.at - len(content))))
    content[operation.at : operation.at + len(operation.data)] = operation.data


Event = tuple[str, Path, Any]
"""What was done, to which file, and with what; or `said`, with what was promised then."""


class Disk:
    """Writes down what is done below a folder, from `watch` on. Nothing may be there before."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.events: list[Event] = []
        self._lock = threading.RLock()

    def said(self, promise: object) -> None:
        """Somebody was told something now, and it has to hold after every later cut."""
        self._note("said", self.folder, promise)

    def _note(self, what: str, path: Path, data: object = None) -> None:
        with self._lock:
            if self.folder in (path, *path.parents):
                self.events.append((what, path, data))

    def cut(self, at: int, into: Path, how: Left) -> list[Any]:
        """Make the folder that a power cut after so many events may leave; what was promised before it."""
        files: dict[Path, File] = {}
        removed: dict[Path, File] = {}  # whose removal is not on the disk yet
        promises = []
        for what, path, data in self.events[:at]:
            match what:
                case "said":
                    promises.append(data)
                case "made":
                    files.setdefault(path, File())
                case "write" | "truncate":
                    files[path].operations.append(data)
                case "flush":
                    files[path].flushed = len(files[path].operations)
                case "removed":
                    removed[path] = files.pop(path)
                case "named":
                    removed = {gone: file for gone, file in removed.items() if gone.parent != path}
                    for file in (file for name, file in files.items() if name.parent == path):
                        file.named = True
                case _:
                    raise AssertionError(what)
        into.mkdir()
        for path, file in removed.items():
            if file.named and path not in files and not how.keeps():
                files[path] = file
        for path, file in files.items():
            if file.named or how.keeps():
                left = into / path.relative_to(self.folder)
                left.parent.mkdir(parents=True, exist_ok=True)
                left.write_bytes(file.left(how))
        return promises

    def watch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Write down everything until `monkeypatch` is undone."""
        self._watch_flushes(monkeypatch)
        self._watch_head(monkeypatch)
        self._watch_sqlite(monkeypatch)

    # --- what dpsql does itself ---

    def _watch_flushes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        flush, directory = durable_files.flush, durable_files.flush_directory

        def flushed(descriptor: int) -> None:
            name = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
            flush(descriptor)
            if name.suffix != ".new":  # the head's draft, see below
                self._note("flush", name)

        def named(path: Path) -> None:
            directory(path)
            self._note("named", path)

        for module in (durable_files, head):
            monkeypatch.setattr(module, "flush", flushed)
        monkeypatch.setattr(head, "flush_directory", named)

    def _watch_head(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A slot that is written over is a write; a new file has its name once it is whole."""
        write = head.Head._write

        def written(one: head.Head, point: Any) -> bool:
            before = one.path.read_bytes() if one.path.exists() else b""
            over = write(one, point)
            after = one.path.read_bytes()
            if over:
                (at,) = (i for i in range(0, len(after), SECTOR) if before[i : i + SECTOR] != after[i : i + SECTOR])
                self._note("write", one.path, Write(at, after[at : at + SECTOR]))
            else:
                self.events[-1:] = []  # the flush of its folder
                for event in (("made", None), ("write", Write(0, after)), ("flush", None)):
                    self._note(event[0], one.path, event[1])
                self._note("named", one.path.parent)
            return over

        monkeypatch.setattr(head.Head, "_write", written)

    # --- what SQLite does ---

    def _watch_sqlite(self, monkeypatch: pytest.MonkeyPatch) -> None:
        sqlite = library()
        assert sqlite is not None
        sqlite.sqlite3_vfs_find.restype = ctypes.POINTER(_Vfs)
        vfs = sqlite.sqlite3_vfs_find(None).contents
        names: dict[int, Path] = {}
        tables: dict[int, ctypes.Array[ctypes.c_void_p]] = {}
        _KEPT_ALIVE.append(tables)

        def opened(vfs_: int, name: int | None, file: int, flags: int, out: int) -> int:
            # The name is handed on where it is: SQLite keeps it, and more stands behind it.
            path = None if name is None else Path(os.fsdecode(ctypes.string_at(name)))
            new = path is not None and not path.exists()
            code: int = real_open(vfs_, name, file, flags, out)
            if code == 0 and path is not None:
                if new or path.stat().st_size == 0:
                    self._note("made", path)
                names[file] = path
                pointer = ctypes.cast(file, ctypes.POINTER(ctypes.c_void_p))
                pointer[0] = ctypes.addressof(table(pointer[0] or 0))
            return code

        def table(original: int) -> ctypes.Array[ctypes.c_void_p]:
            if original not in tables:
                tables[original] = methods(original)
            return tables[original]

        def methods(original: int) -> ctypes.Array[ctypes.c_void_p]:
            copy = (ctypes.c_void_p * _METHODS).from_buffer_copy(ctypes.string_at(original, 8 * _METHODS))
            write, truncate, sync = (
                form(copy[place] or 0) for form, place in ((_WRITE, 3), (_TRUNCATE, 4), (_SYNC, 5))
            )

            def writes(file: int, data: int, amount: int, at: int) -> int:
                self._note("write", names[file], Write(at, ctypes.string_at(data, amount)))
                return int(write(file, data, amount, at))

            def truncates(file: int, size: int) -> int:
                self._note("truncate", names[file], Truncate(size))
                return int(truncate(file, size))

            def syncs(file: int, flags: int) -> int:
                code = int(sync(file, flags))
                self._note("flush", names[file])
                if names[file].name.endswith(("-wal", "-journal")):
                    self._note("named", names[file].parent)  # SQLite flushes the folder of a new log with it
                return code

            for place, form, function in ((3, _WRITE, writes), (4, _TRUNCATE, truncates), (5, _SYNC, syncs)):
                callback = form(function)
                _KEPT_ALIVE.append(callback)
                copy[place] = ctypes.cast(callback, ctypes.c_void_p).value
            return copy

        def removed(vfs_: int, name: int, folder_too: int) -> int:
            code: int = real_delete(vfs_, name, folder_too)
            if code == 0:
                path = Path(os.fsdecode(ctypes.string_at(name)))
                self._note("removed", path)
                if folder_too:
                    self._note("named", path.parent)
            return code

        real_open, real_delete = _OPEN(vfs.open or 0), _DELETE(vfs.delete or 0)
        for field_, form, function in (("open", _OPEN, opened), ("delete", _DELETE, removed)):
            callback = form(function)
            _KEPT_ALIVE.append(callback)
            monkeypatch.setattr(vfs, field_, ctypes.cast(callback, ctypes.c_void_p).value)


_KEPT_ALIVE: list[object] = []
"""What SQLite calls: for as long as the process lives, as a connection may be closed at any time."""
_INT, _POINTER, _LONG = ctypes.c_int, ctypes.c_void_p, ctypes.c_int64
_OPEN: Callable[..., Any] = ctypes.CFUNCTYPE(_INT, _POINTER, _POINTER, _POINTER, _INT, _POINTER)
_DELETE: Callable[..., Any] = ctypes.CFUNCTYPE(_INT, _POINTER, _POINTER, _INT)
_WRITE: Callable[..., Any] = ctypes.CFUNCTYPE(_INT, _POINTER, _POINTER, _INT, _LONG)
_TRUNCATE: Callable[..., Any] = ctypes.CFUNCTYPE(_INT, _POINTER, _LONG)
_SYNC: Callable[..., Any] = ctypes.CFUNCTYPE(_INT, _POINTER, _INT)
_METHODS = 19
"""Words of sqlite3_io_methods, version 3; its first is the version. 3 is xWrite, 4 xTruncate, 5 xSync."""


class _Vfs(ctypes.Structure):
    """The beginning of sqlite3_vfs."""

    _fields_ = (
        ("version", _INT),
        ("size", _INT),
        ("longest", _INT),
        ("next", _POINTER),
        ("name", ctypes.c_char_p),
        ("data", _POINTER),
        ("open", _POINTER),
        ("delete", _POINTER),
    )
