"""The text of a policy is scanned once in a process: most tests open one of a few, and YAML is scanned in Python.

A plugin. What is made of the scanner's events (values, places, mistakes) is made anew each time; a text that the
scanner refuses is scanned anew, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from ruamel.yaml.events import Event

from dpsql.policy.file import yaml_text

_scanned = yaml_text._events


@cache
def _once(text: str) -> tuple[Event, ...]:
    return tuple(_scanned(text))


def _events(text: str) -> Iterator[Event]:
    try:
        found = _once(text)
    except Exception:
        found = None
    yield from _scanned(text) if found is None else found


yaml_text._events = _events
