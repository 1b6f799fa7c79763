"""YAML 1.2 text → plain values and their places. Numbers stay exact, dates stay text, nothing is executed.

Reads ruamel.yaml's events and builds the values itself, without recursion: depth, size and alias expansion are bounded,
duplicate keys are errors, and every value keeps its span. Scalars follow YAML 1.2's core schema: `1e-6` is a number
(`Decimal`), `no` is text; an ISO date is text too and is understood by the column's type.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)
from ruamel.yaml.reader import ReaderError

from dpsql.core.policy.positions import Loc, Places
from dpsql.diagnostics.diagnostic import Diagnostic, Source, Span
from dpsql.diagnostics.errors import CannotOpen

MAX_CHARACTERS = 1 << 20
MAX_DEPTH = 32
MAX_NODES = 50_000
MAX_DIGITS = 400

_NULL = re.compile(r"~|null|Null|NULL|")
_BOOL = re.compile(r"true|True|TRUE|false|False|FALSE")
_INT = re.compile(r"[-+]?[0-9]+")
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE]([-+]?[0-9]+))?")
_SPECIAL = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")


@dataclass(frozen=True, slots=True)
class YamlDocument:
    """What a YAML text says. `problems` are mistakes of form (duplicate keys, tags) that did not stop the reading."""

    value: Any
    places: Places
    problems: tuple[Diagnostic, ...]


def read_yaml(source: Source, directory: Path) -> YamlDocument:
    """Read one document; raises CannotOpen (DP001 too large, DP002 no valid YAML)."""
    if len(source.text) > MAX_CHARACTERS:
        limit = f"the file has more than {MAX_CHARACTERS:,} characters, which no policy needs"
        raise CannotOpen([Diagnostic("DP001", f"policy cannot be read: {limit}", source, Span(0, 1))])
    builder = _Builder(source)
    try:
        for event in _events(source.text):
            builder.take(event)
    except _Stop as stop:
        raise CannotOpen([*builder.problems, builder.problem(str(stop), stop.span)]) from None
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = min(mark.index if mark is not None else 0, len(source.text))
        said = "; ".join(str(part) for part in (error.problem, error.context) if part)
        advice = [_COLON] if error.problem == "mapping values are not allowed here" else []
        raise CannotOpen([*builder.problems, builder.problem(said, Span(at, at + 1), *advice)]) from None
    except ReaderError as error:
        at = int(error.position)
        raise CannotOpen(
            [builder.problem("the text holds a character that YAML does not allow", Span(at, at + 1))]
        ) from None
    except Exception:
        # ruamel's scanner raises bare ValueErrors and AssertionErrors on some malformed input
        raise CannotOpen([builder.problem("the text cannot be understood", Span(0, 1))]) from None
    if builder.root is None:
        raise CannotOpen([builder.problem("the file is empty", Span(0, 1), "a policy starts with `version: 1`")])
    values: dict[Loc, Span] = {}
    keys: dict[Loc, Span] = {}
    value = _flatten(builder.root, (), values, keys)
    return YamlDocument(value, Places(source, values, keys, directory), tuple(builder.problems))


_COLON = "a text that holds `: ` stands in quotes, or below its key, after  >-;  or a line is indented too far"


def _events(text: str) -> Iterator[Event]:
    yield from YAML(typ="safe", pure=True).parse(text)


class _Stop(Exception):
    def __init__(self, message: str, span: Span) -> None:
        super().__init__(message)
        self.span = span


@dataclass(slots=True)
class _Node:
    span: Span
    scalar: Any = None
    items: list[_Node] | None = None
    entries: dict[str, tuple[Span, _Node]] | None = None
    key: tuple[str, Span] | None = None  # of the open mapping: the key that waits for its value
    skip: bool = False  # the waiting key is a duplicate: its value is read and left out
    anchor: str | None = None
    size: int = 1
    height: int = 1


@dataclass(slots=True)
class _Builder:
    source: Source
    root: _Node | None = None
    stack: list[_Node] = field(default_factory=list)
    anchors: dict[str, _Node] = field(default_factory=dict)
    problems: list[Diagnostic] = field(default_factory=list)
    documents: int = 0

    def problem(self, message: str, span: Span, *help: str) -> Diagnostic:
        end = max(span.start + 1, span.end)
        return Diagnostic(
            "DP002", f"this file is not valid YAML: {message}", self.source, Span(span.start, end), help=help
        )

    def take(self, event: Event) -> None:
        span = Span(event.start_mark.index, event.end_mark.index)
        match event:
            case DocumentStartEvent():
                self.documents += 1
                if self.documents > 1:
                    raise _Stop("a policy is one YAML document; remove the second `---`", span)
            case ScalarEvent():
                plain = event.style is None or event.style == ""
                self._add(_Node(span, self._scalar(event, plain, span), anchor=event.anchor), event, span, plain)
            case AliasEvent():
                node = self.anchors.get(event.anchor)
                if node is None:
                    raise _Stop(f"*{event.anchor} refers to nothing before it", span)
                self._place(node, span)
            case SequenceStartEvent() | MappingStartEvent():
                self._check_tag(event, span)
                sequence = isinstance(event, SequenceStartEvent)
                node = _Node(
                    span, items=[] if sequence else None, entries=None if sequence else {}, anchor=event.anchor
                )
                top = self.stack[-1] if self.stack else None
                if top is not None and top.entries is not None and top.key is None:
                    raise _Stop("a key must be plain text", span)
                if len(self.stack) >= MAX_DEPTH:
                    raise _Stop("nested too deeply", span)
                self.stack.append(node)
            case SequenceEndEvent() | MappingEndEvent():
                node = self.stack.pop()
                node.span = Span(node.span.start, max(node.span.end, span.end))
                if node.anchor is not None:
                    self.anchors[node.anchor] = node
                self._place(node, node.span)
            case _:
                pass

    def _add(self, node: _Node, event: ScalarEvent, span: Span, plain: bool) -> None:
        top = self.stack[-1] if self.stack else None
        if top is not None and top.entries is not None and top.key is None:
            text = str(event.value)
            if plain and text == "<<":
                self.problems.append(self.problem("`<<` (merge) is not part of YAML 1.2", span, "write the keys out"))
                top.skip = True
            elif text in top.entries:
                self.problems.append(self.problem(f"key `{text}` is given twice", span, "keep one of the two"))
                top.skip = True
            top.key = (text, span)
            return
        if node.anchor is not None:
            self.anchors[node.anchor] = node
        self._place(node, span)

    def _place(self, node: _Node, span: Span) -> None:
        top = self.stack[-1] if self.stack else None
        if top is None:
            self.root = node
            return
        top.size += node.size
        top.height = max(top.height, node.height + 1)
        if top.size > MAX_NODES:
            raise _Stop(f"more than {MAX_NODES:,} values (aliases expanded)", span)
        if top.height > MAX_DEPTH:
            raise _Stop("nested too deeply", span)
        if top.items is not None:
            top.items.append(node)
        elif top.entries is not None:
            if top.key is None:
                raise _Stop("a key must be plain text", span)
            text, key_span = top.key
            if not top.skip:
                top.entries[text] = (key_span, node)
            top.key, top.skip = None, False

    def _check_tag(self, event: Any, span: Span) -> None:
        tag = event.tag
        if tag is not None and tag not in ("!", *(f"tag:yaml.org,2002:{t}" for t in ("str", "map", "seq"))):
            self.problems.append(self.problem(f"tags such as {str(tag)[:60]} are not accepted", span, "remove the tag"))

    def _scalar(self, event: ScalarEvent, plain: bool, span: Span) -> Any:
        self._check_tag(event, span)
        text = str(event.value)
        return (
            plain_scalar(text, lambda m: self.problems.append(self.problem(m, span)))
            if plain and not event.tag
            else text
        )


def plain_scalar(text: str, complain: Any) -> Any:
    """A plain (unquoted) scalar by YAML 1.2's core schema; numbers are int or Decimal, exact."""
    if _NULL.fullmatch(text):
        return None
    if _BOOL.fullmatch(text):
        return text.lower() == "true"
    if _BASED.fullmatch(text) and len(text) <= MAX_DIGITS:
        return int(text, 0)
    if _SPECIAL.fullmatch(text):
        return float(text.lower().replace(".", ""))
    number = _FLOAT.fullmatch(text)
    if number is None:
        return text
    exponent = number.group(1) or "0"
    if len(text) > MAX_DIGITS or len(exponent) > 5 or abs(int(exponent)) > MAX_DIGITS:
        complain("a number has more digits than any policy needs")
        return 0
    return int(text) if _INT.fullmatch(text) else Decimal(text)


def _flatten(node: _Node, loc: Loc, values: dict[Loc, Span], keys: dict[Loc, Span]) -> Any:
    """Values and places of a tree whose depth and expanded size are already bounded."""
    if node.span.end > node.span.start:
        values[loc] = node.span
    if node.items is not None:
        return [_flatten(item, (*loc, i), values, keys) for i, item in enumerate(node.items)]
    if node.entries is not None:
        result = {}
        for key, (span, child) in node.entries.items():
            if span.end > span.start:
                keys[*loc, key] = span
            result[key] = _flatten(child, (*loc, key), values, keys)
        return result
    return node.scalar
