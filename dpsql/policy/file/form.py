"""Form first: the file against `file_format`, every mistake told, and what is left made whole enough to look further.

pydantic stops at the form; a custodian wants the mistakes of meaning in the same run. So each malformed part is noted,
cut out of a copy, and the rest is validated again. What a cut would cause further up or down is not reported twice.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from dpsql.core.policy.positions import Loc
from dpsql.policy.file import file_format
from dpsql.policy.file.file_format import BoundsFile, PolicyFile
from dpsql.policy.file.scalars import MESSAGE
from dpsql.policy.file.yaml_text import MAX_DIGITS
from dpsql.policy.issues import Issue, did_you_mean, listed, shown

_ROUNDS = 12
_PLACEHOLDERS: dict[str, Any] = {"version": 1, "name": "policy", "tables": {}}


@dataclass(frozen=True, slots=True)
class WellFormed:
    """The well-formed part of a file (None: nothing to go on), the mistakes of form, and the places cut out."""

    file: PolicyFile | None
    issues: tuple[Issue, ...]
    cut: tuple[Loc, ...]

    def hides(self, issue: Issue) -> bool:
        """True if the issue may be nothing but the consequence of a cut."""
        return any(c[: len(issue.loc)] == issue.loc or issue.loc[: len(c)] == c for c in self.cut)


def check_form(data: object) -> WellFormed:
    """Validate the form; never raises."""
    if not isinstance(data, Mapping):
        found = "nothing" if data is None else shown(data)
        return WellFormed(
            None, (Issue((), f"a policy is a mapping that starts with `version: 1`, got {found}", about=False),), ()
        )
    try:
        rest = copy.deepcopy(dict(data))
    except Exception:
        return WellFormed(None, (Issue((), "a policy is plain data: mappings, lists, text, numbers", about=False),), ())
    issues = [Issue(loc, "has more digits than any policy needs") for loc in _long_numbers(rest)]
    if issues:
        return WellFormed(None, tuple(issues), ())
    cut: list[Loc] = []
    for _ in range(_ROUNDS):
        try:
            return WellFormed(PolicyFile.model_validate(rest), tuple(issues), tuple(cut))
        except ValidationError as error:
            details = error.errors(include_url=False)
            locs = [_real(rest, detail["loc"]) for detail in details]
            issues += [_issue(detail, loc) for detail, loc in zip(details, locs, strict=True)]
            cut += [_cut(rest, detail, loc) for detail, loc in zip(details, locs, strict=True)]
    return WellFormed(None, tuple(issues), tuple(cut))


def _long_numbers(data: object) -> Iterator[Loc]:
    """Where numbers stand that a YAML file could not hold: a mapping may come from a program."""
    todo: list[tuple[Loc, object]] = [((), data)]
    while todo:
        loc, value = todo.pop()
        match value:
            case Mapping():
                todo += [((*loc, str(k) if isinstance(k, str) else shown(k)), v) for k, v in value.items()]
            case list() | tuple():
                todo += [((*loc, i), v) for i, v in enumerate(value)]
            case int() | Fraction() if max(abs(value.numerator), value.denominator) >= 10**MAX_DIGITS:
                yield loc
            case Decimal() if value.is_finite() and (
                abs(value.adjusted()) > MAX_DIGITS or len(value.as_tuple().digits) > MAX_DIGITS
            ):
                yield loc


def normalised(file: PolicyFile) -> dict[str, Any]:
    """The content with short forms written out and defaults filled in; valid input again."""
    document: dict[str, Any] = _dump(file)
    return document


def _dump(value: Any) -> Any:
    """Like `model_dump(exclude_none=True)`, which would turn exact numbers into text."""
    match value:
        case BoundsFile(ends=list() as ends, search=None, within=None):
            return ends  # the form that policies have had from the beginning, and their hashes
        case BaseModel():
            fields = ((info.alias or key, getattr(value, key)) for key, info in type(value).model_fields.items())
            return {key: _dump(item) for key, item in fields if item is not None}
        case dict():
            return {key: _dump(item) for key, item in value.items()}
        case list():
            return [_dump(item) for item in value]
        case _:
            return value


def digest(document: Mapping[str, Any]) -> str:
    """sha256 (hex) of a normalised document: order of keys and spelling of numbers do not matter."""
    text = json.dumps(_plain(document), sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _plain(value: Any) -> Any:
    match value:
        case Mapping():
            return {str(k): _plain(v) for k, v in value.items()}
        case list() | tuple():
            return [_plain(v) for v in value]
        case None | bool() | str():
            return value
        case int() | Fraction() | Decimal() | float():
            try:
                return {"number": str(Fraction(repr(value) if isinstance(value, float) else value))}
            except (ValueError, OverflowError):
                return {"number": repr(value)}
        case _:
            return {type(value).__name__: str(value)}


def _real(data: Any, loc: tuple[int | str, ...]) -> Loc:
    """pydantic's place in the document as written: steps that a short form added are left out."""
    found: list[int | str] = []
    for i, part in enumerate(loc):
        if isinstance(data, Mapping):
            if part == "[key]":
                break
            found.append(part)
            if part not in data:
                break
            data = data[part]
        elif isinstance(data, list | tuple) and isinstance(part, int) and part < len(data):
            found.append(part)
            data = data[part]
        elif i == len(loc):
            break
    return tuple(found)


def _issue(detail: ErrorDetails, loc: Loc) -> Issue:
    kind, given = detail["type"], detail["input"]
    if kind == MESSAGE:
        return Issue(loc, detail["msg"])
    if kind == "missing":
        return Issue(loc, "is missing", help=_HELP.get(str(loc[-1]) if loc else "", ()))
    if kind == "extra_forbidden":
        name = str(loc[-1])
        known = _keys_at(loc)
        hint = did_you_mean(name, known) or f"; known here: {listed(known, 16)}"
        torn = name.endswith(")") and name[:-1].isdigit() and given is None
        help = ("a type with a comma needs quotes:  type: 'decimal(10,2)'",) if torn else ()
        return Issue(loc, f"is not a key of the policy format{hint}", key=True, help=help)
    if kind in ("dict_type", "model_type", "model_attributes_type"):
        name, above = ([str(part) for part in reversed(loc)] + ["", ""])[:2]
        shape = _SHAPES.get(f"{above}.*") or _SHAPES.get(name)
        word = did_you_mean(given, ["search"]) if name == "max_rows_per_unit" and isinstance(given, str) else ""
        help = () if shape is None else (shape,)
        return Issue(loc, f"must be a mapping (key: value), got {shown(given)}{word}", help=help)
    if kind == "list_type":
        return Issue(loc, f"must be a list, got {shown(given)}")
    if kind == "too_short":
        return Issue(loc, "must not be empty")
    return Issue(loc, f"is not understood, got {shown(given)}")


_HELP = {
    "version": ("the first line of a policy is  version: 1",),
    "name": ("give the policy a short name, e.g.  name: clinic",),
    "tables": ("list the tables that queries may use:  tables: {visits: {…}}",),
}


UNITS = "unit: {rows: 1}, unit: {column: id} or unit: {path: [{column: …, references: table(key)}]}"
"""The forms of a table's unit."""

_SHAPES = {
    "unit": UNITS,
    "tables.*": "a table is written  visits: {unit: {rows: 1}, columns: {age: {type: integer}}}",
    "columns.*": "a column is written  age: {type: integer}",
    "domain": "domain: [north, south], {values: [north, south], null: true} or {table: regions, column: region}",
    "max_rows_per_unit": "max_rows_per_unit: 20, or  max_rows_per_unit: search",
}
"""How what is no mapping was to be written: by its key, or the key above it."""


def _keys_at(loc: Loc) -> list[str]:
    """The keys that may stand where `loc` stands."""
    names: dict[str, type[BaseModel]] = {
        "privacy": file_format.PrivacyFile, "unit": file_format.TableUnitFile, "path": file_format.PathStepFile,
        "unique": file_format.KeyFile, "primary_key": file_format.KeyFile, "foreign_keys": file_format.ForeignKeyFile,
        "max_frequency": file_format.FrequencyFile, "max_rows_per_unit": file_format.RowLimitFile,
        "bounds": file_format.BoundsFile,
        "size": file_format.SizeFile, "domain": file_format.DomainFile, "defaults": file_format.DefaultsFile,
        "budgets": file_format.BudgetsFile, "total": file_format.LossFile, "per_query": file_format.PerQueryFile,
        "serve": file_format.ServeFile,
    }  # fmt: skip
    entries: dict[str, type[BaseModel]] = {
        "tables": file_format.TableFile, "columns": file_format.ColumnFile, "analysts": file_format.AnalystFile,
    }  # fmt: skip
    words = [part for part in loc[:-1] if isinstance(part, str)]
    if not words:
        return list(PolicyFile.model_fields)
    if len(words) >= 2 and words[-2] in entries and (words[-2] != "columns" or len(words) == 4):
        return _names(entries[words[-2]])
    if len(words) >= 2 and words[-2] == "units":
        return list((file_format.UnitFile if words[0] == "units" else file_format.LossFile).model_fields)
    return _names(names[words[-1]]) if words[-1] in names else []


def _names(model: type[BaseModel]) -> list[str]:
    return [info.alias or key for key, info in model.model_fields.items()]


def _cut(rest: dict[str, Any], detail: ErrorDetails, loc: Loc) -> Loc:
    """Take the malformed part out of `rest`; returns the place that is gone."""
    if detail["type"] == "missing":
        if len(loc) <= 1:
            rest.update({k: v for k, v in _PLACEHOLDERS.items() if (k,) == loc})
            return loc
        loc = loc[:-1]
    in_list = next((i for i, part in enumerate(loc) if isinstance(part, int)), len(loc))
    loc = loc[:in_list]
    at: Any = rest
    for part in loc[:-1]:
        at = at.get(part) if isinstance(at, dict) else None
    if not loc:
        rest.clear()
    elif isinstance(at, dict) and loc[-1] in at:
        entry = len(loc) in (2, 4) and loc[0] == "tables" and loc[-2] in ("tables", "columns")
        if entry and not isinstance(at[loc[-1]], dict):
            at[loc[-1]] = {}
        elif len(loc) == 1 and loc[0] in _PLACEHOLDERS:
            at[loc[0]] = copy.deepcopy(_PLACEHOLDERS[str(loc[0])])
        else:
            del at[loc[-1]]
    return loc
