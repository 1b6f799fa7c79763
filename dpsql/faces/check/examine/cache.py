"""Examinations that were made before, in files of a folder that may be deleted at any time.

One file for each set of circumstances: dpsql's own code, the parser, the policy, the dialect, the values of parameters
and whether limits are searched; in it the examination of each text by the text's hash. A file that is damaged or of
another form is as good as none; a folder that cannot be written to is no error. The oldest files, and the oldest texts
of a file, are forgotten.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Final

from dpsql.faces.check.documents.parameter_values import Values, fingerprint
from dpsql.faces.check.examine.examination import Examination
from dpsql.faces.check.examine.records import Record, from_record, to_record

FOLDER: Final = ".dpsql_cache"
"""The usual name of the folder."""

_FORM: Final = 1
_MOST_TEXTS: Final = 20_000
_MOST_FILES: Final = 16
_OWN: Final = re.compile(r"[0-9a-f]{32}\.json")


class Cache:
    """The examinations of texts under one policy, dialect, values of parameters and kind of limits.

    folder: where the files lie; made when something is written. policy: the policy file's bytes, and the name that
    messages call it by.
    """

    def __init__(
        self,
        folder: Path,
        policy: bytes,
        policy_name: str,
        dialect: str,
        parameters: Values | None = None,
        search: bool | None = None,
    ) -> None:
        self._folder = folder
        values = fingerprint(parameters or {})
        asked = [dialect.lower(), values, str(search)]
        circumstances = [str(_FORM), _code(), version("sqlglot"), sys.version, policy_name, *asked]
        self._path = folder / f"{_hash(*(c.encode('utf-8', 'surrogateescape') for c in circumstances), policy)}.json"
        self._records: dict[str, Record] = _read(self._path)

    def find(self, texts: Iterable[str]) -> dict[str, Examination]:
        """Text → its examination, for those that are there."""
        found = {}
        for text in texts:
            record = self._records.get(_key(text))
            if record is not None:
                with contextlib.suppress(ValueError):
                    found[text] = from_record(record)
        return found

    def keep(self, examinations: Mapping[str, Examination], used: Iterable[str] = ()) -> None:
        """Write these, too. used: texts that were found; what was used last is forgotten last.

        Nothing is written if nothing is new. What another run wrote in the meantime may be lost, but never mixed up.
        """
        if not examinations:
            return
        records = {**_read(self._path), **self._records}
        for key in map(_key, used):
            if key in records:
                records[key] = records.pop(key)
        for text, examination in examinations.items():
            records.pop(_key(text), None)
            records[_key(text)] = to_record(examination)
        kept = dict(list(records.items())[-_MOST_TEXTS:])
        with contextlib.suppress(OSError):
            self._write(json.dumps(kept, ensure_ascii=True, separators=(",", ":")))

    def _write(self, body: str) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        if not any(self._folder.iterdir()):  # in a folder of something else git would lose sight of that
            (self._folder / ".gitignore").write_text("# made by `dpsql check`; may be deleted\n*\n", encoding="utf-8")
        handle, name = tempfile.mkstemp(prefix=".writing-", dir=self._folder)
        try:
            with open(handle, "w", encoding="utf-8") as file:
                file.write(f"{_hash(body.encode())}\n{body}")
            os.replace(name, self._path)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise
        own = [path for path in self._folder.glob("*.json") if _OWN.fullmatch(path.name)]
        files = sorted(own, key=lambda path: path.stat().st_mtime_ns)
        for path in files[:-_MOST_FILES]:
            path.unlink(missing_ok=True)


def _read(path: Path) -> dict[str, Record]:
    """What a file holds; nothing if it is missing, damaged or of another form."""
    try:
        digest, _, body = path.read_text(encoding="utf-8").partition("\n")
        if digest != _hash(body.encode()):
            return {}
        records = json.loads(body)
    except (OSError, ValueError, RecursionError):
        return {}
    return records if isinstance(records, dict) else {}


def _key(text: str) -> str:
    return _hash(text.encode("utf-8", "surrogatepass"))


def _hash(*parts: bytes) -> str:
    hashed = hashlib.blake2b(digest_size=16)
    for part in parts:
        hashed.update(len(part).to_bytes(8, "big") + part)
    return hashed.hexdigest()


def _code() -> str:
    """A hash of dpsql's own code: its version, and what a developer has changed since."""
    from dpsql import __version__

    root = Path(__file__).resolve().parents[3]
    parts = ((path.relative_to(root).as_posix().encode(), _bytes(path)) for path in sorted(root.rglob("*.py")))
    return f"{__version__} {_hash(*(part for pair in parts for part in pair))}"


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # an editor's or an installation's, gone by now
        return b""
