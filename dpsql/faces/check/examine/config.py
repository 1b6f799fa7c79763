"""`dpsql.toml`, or `[tool.dpsql]` of `pyproject.toml`: what a repository says about its check.

The nearest folder from the current one upwards that has either counts (`dpsql.toml` before the other). Keys may be
written with `-` or `_`. Paths and patterns in it are relative to the file. Options of the command line are stronger.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictStr,
    ValidationError,
    create_model,
)

from dpsql.core.privacy_loss import exact_epsilon
from dpsql.diagnostics.diagnostic import Diagnostic, Source, Span
from dpsql.diagnostics.errors import CannotOpen
from dpsql.faces.check.documents.checkout import strays
from dpsql.faces.check.documents.document_sources import plain
from dpsql.faces.check.documents.parameter_values import configured, named
from dpsql.faces.check.examine.configuration import MOST_JOBS, Configuration, Kind, declared
from dpsql.faces.check.examine.selection import wrong_codes

OWN, SHARED = "dpsql.toml", "pyproject.toml"
_MOST_BYTES: Final = 1_000_000


def _codes(ignored: bool) -> AfterValidator:
    def check(codes: list[str]) -> list[str]:
        wrong = wrong_codes(codes, ignored)
        if wrong is not None:
            raise ValueError(wrong)
        return codes

    return AfterValidator(check)


def _amount(value: object) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, int | Decimal | str):
        raise ValueError("must be a number above 0")
    return exact_epsilon(value, "it")


Amount = Annotated[Fraction, BeforeValidator(_amount)]
Parameter = Annotated[StrictStr, AfterValidator(named)]
Ignored = Annotated[list[StrictStr], _codes(True)]


_KINDS: Final[Mapping[Kind, Any]] = {
    "text": StrictStr | None,
    "path": StrictStr | None,
    "switch": StrictBool,
    "count": Annotated[int, Field(strict=True, ge=1, le=MOST_JOBS)] | None,
    "amount": Amount | None,
    "texts": list[StrictStr],
    "codes": Annotated[list[StrictStr], _codes(False)],
    "ignored": Ignored,
    "ignored by file": dict[StrictStr, Ignored],
    "names": dict[StrictStr, StrictStr],
    "variables": dict[StrictStr, Annotated[Any, AfterValidator(plain)]],
    "parameters": dict[Parameter, Annotated[Any, AfterValidator(configured)]],
}
KEYS: Final = {name: each for name, each in declared(Configuration).items() if each.key}
"""What a file may say."""
_Keys = create_model(
    "_Keys",
    __config__=ConfigDict(extra="forbid", arbitrary_types_allowed=True),
    **{name: (_KINDS.get(each.kind, each.type), each.default) for name, each in KEYS.items()},
)  # type: ignore[call-overload]


@dataclass(frozen=True, slots=True)
class FoundConfiguration:
    """A configuration and the file that it was read from; without one, the current folder and the defaults."""

    values: Configuration
    folder: Path
    file: Path | None = None


def find_configuration(folder: Path) -> FoundConfiguration:
    """The configuration for a folder: of the nearest file in it or above it. Raises CannotOpen DP910."""
    for place in (folder, *folder.parents):
        if (place / OWN).is_file():
            return read_configuration(place / OWN)
        if (place / SHARED).is_file() and (found := _read(place / SHARED, needed=False)) is not None:
            return found
    return FoundConfiguration(Configuration(), folder)


def read_configuration(file: Path) -> FoundConfiguration:
    """The configuration in a file; one named pyproject.toml holds it in `[tool.dpsql]`. Raises CannotOpen DP910."""
    found = _read(file, needed=True)
    assert found is not None
    return found


def _read(file: Path, needed: bool) -> FoundConfiguration | None:
    name = _shown(file)
    if strays(file):
        raise _wrong(Source("", name), None, "a link leads out of the checkout to it")
    try:
        with file.open("rb") as stream:
            text = stream.read(_MOST_BYTES).decode("utf-8").replace("\r\n", "\n")
    except FileNotFoundError:
        raise _wrong(Source("", name), None, "there is no such file") from None
    except (OSError, ValueError):
        raise _wrong(Source("", name), None, "it cannot be read as a UTF-8 text") from None
    source = Source(text, name)
    try:
        content = tomllib.loads(text, parse_float=Decimal)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise _wrong(source, _toml_place(source, str(error)), f"it is not TOML: {_words(str(error))}") from None
    except (ValueError, ArithmeticError):  # Python reads whole numbers of up to 4,300 digits
        raise _wrong(source, None, "a number in it has too many digits") from None
    table: Any = content
    prefix: tuple[str, ...] = ()
    if file.name == SHARED:
        prefix = ("tool", "dpsql")
        tools = content.get("tool")
        table = tools.get("dpsql") if isinstance(tools, Mapping) else None
        if table is None:
            if not needed:
                return None
            raise _wrong(source, None, "it has no table [tool.dpsql]")
        if not isinstance(table, Mapping):
            raise _wrong(source, _key_place(source, prefix), "[tool.dpsql] must be a table")
    return FoundConfiguration(_validated(table, source, prefix), file.absolute().parent, file)


def _validated(table: Mapping[str, Any], source: Source, prefix: tuple[str, ...]) -> Configuration:
    named: dict[str, Any] = {}
    for key, value in table.items():
        plain = key.replace("-", "_")
        if plain in named:
            raise _wrong(source, _key_place(source, (*prefix, key)), f"{key} is given twice")
        named[plain] = value
    try:
        known = _Keys.model_validate(named)
    except ValidationError as error:
        raise CannotOpen([_mistake(source, prefix, table, dict(e)) for e in error.errors(include_url=False)]) from None
    return Configuration(**{name: getattr(known, name) for name in known.model_fields_set})


def _mistake(source: Source, prefix: tuple[str, ...], table: Mapping[str, Any], error: Mapping[str, Any]) -> Diagnostic:
    keys = [str(part) for part in error["loc"] if isinstance(part, str)]
    written = next((key for key in table if key.replace("-", "_") == keys[0]), keys[0])
    place = _key_place(source, (*prefix, written, *keys[1:2])) or _key_place(source, (*prefix, written))
    if error["type"] == "extra_forbidden":
        known = ", ".join(name.replace("_", "-") for name in KEYS)
        return _finding(source, place, f"unknown key {written!r}", f"the keys are {known}")
    return _finding(source, place, f"{written}: {_words(str(error['msg']).removeprefix('Value error, '))}")


def _words(text: str) -> str:
    return text[:1].lower() + text[1:]


def _toml_place(source: Source, message: str) -> Span | None:
    match = re.search(r"at line (\d+), column (\d+)", message)
    if match is None:
        return Span(len(source.text), len(source.text)) if source.text else None
    lines = source.text.split("\n")
    start = sum(len(line) + 1 for line in lines[: int(match[1]) - 1]) + int(match[2]) - 1
    return Span(start, start + 1)


def _key_place(source: Source, path: Sequence[str]) -> Span | None:
    """Where a key is written: in a line of its table's section, or as a part of the section's heading."""
    section: tuple[str, ...] = ()
    at = 0
    for line in source.text.split("\n"):
        heading = re.match(r"\s*\[+([^\[\]]*)\]+", line)
        if heading is not None:
            section = _dotted(heading[1])
            if section[: len(path)] == tuple(path):
                return Span(at + heading.start(1), at + heading.end(1))
        else:
            key = re.match(r"\s*([^=#\s][^=#]*?)\s*=", line)
            if key is not None and (*section, *_dotted(key[1]))[: len(path)] == tuple(path):
                return Span(at + key.start(1), at + key.end(1))
        at += len(line) + 1
    return None


def _dotted(text: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in re.findall(r"\"[^\"]*\"|'[^']*'|[^.\"']+", text) if part.strip())


def _shown(file: Path) -> str:
    try:
        return os.path.relpath(file)
    except (ValueError, OSError):  # another drive
        return str(file)


def _wrong(source: Source, span: Span | None, message: str) -> CannotOpen:
    return CannotOpen([_finding(source, span, message)])


def _finding(source: Source, span: Span | None, message: str, help: str | None = None) -> Diagnostic:
    return Diagnostic("DP910", f"the configuration: {message}", source, span, help=() if help is None else (help,))
